"""From an image to the numbers an image tower takes: crop, resize, normalise, augment, and paste overlays last."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, model_validator

from diptych.core.options import Options
from diptych.encoders.inputs import ByteTable

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.data.images import Overlay


class Augmentation(Options):
    """Random resized crop and horizontal flip, as VSE++ and most of its successors train.

    PCME and Bleeker et al. 2022 also erase a rectangle of every fifth image (``erasing = 0.2``; Zhong et al. 2020).
    """

    scale: tuple[float, float] = (0.08, 1.0)  # smallest and largest share of the area that a crop covers
    ratio: tuple[float, float] = (3 / 4, 4 / 3)  # narrowest and widest crop, width over height
    flip: float = Field(0.5, ge=0, le=1)  # probability; set 0 for captions that say "left"
    erasing: float = Field(0.0, ge=0, le=1)  # probability that a rectangle is set to 0, the mean colour
    erasing_area: tuple[float, float] = (0.02, 1 / 3)  # smallest and largest share of the crop that is erased
    erasing_ratio: tuple[float, float] = (0.3, 3.3)  # flattest and tallest rectangle, height over width

    @model_validator(mode="after")
    def _ranges(self) -> Augmentation:
        for name, highest in (("erasing_area", 1.0), ("erasing_ratio", math.inf)):
            low, high = getattr(self, name)
            if not 0 < low <= high <= highest:
                raise ValueError(f"{name} ({low}, {high}) is not a range of positive shares, smaller first")
        return self


class Preprocessing(Options):
    """How an image becomes a (3, size, size) float32 array."""

    size: int = Field(224, ge=8, le=4096)  # side of the square the tower sees, in pixels
    resize: int = Field(256, ge=8, le=8192)  # length the shorter side is resized to before the central crop
    interpolation: Literal["bilinear", "bicubic"] = "bicubic"  # with Pillow's antialiasing
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)  # per channel, of values in [0, 1]
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    def __call__(self, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
        """Return the central view with what is laid over it, normalised: (3, size, size)."""
        return self._with_overlay(self._normalised(self.central(picture)), overlay)

    def central(self, picture: Image) -> np.ndarray:
        """Shorter side to ``resize``, central ``size`` × ``size`` crop: (size, size, 3) uint8."""
        width, height = picture.size
        side = min(width, height) * min(1.0, self.size / self.resize)
        left, top = (width - side) / 2, (height - side) / 2
        return self._cut(picture, (left, top, left + side, top + side), flip=False)

    def augmented(
        self,
        picture: Image,
        augmentation: Augmentation,
        random: np.random.Generator,
        overlay: Overlay | None = None,
    ) -> np.ndarray:
        """Return a random crop and flip, perhaps erased in part; the overlay is pasted whole and unflipped."""
        box = _random_box(picture.size, augmentation, random)
        pixels = self._normalised(self._cut(picture, box, flip=bool(random.random() < augmentation.flip)))
        # Nothing is drawn without erasing: crops and flips are those of before it was known.
        if augmentation.erasing and random.random() < augmentation.erasing:
            _erase(pixels, augmentation, random)
        return self._with_overlay(pixels, overlay)

    def _cut(self, picture: Image, box: tuple[float, float, float, float], flip: bool) -> np.ndarray:
        from PIL import Image as pillow

        method = pillow.Resampling[self.interpolation.upper()]
        cut = picture.resize((self.size, self.size), method, box=box, reducing_gap=3.0)
        if flip:
            cut = cut.transpose(pillow.Transpose.FLIP_LEFT_RIGHT)
        return np.asarray(cut)

    def _normalised(self, pixels: np.ndarray) -> np.ndarray:
        return _table(self.mean, self.std)(pixels)

    def _with_overlay(self, pixels: np.ndarray, overlay: Overlay | None) -> np.ndarray:
        for left, top, patch in overlay.patches(self.size, self.size) if overlay is not None else ():
            height, width = patch.shape[:2]
            pixels[:, top : top + height, left : left + width] = self._normalised(patch)
        return pixels


@lru_cache(maxsize=16)
def _table(mean: tuple[float, ...], std: tuple[float, ...]) -> ByteTable:
    """Return (byte / 255 − mean) / std, in single precision, of each byte of each channel."""
    scale = 1.0 / (255.0 * np.asarray(std, dtype=np.float32))
    shift = np.asarray(mean, dtype=np.float32) / np.asarray(std, dtype=np.float32)
    values = np.arange(256, dtype=np.uint8).astype(np.float32)[:, None]
    return ByteTable((values * scale - shift).T)


def randomly_cut(picture: Image, augmentation: Augmentation, random: np.random.Generator) -> Image:
    """Crop an image at random, to whole pixels of its own, perhaps flipped: for preprocessing of other libraries."""
    from PIL import Image as pillow

    left, top, right, bottom = (round(edge) for edge in _random_box(picture.size, augmentation, random))
    cut = picture.crop((left, top, max(right, left + 1), max(bottom, top + 1)))
    flip = random.random() < augmentation.flip
    return cut.transpose(pillow.Transpose.FLIP_LEFT_RIGHT) if flip else cut


def _random_box(
    size: tuple[int, int], augmentation: Augmentation, random: np.random.Generator
) -> tuple[float, float, float, float]:
    """Return a crop of random area and shape that fits, or after ten tries the largest central one."""
    width, height = size
    for _ in range(10):
        w, h = _random_sides(width * height, augmentation.scale, augmentation.ratio, random)
        if 1 <= w <= width and 1 <= h <= height:
            left, top = random.uniform(0, width - w), random.uniform(0, height - h)
            return left, top, left + w, top + h
    w = min(float(width), height * augmentation.ratio[1])
    h = min(float(height), width / augmentation.ratio[0])
    left, top = (width - w) / 2, (height - h) / 2
    return left, top, left + w, top + h


def _random_sides(
    whole: int, shares: tuple[float, float], ratios: tuple[float, float], random: np.random.Generator
) -> tuple[float, float]:
    """Return the sides of a rectangle of a random share of ``whole`` and a random first side over second."""
    area = whole * random.uniform(*shares)
    ratio = math.exp(random.uniform(math.log(ratios[0]), math.log(ratios[1])))
    return math.sqrt(area * ratio), math.sqrt(area / ratio)


def _erase(pixels: np.ndarray, augmentation: Augmentation, random: np.random.Generator) -> None:
    """Set a rectangle of random area, shape and place to 0; nothing when ten tries do not fit."""
    _, height, width = pixels.shape
    for _ in range(10):
        sides = _random_sides(height * width, augmentation.erasing_area, augmentation.erasing_ratio, random)
        h, w = map(round, sides)
        if 1 <= h < height and 1 <= w < width:
            top, left = random.integers(height - h + 1), random.integers(width - w + 1)
            pixels[:, top : top + h, left : left + w] = 0.0
            return
