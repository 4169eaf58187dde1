"""Files of a head: the layout of the published checkpoints, and what ours say beyond it.

::

    FOLDER/
      config.json         model_type "d2s", mlm_head, dense_size; ours under "diptych"
      model.safetensors   proj.*, vocab_layer_norm.*, vocab_projector.*; of two heads image.* and text.*
      tokenizer.json      the vocabulary's tokenizer
      terms.json          the terms, one per column
      README.md           a model card

A published head is config.json with the first three and weights, here or in ``pytorch_model.bin``; its
terms are those of the model that ``mlm_head`` names.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diptych.core.errors import StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder, write_json, write_text
from diptych.core.reading import read_json
from diptych.encoders.hub import LOADING_ERRORS, loading_failure, weights_format
from diptych.encoders.tensors import load_tensors, save_tensors
from diptych.sparse.head import HeadPair, SparseHead, SparseHeads
from diptych.sparse.options import HeadOptions, SparsifyOptions, VocabularyOptions
from diptych.sparse.vocabulary import TermVocabulary

CONFIG_FILE = "config.json"
FORMAT = 1

_PUBLISHED_EPS = 1e-12
_FILES = ("config.json", "model.safetensors", "pytorch_model.bin", "tokenizer.json", "terms.json")

_CARD = """---
library_name: diptych
tags:
- image-text-retrieval
- learned-sparse-retrieval
- d2s
---
# A sparse head

Turns dense rows of {width} numbers into weights of {terms} terms (Dense2Sparse, Nguyen et al. 2024).

```python
from diptych.sparse.sparsifier import Sparsifier

sparsifier = Sparsifier.load("FOLDER")  # the folder this file is in
sparsifier.sparsify(dense_rows, "image")  # a scipy.sparse.csr_array
```

What its numbers depend on:

```json
{description}
```
"""


@dataclass(frozen=True, eq=False)
class HeadFiles:
    """What a head's folder holds.

    Attributes:
        heads: on the CPU.
        vocabulary: the terms.
        options: it was trained with; of a published head what its weights show, the rest is default.
        encoder: fingerprint of the dense encoder; empty for a published head, which does not say.
    """

    heads: SparseHeads
    vocabulary: TermVocabulary
    options: SparsifyOptions
    encoder: str


def write_head_files(
    folder: Path,
    heads: SparseHeads,
    vocabulary: TermVocabulary,
    options: SparsifyOptions,
    encoder: str,
    description: dict[str, Any],
) -> Path:
    """Write the folder; all or nothing."""
    config = {
        "model_type": "d2s",
        "mlm_head": options.vocabulary.source,
        "dense_size": description["width"],
        "diptych": {
            "format": FORMAT,
            "encoder": encoder,
            "vocabulary": vocabulary.fingerprint,
            "options": options.model_dump(mode="json"),
        },
    }
    with atomic_folder(folder, CONFIG_FILE) as temporary:
        save_tensors(heads.state_dict(), temporary / "model.safetensors")
        vocabulary.save(temporary)
        write_json(temporary / CONFIG_FILE, config)
        text = json.dumps(description, indent=1, ensure_ascii=False)
        write_text(
            temporary / "README.md",
            _CARD.format(width=description["width"], terms=description["terms"], description=text),
        )
    return folder


def read_head_files(name_or_folder: str | Path) -> HeadFiles:
    """Read a head of ours or a published one, from a folder or by hub name."""
    given = Path(name_or_folder).expanduser()
    folder = given if given.is_dir() else _downloaded(str(name_or_folder))
    config = read_json(folder / CONFIG_FILE)
    if not isinstance(config, dict) or "dense_size" not in config:
        raise UsageError(
            f"{name_or_folder} is not a sparse head: its config.json has no dense_size",
            "give a folder that diptych sparsify wrote, or a published head (lsr42/d2s_…)",
        )
    weights = _weights(folder)
    ours = config.get("diptych")
    if ours is None:
        source = str(config.get("mlm_head") or "")
        if not source:
            raise StorageError(f"{folder / CONFIG_FILE} names no mlm_head", "download the head again")
        options = _published_options(source, weights)
        heads = _heads(folder, weights, _PUBLISHED_EPS)
        return HeadFiles(heads, TermVocabulary.pretrained(source), options, "")
    if not isinstance(ours, dict) or ours.get("format") != FORMAT:
        found = ours.get("format") if isinstance(ours, dict) else "unknown"
        raise StorageError(
            f"{folder} is a head of format {found}, this version reads {FORMAT}",
            "train it again: diptych sparsify",
        )
    again = "it was written by another version: train the head again"
    options = SparsifyOptions.read(
        ours.get("options"), f"{folder / CONFIG_FILE}: options", StorageError, again
    )
    heads, vocabulary = _heads(folder, weights, options.head.eps), TermVocabulary.load(folder)
    # Heads of before it was written down do not say which terms they have.
    if ours.get("vocabulary", vocabulary.fingerprint) != vocabulary.fingerprint:
        raise StorageError(
            f"{folder}: the head has the vocabulary {ours['vocabulary']}, terms.json is {vocabulary.fingerprint}",
            "put back the tokenizer.json and terms.json that the head was saved with",
        )
    return HeadFiles(heads, vocabulary, options, str(ours.get("encoder") or ""))


def _downloaded(name: str) -> Path:
    """The files of a head by its hub name, in the library's cache."""
    library = require("huggingface_hub", "hub", "loading a head by name")
    unreachable = (
        *LOADING_ERRORS,
        *require("huggingface_hub.errors", "hub", "loading a head by name").HfHubHTTPError.__bases__,
    )
    try:
        return Path(library.snapshot_download(name, allow_patterns=list(_FILES)))
    except unreachable as error:
        fix = (
            f"check the folder's name, or run `hf download {name} --local-dir FOLDER` where there is network"
        )
        raise loading_failure(name, None, error, fix) from error


def _weights(folder: Path) -> dict[str, Tensor]:
    if weights_format(folder):
        return load_tensors(folder / "model.safetensors", "download or train the head again")
    try:
        loaded = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    except (*LOADING_ERRORS, pickle.UnpicklingError) as error:
        raise loading_failure(str(folder), folder, error, "download the head again") from error
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise StorageError(
            f"{folder / 'pytorch_model.bin'} holds no weights by name", "download the head again"
        )
    return {name: value.float() for name, value in loaded.items()}


def _heads(folder: Path, weights: dict[str, Tensor], eps: float) -> SparseHeads:
    """Heads of the shapes that the weights have."""

    def one(prefix: str) -> SparseHead:
        first, second = weights[f"{prefix}proj.weight"], weights[f"{prefix}vocab_projector.weight"]
        bias = f"{prefix}proj.bias" in weights
        return SparseHead(first.shape[1], first.shape[0], second.shape[0], bias=bias, eps=eps)

    try:
        heads = one("") if "proj.weight" in weights else HeadPair(one("image."), one("text."))
        heads.load_state_dict(weights)
    except (KeyError, IndexError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise StorageError(
            f"the weights in {folder} are not those of a sparse head: {reason}", "download the head again"
        ) from None
    if isinstance(heads, HeadPair) and _shape(heads.image) != _shape(heads.text):
        raise StorageError(
            f"the heads in {folder} are of different shapes, {_shape(heads.image)} and {_shape(heads.text)}",
            "download the head again",
        )
    broken = [name for name, value in heads.state_dict().items() if not value.isfinite().all()]
    if broken:
        raise StorageError(f"{broken[0]} in {folder} is not finite", "train or download the head again")
    return heads


def _shape(head: SparseHead) -> tuple[int, int]:
    """d and |V|."""
    return head.width, head.terms


def _published_options(source: str, weights: dict[str, Tensor]) -> SparsifyOptions:
    width = weights["proj.weight"].shape[0] if "proj.weight" in weights else HeadOptions().width
    return SparsifyOptions(
        vocabulary=VocabularyOptions(source=source),
        head=HeadOptions(width=width, bias="proj.bias" in weights, eps=_PUBLISHED_EPS),
    )
