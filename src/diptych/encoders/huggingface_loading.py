"""Loading a model of transformers with its tokenizer and image processor; nothing is made up, no code is run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from diptych.core.errors import UsageError
from diptych.encoders.foreign import LOADING_ERRORS, loading_failure, saved_settings
from diptych.encoders.huggingface_files import check_loaded, quiet, weights_format


@dataclass(frozen=True, eq=False)
class LoadedParts:
    """What a folder or a hub name holds.

    Attributes:
        model, tokenizer, image_processor: as transformers made them, the model in float32.
        name: what reports call the model.
        settings: what ``DualEncoder.save`` kept beside it.
    """

    model: Any
    tokenizer: Any
    image_processor: Any
    name: str
    settings: dict[str, Any]


def load_parts(
    source: str,
    known: Collection[str],
    what: str,
    check: Callable[[Any], None],
    library_class: Callable[[], Any],
    backend: str = "pil",
) -> LoadedParts:
    """Load from a folder, or by name from the hub or its cache.

    Args:
        backend: what prepares pictures: ``"pil"``, as for these models' published numbers, or
            ``"torchvision"``, whose variant of the same preprocessing gives slightly other pixels.
    """
    import transformers

    given = Path(source).expanduser()
    folder = given if given.is_dir() else None
    where = str(folder) if folder else source
    common: dict[str, Any] = {"trust_remote_code": False, "local_files_only": folder is not None}
    settings = saved_settings(given) if folder else {}
    safetensors = weights_format(folder) if folder else None
    try:
        with quiet(bars=folder is None):
            config = transformers.AutoConfig.from_pretrained(where, **common)
            if config.model_type not in known:
                raise UsageError(
                    f"{source} is a {config.model_type!r} model, not {what}",
                    f"known: {', '.join(sorted(known))}",
                )
            check(config)
            model, loading = library_class().from_pretrained(
                where,
                config=config,
                dtype=torch.float32,
                use_safetensors=safetensors,
                weights_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported by check_loaded, with names
                **common,
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(where, **common)
            processor = transformers.AutoImageProcessor.from_pretrained(where, backend=backend, **common)
    except LOADING_ERRORS as error:
        fix = (
            "download the model again, all files"
            if folder
            else f"run `hf download {source} --local-dir FOLDER` where there is network; pass FOLDER"
        )
        raise loading_failure(source, folder, error, fix) from error
    check_loaded(source, loading, tokenizer)
    name = settings.get("name", folder.resolve().name if folder else source)
    return LoadedParts(model, tokenizer, processor, name, settings)
