"""The vocabulary side of a BERT-like model: embeddings of terms, and the layer norm and biases before them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import StorageError, UsageError
from diptych.encoders.hub import LOADING_ERRORS, loading_failure
from diptych.encoders.huggingface_files import quiet, weights_format

_NORM = {"bert": "cls.predictions.transform.LayerNorm", "distilbert": "vocab_layer_norm"}


@dataclass(frozen=True, eq=False)
class MaskedLanguageModelHead:
    """What a masked language model multiplies its last hidden states with.

    Attributes:
        embeddings: (|V|, ω) float32, of every term of the model's tokenizer.
        bias: (|V|,) float32, or None where the model was saved without its head.
        norm_weight, norm_bias: (ω,) float32, likewise.
        kind: ``bert`` or ``distilbert``.
    """

    embeddings: np.ndarray
    bias: np.ndarray | None
    norm_weight: np.ndarray | None
    norm_bias: np.ndarray | None
    kind: str


def read_head(source: str | Path) -> MaskedLanguageModelHead:
    """Load the head from a folder, or by name from the hub or its cache.

    A sentence encoder is a BERT without such a head: it has embeddings only.
    """
    import torch
    import transformers

    given = Path(source).expanduser()
    folder = given if given.is_dir() else None
    where = str(folder or source)
    common: dict[str, Any] = {"trust_remote_code": False, "local_files_only": folder is not None}
    try:
        safetensors = weights_format(folder) if folder else None
        with quiet(bars=folder is None):
            config = transformers.AutoConfig.from_pretrained(where, **common)
            if config.model_type not in _NORM:
                raise UsageError(
                    f"{source} is a {config.model_type!r} model, whose vocabulary a head cannot start from",
                    "give a BERT or DistilBERT, or set head.start to cooccurrence",
                )
            model, loading = transformers.AutoModelForMaskedLM.from_pretrained(
                where,
                config=config,
                dtype=torch.float32,
                use_safetensors=safetensors,
                weights_only=True,
                output_loading_info=True,
                **common,
            )
    except LOADING_ERRORS as error:
        fix = (
            "download the model again, all files"
            if folder
            else f"run `hf download {source} --local-dir FOLDER` where there is network; pass FOLDER"
        )
        raise loading_failure(str(source), folder, error, fix) from error
    missing = loading["missing_keys"]
    if any(name.endswith("embeddings.word_embeddings.weight") for name in missing):
        raise StorageError(f"{source} lacks the embeddings of its terms", "download the model again")
    norm = model.get_submodule(_NORM[config.model_type])
    made_up = any(name.startswith(_NORM[config.model_type]) for name in missing)
    output = model.get_output_embeddings()
    return MaskedLanguageModelHead(
        embeddings=_array(output.weight),
        bias=None if made_up else _array(output.bias),
        norm_weight=None if made_up else _array(norm.weight),
        norm_bias=None if made_up else _array(norm.bias),
        kind=config.model_type,
    )


def _array(tensor: Any) -> np.ndarray:
    array: np.ndarray = tensor.detach().float().numpy().copy()
    return array
