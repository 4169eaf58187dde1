"""From an image to the numbers an image tower takes: crop, resize, normalise, augment, and paste overlays last.

Other libraries' preprocessing is done in fewer steps, bit for bit the same: resize, crop and normalise are Pillow's
resize and crop, then a table, in half of the time, where a few images prove the same; else the library is called.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from PIL import Image as pillow
from PIL.Image import Image
from pydantic import Field, model_validator

from diptych.core.errors import UsageError
from diptych.core.options import Options
from diptych.data.images import Overlay, pasted
from diptych.encoders.inputs import ByteTable

# From an image to (height, width, 3) uint8.
Cut: TypeAlias = Callable[[Image], np.ndarray]
Finish: TypeAlias = Callable[[np.ndarray], np.ndarray]


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
    def _ranges(self) -> Self:
        for name, highest in (("erasing_area", 1.0), ("erasing_ratio", math.inf)):
            low, high = getattr(self, name)
            if not 0 < low <= high <= highest:
                raise ValueError(f"{name} ({low}, {high}) is not a range of positive shares, smaller first")
        return self


class Preprocessing(Options):
    """Turn an image into a (3, size, size) float32 array."""

    size: int = Field(224, ge=8, le=4096)  # side of the square the tower sees, in pixels
    resize: int = Field(256, ge=8, le=8192)  # length the shorter side is resized to before the central crop
    interpolation: Literal["bilinear", "bicubic"] = "bicubic"  # with Pillow's antialiasing
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)  # per channel, of values in [0, 1]
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)  # per channel, as mean

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
    scale = 1.0 / (255.0 * np.asarray(std, dtype=np.float32))
    shift = np.asarray(mean, dtype=np.float32) / np.asarray(std, dtype=np.float32)
    values = np.arange(256, dtype=np.uint8).astype(np.float32)[:, None]
    return ByteTable((values * scale - shift).T)


def randomly_cut(picture: Image, augmentation: Augmentation, random: np.random.Generator) -> Image:
    """Crop an image at random, to whole pixels of its own, perhaps flipped: for preprocessing of other libraries."""
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


_TRIED = ((375, 500), (500, 333), (41, 97), (64, 64))  # (height, width) of images on which both have to agree


class LibraryPixels(ABC):
    """One RGB image → (3, height, width) float32, as a library's own preprocessing."""

    def __init__(self, library: Any) -> None:
        self.library = library

    @abstractmethod
    def whole(self, picture: Image) -> np.ndarray:
        """Call the library."""

    @abstractmethod
    def halves(self) -> Iterator[tuple[Cut, Finish]]:
        """Yield ways to cut an image and to make numbers of what is left, the fastest first."""

    @cached_property
    def direct(self) -> tuple[Cut, ByteTable] | None:
        """Return a cut and a table with the library's bits; None where there are none."""
        random = np.random.default_rng(0)
        tried = [pillow.fromarray(random.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in _TRIED]
        for cut, finish in self.halves():
            table = ByteTable.of(finish)
            pairs = ((cut(one), self.whole(one)) for one in tried)
            if table and all(one.dtype == np.uint8 and np.array_equal(table(one), two) for one, two in pairs):
                return cut, table
        return None

    def __call__(self, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
        if self.direct is not None:
            cut, table = self.direct
            pixels = cut(picture)
            return table(pixels if overlay is None else pasted(pixels, overlay))
        if overlay is None:
            return self.whole(picture)
        raise UsageError(
            f"{type(self.library).__name__} does not crop first and normalise last: nothing can be pasted over "
            "what the model sees",
            "use a model with CLIP's preprocessing for shortcuts on images",
        )


class ProcessorPixels(LibraryPixels):
    """An image processor of transformers."""

    @cached_property
    def one_size(self) -> bool:
        """Return whether it gives pixels and nothing else, so that images can be stacked."""
        found = self.library(images=[pillow.fromarray(np.zeros((48, 64, 3), np.uint8))], return_tensors="np")
        return set(found) == {"pixel_values"}

    def whole(self, picture: Image, **options: bool) -> np.ndarray:
        prepared = self.library(images=[picture], return_tensors="np", **options)
        if set(prepared) != {"pixel_values"}:
            raise UsageError(
                f"{type(self.library).__name__} makes {', '.join(prepared)} of an image, more than pixels",
                "use a model that takes images of one size",
            )
        return np.asarray(prepared["pixel_values"][0])

    def halves(self) -> Iterator[tuple[Cut, Finish]]:
        if not self.one_size:
            return
        quick = _cut_of(self.library.to_dict()) if hasattr(self.library, "to_dict") else None
        for cut in (quick, self._cut) if quick else (self._cut,):
            yield cut, self._finish

    def _cut(self, picture: Image) -> np.ndarray:
        more = {"include_top": False} if hasattr(self.library, "include_top") else {}
        return np.moveaxis(self.whole(picture, do_rescale=False, do_normalize=False, **more), 0, -1)

    def _finish(self, pixels: np.ndarray) -> np.ndarray:
        return self.whole(pillow.fromarray(pixels), do_resize=False, do_center_crop=False, do_pad=False)


class ComposedPixels(LibraryPixels):
    """A ``Compose`` of torchvision, as open_clip has them."""

    def whole(self, picture: Image) -> np.ndarray:
        return np.asarray(self.library(picture).numpy())

    def halves(self) -> Iterator[tuple[Cut, Finish]]:
        steps, compose = getattr(self.library, "transforms", []), type(self.library)
        places = [
            row for row, step in enumerate(steps) if type(step).__name__ in ("MaybeToTensor", "ToTensor")
        ]
        if places:
            cut, finish = compose(steps[: places[0]]), compose(steps[places[0] :])
            yield lambda one: np.asarray(cut(one)), lambda one: finish(pillow.fromarray(one)).numpy()


def _cut_of(settings: dict[str, Any]) -> Cut | None:
    """Return resize and central crop as the settings of a Pillow processor say; None where they say more."""
    size = {name: value for name, value in dict(settings.get("size") or {}).items() if value is not None}
    crop = settings.get("crop_size") if settings.get("do_center_crop") else None
    known = set(size) in ({"shortest_edge"}, {"height", "width"})
    if not settings.get("do_resize") or not known or settings.get("do_pad"):
        return None

    def cut(picture: Image) -> np.ndarray:
        width, height = picture.size
        if "shortest_edge" in size:
            short = size["shortest_edge"]
            longer = int(short * max(width, height) / min(width, height))
            width, height = (short, longer) if width <= height else (longer, short)
        else:
            width, height = size["width"], size["height"]
        resized = picture.resize((width, height), resample=settings["resample"])
        if crop is not None:
            left, top = (width - crop["width"]) // 2, (height - crop["height"]) // 2
            resized = resized.crop((left, top, left + crop["width"], top + crop["height"]))
        return np.asarray(resized)

    return cut
