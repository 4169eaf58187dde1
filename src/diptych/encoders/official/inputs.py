"""What the models read: a picture squashed to a square, a text as the token ids of BERT's tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import DiptychError, StorageError, UsageError
from diptych.data.overlay import Overlay, pasted
from diptych.encoders.byte_table import ByteTable
from diptych.encoders.foreign import LOADING_ERRORS
from diptych.encoders.huggingface_files import quiet

if TYPE_CHECKING:
    from PIL.Image import Image

TOKENIZER = "bert-base-uncased"
"""The tokenizer of all published ALBEF and X-VLM checkpoints."""

_FILES = ("tokenizer.json", "vocab.txt")


@dataclass(frozen=True)
class Squashed:
    """From a picture to (3, size, size) float32; the numbers are those of torchvision's transforms.

    Attributes:
        size: side of the square, in pixels; the picture's own shape is lost.
        mean, std: per channel, of values in [0, 1].
    """

    size: int
    mean: tuple[float, float, float] = (0.48145466, 0.4578275, 0.40821073)
    std: tuple[float, float, float] = (0.26862954, 0.26130258, 0.27577711)

    def __call__(self, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
        """An RGB picture, with what is laid over it pasted after it is squashed."""
        from PIL import Image as pillow

        pixels = np.asarray(picture.resize((self.size, self.size), pillow.Resampling.BICUBIC))
        return self._numbers(pixels if overlay is None else pasted(pixels, overlay))

    @cached_property
    def _numbers(self) -> ByteTable:
        byte = np.arange(256, dtype=np.float32) / np.float32(255)
        mean, std = (np.asarray(value, dtype=np.float32)[:, None] for value in (self.mean, self.std))
        return ByteTable((byte - mean) / std)

    def describe(self) -> dict[str, Any]:
        """What a number depends on."""
        return {
            "processor": "squash",
            "size": self.size,
            "interpolation": "bicubic",
            "mean": list(self.mean),
            "std": list(self.std),
        }


def find_tokenizer(given: str | Path | None, beside: Path | None) -> Any:
    """A tokenizer of transformers."""
    import transformers

    folder: Path | None = None
    if given is not None and Path(given).expanduser().is_dir():
        folder = Path(given).expanduser()
    elif given is None and beside is not None and any((beside / name).is_file() for name in _FILES):
        folder = beside
    where = str(folder or given or TOKENIZER)
    try:
        with quiet(bars=False):
            tokenizer = transformers.BertTokenizer.from_pretrained(
                where, local_files_only=folder is not None, trust_remote_code=False
            )
    except LOADING_ERRORS as error:
        lines = str(error).strip().splitlines()
        raise _failure(
            where, folder, f"{type(error).__name__}: {lines[0] if lines else 'no reason'}"
        ) from error
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
        # What transformers makes of files that it does not find, without a word.
        raise _failure(where, folder, f"a vocabulary of {tokenizer.vocab_size} special tokens")
    return tokenizer


def _failure(where: str, folder: Path | None, reason: str) -> DiptychError:
    if folder is not None:
        return StorageError(
            f"the tokenizer in {folder} cannot be read: {reason}", f"give a folder with {' or '.join(_FILES)}"
        )
    return UsageError(
        f"the tokenizer {where} could not be loaded, neither from its hub nor from the cache: {reason}",
        f"run `hf download {TOKENIZER} vocab.txt tokenizer_config.json --local-dir FOLDER` where there is "
        "network, and put the files beside the checkpoint, or give tokenizer=FOLDER",
    )
