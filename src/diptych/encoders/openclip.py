"""Models of open_clip as dual encoders: by architecture and pretrained tag, hub name or folder.

Pickled code is refused, and so is an architecture whose activation is not its weights' (QuickGELU).
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.files import write_json
from diptych.encoders import hub
from diptych.encoders.inputs import save_tensors
from diptych.encoders.preprocessing import ComposedPixels
from diptych.encoders.pretrained import PretrainedEncoder

_LIBRARY = ("open_clip", "open-clip", "loading an open_clip model")


@contextmanager
def _quiet_logging() -> Iterator[None]:
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)


def _split_source(library: Any, source: str) -> tuple[str, str]:
    architecture, _, pretrained = source.partition("/")
    config = library.get_model_config(architecture)
    if config is None:
        raise UnknownNameError("architecture of open_clip", architecture, library.list_models())
    if Path(pretrained).is_file():
        return architecture, pretrained
    if not library.is_pretrained_cfg(architecture, pretrained):
        tags = library.list_pretrained_tags_by_model(architecture)
        raise UnknownNameError(f"pretrained tag of open_clip:{architecture}", pretrained, tags)
    trained_with = library.get_pretrained_cfg(architecture, pretrained).get("quick_gelu", False)
    # The other way round says nothing: the library's table leaves the flag out for some weights.
    if trained_with and not config.get("quick_gelu", False):
        raise UsageError(
            f"the weights {pretrained!r} were trained with QuickGELU, the architecture {architecture!r}"
            " has GELU: every row would be slightly wrong",
            f"use open_clip:{architecture}-quickgelu/{pretrained}",
        )
    return architecture, pretrained


# Configuration keys that do not change a row in evaluation mode.
_NO_EFFECT = frozenset(
    (
        *("hf_tokenizer_name", "hf_model_pretrained", "timm_model_pretrained"),
        *("patch_dropout", "timm_drop", "timm_drop_path", "init_logit_scale", "init_logit_bias"),
    )
)

_CHARACTERS_PER_TOKEN = 64  # more cannot matter (the longest token has 32 bytes), and take quadratic time


class OpenClipEncoder(PretrainedEncoder):
    """A model of open_clip; make one with :meth:`open` or ``DualEncoder.load``."""

    family: ClassVar[str] = "open_clip"

    def __init__(
        self, model: Any, preprocess: Any, tokenizer: Any, config: dict[str, Any], name: str, **options: Any
    ) -> None:
        super().__init__(model, name, int(tokenizer.context_length), **options)
        self.preprocess = preprocess
        self._pixels = ComposedPixels(preprocess)
        self.tokenizer = tokenizer
        self.config = config

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        """Load ``ARCHITECTURE/PRETRAINED``, ``hf-hub:NAME`` or a folder with open_clip_config.json."""
        library = require(*_LIBRARY)
        folder = hub.given_folder(source)
        pretrained: str | None = None
        if folder is not None:
            name = f"local-dir:{folder}"
        elif source.startswith("hf-hub:"):
            name = source
        else:
            name, pretrained = _split_source(library, source)
        fix = (
            "it needs open_clip_config.json and open_clip_model.safetensors of the same model"
            if folder
            else "where there is a network, load it once and call its save(FOLDER); then pass FOLDER"
        )
        with hub.loading(source, folder, fix), _quiet_logging():
            config = library.get_model_config(name)
            model, preprocess = library.create_model_from_pretrained(
                name, pretrained, precision="fp32", device="cpu", weights_only=True
            )
            tokenizer = library.get_tokenizer(name)
        hub.check_complete(source, (), getattr(tokenizer, "tokenizer", None))
        return cls(model, preprocess, tokenizer, config, **hub.saved_settings(source), device=device)

    def _shown(self, texts: list[str]) -> list[str]:
        if not hasattr(self.tokenizer, "bpe"):
            return texts
        most = _CHARACTERS_PER_TOKEN * self.text_limit
        return [" ".join(text.split())[:most] if len(text) > most else text for text in texts]

    def pixel_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model.encode_image(pixels)  # type: ignore[no-any-return]

    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        filler = self.padding[0]
        # Only what padding puts back is taken off: ids and padding together are the tokenizer's own.
        return [
            np.trim_zeros(row - filler, "b") + filler for row in self.tokenizer(self._shown(texts)).numpy()
        ]

    @property
    def padding(self) -> tuple[int, int | None, bool]:
        inner = getattr(self.tokenizer, "tokenizer", None)
        return 0 if inner is None else int(inner.pad_token_id), self.text_limit, False

    def token_features(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return self.model.encode_text(tokens)  # type: ignore[no-any-return]

    def sides(self) -> tuple[list[str], list[str]]:
        model, other = self.model, ("visual", "logit_scale", "logit_bias")
        names = [name for name, _ in (*model.named_children(), *model.named_parameters(recurse=False))]
        return ["visual"], [name for name in names if name not in other]

    def _token_counts(self, texts: list[str]) -> list[int]:
        tokenizer = self.tokenizer
        if hasattr(tokenizer, "bpe"):  # open_clip's own; a start and an end token are added
            return [len(tokenizer.encode(text)) + 2 for text in self._shown(texts)]
        added = 3 if tokenizer.tokenizer_mode == "clips" else 0  # start, end and class token
        tokens = tokenizer.tokenizer(
            [tokenizer.clean_fn(text) for text in texts],
            add_special_tokens=not added,
            truncation=True,
            max_length=self.text_limit + 1,
        )
        return [len(ids) + added for ids in tokens["input_ids"]]

    def preprocessing(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads(json.dumps(self.model.visual.preprocess_cfg))
        return {"processor": "open_clip.image_transform_v2", **settings}

    def _tokenizer_content(self) -> dict[str, Any]:
        own = self.tokenizer
        content: dict[str, Any] = {"wrapper": type(own).__name__}
        if hasattr(own, "bpe"):
            merges = [" ".join(pair) for pair in own.bpe_ranks]
            return content | {"vocabulary": own.encoder, "merges": merges, "clean": own.clean_fn.__name__}
        rules = {"clean": own.clean_fn.__name__, "mode": own.tokenizer_mode, "strip": own.strip_sep_token}
        return content | rules | hub.tokenizer_content(own.tokenizer)

    def _content(self) -> list[Any]:
        return [hub.without_keys(self.config, _NO_EFFECT), self._tokenizer_content()]

    def _about_model(self) -> dict[str, Any]:
        vision, text = self.config["vision_cfg"], self.config["text_cfg"]
        plain = "quick_gelu" if self.config.get("quick_gelu", False) else "gelu"
        learned = self.learned_options
        return {
            "model": type(self.model).__name__,
            "library": f"open_clip {require(*_LIBRARY).__version__}",
            "text": {"tokenizer": type(self.tokenizer).__name__, "padding": "max_length"},
            "activation": {
                "image": f"of {vision['timm_model_name']}" if "timm_model_name" in vision else plain,
                "text": f"of {text['hf_model_name']}" if "hf_model_name" in text else plain,
            },
            "temperature": learned["temperature"],
            "bias": learned.get("bias"),
        }

    def _write(self, folder: Path) -> None:
        # Cloned, for safetensors refuses tensors that share memory.
        state = {key: value.detach().cpu().clone() for key, value in self.model.state_dict().items()}
        save_tensors(state, folder / "open_clip_model.safetensors", {"format": "pt"})
        settings = {key: value for key, value in self.preprocessing().items() if key != "processor"}
        write_json(folder / "open_clip_config.json", {"model_cfg": self.config, "preprocess_cfg": settings})
        if hasattr(self.tokenizer, "save_pretrained"):
            self.tokenizer.save_pretrained(folder)
