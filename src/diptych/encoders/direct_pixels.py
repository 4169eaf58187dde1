"""Other libraries' preprocessing in fewer steps, bit for bit the same, with an overlay pasted where the model sees it.

Resize, crop and normalise are Pillow's resize and crop, then a table, in half of the time, where a few images prove the
same; else the library is called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.images import Overlay, pasted
from diptych.encoders.inputs import ByteTable

if TYPE_CHECKING:
    from PIL.Image import Image

    Cut: TypeAlias = Callable[[Image], np.ndarray]
    """From an image to (height, width, 3) uint8."""

_TRIED = ((375, 500), (500, 333), (41, 97), (64, 64))  # (height, width) of images on which both have to agree


class LibraryPixels(ABC):
    """One RGB image → (3, height, width) float32, as a library's own preprocessing."""

    def __init__(self, library: Any) -> None:
        self.library = library

    @abstractmethod
    def whole(self, picture: Image) -> np.ndarray:
        """Call the library."""

    @abstractmethod
    def _halves(self) -> tuple[Cut, Callable[[np.ndarray], np.ndarray]] | None:
        """Return how an image is cut and how what is left becomes numbers; None where it is done otherwise."""

    def _paste(self, picture: Image, overlay: Overlay) -> np.ndarray:
        halves = self._halves()
        if halves is None:
            raise self._no_parts()
        cut, finish = halves
        return finish(pasted(cut(picture), overlay))

    @cached_property
    def direct(self) -> tuple[Cut, ByteTable] | None:
        """Return a cut and a table with the library's bits; None where there are none."""
        halves = self._halves()
        if halves is None:
            return None
        cut, table = halves[0], ByteTable.of(halves[1])
        random = np.random.default_rng(0)
        tried = [_picture(random.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in _TRIED]
        if table is None or any(not np.array_equal(table(cut(one)), self.whole(one)) for one in tried):
            return None
        return cut, table

    def __call__(self, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
        if self.direct is not None:
            cut, table = self.direct
            pixels = cut(picture)
            return table(pixels if overlay is None else pasted(pixels, overlay))
        return self.whole(picture) if overlay is None else self._paste(picture, overlay)

    def _no_parts(self) -> UsageError:
        return UsageError(
            f"{type(self.library).__name__} does not crop first and normalise last: nothing can be pasted over "
            "what the model sees",
            "use a model with CLIP's preprocessing for shortcuts on pictures",
        )


class ProcessorPixels(LibraryPixels):
    """An image processor of transformers."""

    @cached_property
    def one_size(self) -> bool:
        """Whether it gives pixels and nothing else, so that images can be stacked."""
        found = self.library(images=[_picture(np.zeros((48, 64, 3), np.uint8))], return_tensors="np")
        return set(found) == {"pixel_values"}

    def whole(self, picture: Image, **options: bool) -> np.ndarray:
        prepared = self.library(images=[picture], return_tensors="np", **options)
        if set(prepared) != {"pixel_values"}:
            raise UsageError(
                f"{type(self.library).__name__} makes {', '.join(prepared)} of a picture, more than pixels",
                "use a model that takes pictures of one size",
            )
        pixels: np.ndarray = prepared["pixel_values"][0]
        return pixels

    def _finish(self, pixels: np.ndarray) -> np.ndarray:
        return self.whole(_picture(pixels), do_resize=False, do_center_crop=False, do_pad=False)

    def _halves(self) -> tuple[Cut, Callable[[np.ndarray], np.ndarray]] | None:
        cut = _cut_of(self.library.to_dict()) if hasattr(self.library, "to_dict") else None
        return (cut, self._finish) if cut is not None and self.one_size else None

    def _paste(self, picture: Image, overlay: Overlay) -> np.ndarray:
        more = {"include_top": False} if hasattr(self.library, "include_top") else {}
        cut = np.moveaxis(self.whole(picture, do_rescale=False, do_normalize=False, **more), 0, -1)
        if cut.dtype != np.uint8 or not np.array_equal(self._finish(cut), self.whole(picture)):
            raise self._no_parts()
        return self._finish(pasted(cut, overlay))


class ComposedPixels(LibraryPixels):
    """A ``Compose`` of torchvision, as open_clip has them."""

    def whole(self, picture: Image) -> np.ndarray:
        pixels: np.ndarray = self.library(picture).numpy()
        return pixels

    def _halves(self) -> tuple[Cut, Callable[[np.ndarray], np.ndarray]] | None:
        steps = getattr(self.library, "transforms", [])
        names = [type(step).__name__ for step in steps]
        place = next((row for row, name in enumerate(names) if name in ("MaybeToTensor", "ToTensor")), None)
        if place is None:
            return None
        compose = type(self.library)
        cut, finish = compose(steps[:place]), compose(steps[place:])
        return lambda picture: np.asarray(cut(picture)), lambda pixels: finish(_picture(pixels)).numpy()


def _picture(pixels: np.ndarray) -> Image:
    from PIL import Image as pillow

    return pillow.fromarray(pixels)


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
