"""How ALBEF and X-VLM prepare a picture: squashed to a square, CLIP's mean and spread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.data.overlay import Overlay, pasted
from diptych.encoders.byte_table import ByteTable

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Squashed"]


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
        """An RGB picture, with what is laid over it pasted after it is squashed.

        Raises:
            ImageError: the overlay does not fit.
        """
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
