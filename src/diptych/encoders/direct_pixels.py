"""Other libraries' preprocessing in fewer steps, bit for bit the same: for encoding many pictures.

transformers turns a picture into an array, back into a picture to resize it, into an array again, and
normalises in double precision; half of the time is on the way. Where the settings say resize, crop and
normalise, that is done directly: Pillow's resize and crop, then a table (:mod:`byte_table`). Whether it
is the same is seen on a few pictures first; where it is not, the library's own call is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.overlay import Overlay, pasted
from diptych.encoders.inputs import ByteTable

if TYPE_CHECKING:
    from PIL.Image import Image


# Pictures prepared by other libraries' preprocessing, with an overlay pasted before it normalises.
#
# What is pasted has to be in pixels of what the model sees, so the preprocessing is taken apart: crop and
# resize, paste, then the numbers. Without an overlay it stays the one call that it is.


def processed_pixels(
    processor: Any, picture: Image, overlay: Overlay | None = None, check: bool = True
) -> np.ndarray:
    """One picture through an image processor of transformers: (3, height, width) float32."""
    if overlay is None:
        return _processed(processor, picture)
    more = {"include_top": False} if hasattr(processor, "include_top") else {}
    cut = np.moveaxis(_processed(processor, picture, do_rescale=False, do_normalize=False, **more), 0, -1)

    def finished(pixels: np.ndarray) -> np.ndarray:
        return _processed(processor, _picture(pixels), do_resize=False, do_center_crop=False, do_pad=False)

    if cut.dtype != np.uint8 or (check and not np.array_equal(finished(cut), _processed(processor, picture))):
        raise _no_parts(type(processor).__name__)
    return finished(pasted(cut, overlay))


def composed_pixels(preprocess: Any, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
    """One picture through a torchvision ``Compose``, as open_clip has them: (3, height, width) float32."""
    if overlay is None:
        pixels: np.ndarray = preprocess(picture).numpy()
        return pixels
    parts = composed_parts(preprocess)
    if parts is None:
        raise _no_parts(type(preprocess).__name__)
    cut, finish = parts
    return finish(pasted(cut(picture), overlay))


def composed_parts(
    preprocess: Any,
) -> tuple[Callable[[Image], np.ndarray], Callable[[np.ndarray], np.ndarray]] | None:
    """A ``Compose`` in two: from picture to (height, width, 3) uint8, and on to (3, height, width) float32.

    None where no step makes a tensor of a picture.
    """
    steps = getattr(preprocess, "transforms", [])
    names = [type(step).__name__ for step in steps]
    place = next((row for row, name in enumerate(names) if name in ("MaybeToTensor", "ToTensor")), None)
    if place is None:
        return None

    def cut(picture: Image) -> np.ndarray:
        for step in steps[:place]:
            picture = step(picture)
        return np.asarray(picture)

    def finish(pixels: np.ndarray) -> np.ndarray:
        values: Any = _picture(pixels)
        for step in steps[place:]:
            values = step(values)
        found: np.ndarray = values.numpy()
        return found

    return cut, finish


def _processed(processor: Any, picture: Image, **options: bool) -> np.ndarray:
    prepared = processor(images=[picture], return_tensors="np", **options)
    if set(prepared) != {"pixel_values"}:
        raise UsageError(
            f"{type(processor).__name__} makes {', '.join(prepared)} of a picture, more than pixels",
            "use a model that takes pictures of one size",
        )
    pixels: np.ndarray = prepared["pixel_values"][0]
    return pixels


def _picture(pixels: np.ndarray) -> Image:
    from PIL import Image as pillow

    return pillow.fromarray(pixels)


def _no_parts(name: str) -> UsageError:
    return UsageError(
        f"{name} does not crop first and normalise last: nothing can be pasted over what the model sees",
        "use a model with CLIP's preprocessing for shortcuts on pictures",
    )


_TRIED = ((500, 375), (333, 500), (97, 41), (64, 64))
"""Sizes, width and height, of the pictures on which both ways have to agree."""


@dataclass(frozen=True)
class _Direct:
    """Crop and resize to bytes, then the table."""

    cut: Callable[[Image], np.ndarray]
    table: ByteTable

    def __call__(self, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
        pixels = self.cut(picture)
        return self.table(pixels if overlay is None else pasted(pixels, overlay))

    def agrees(self, whole: Callable[[Image], np.ndarray]) -> bool:
        """Whether pictures of several shapes come out as ``whole`` gives them."""
        from PIL import Image as pillow

        random = np.random.default_rng(0)
        for width, height in _TRIED:
            noise = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
            picture = pillow.fromarray(noise)
            if not np.array_equal(self(picture), whole(picture)):
                return False
        return True


class ProcessorPixels:
    """Pictures through an image processor of transformers: (3, height, width) float32."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor
        self._can_paste = False

    @cached_property
    def one_size(self) -> bool:
        """Whether the processor gives pixels and nothing else, so that pictures can be stacked."""
        from PIL import Image as pillow

        prepared = self.processor(images=[pillow.new("RGB", (64, 48))], return_tensors="np")
        return set(prepared) == {"pixel_values"}

    @cached_property
    def _direct(self) -> _Direct | None:
        cut = _cut_of(self.processor.to_dict()) if hasattr(self.processor, "to_dict") else None
        if cut is None or not self.one_size:
            return None
        steps = {"do_resize": False, "do_center_crop": False, "do_pad": False}
        table = ByteTable.of(lambda pixels: _whole(self.processor, pixels, **steps))
        direct = None if table is None else _Direct(cut, table)
        return direct if direct and direct.agrees(lambda picture: _whole(self.processor, picture)) else None

    def __call__(self, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
        """One RGB picture, the overlay pasted on what is left after cropping and resizing."""
        if self._direct is not None:
            return self._direct(picture, overlay)
        pixels = processed_pixels(self.processor, picture, overlay, check=not self._can_paste)
        self._can_paste |= overlay is not None
        return pixels


class ComposedPixels:
    """Pictures through a torchvision ``Compose``, as open_clip has them: (3, height, width) float32."""

    def __init__(self, preprocess: Any) -> None:
        self.preprocess = preprocess

    @cached_property
    def _direct(self) -> _Direct | None:
        parts = composed_parts(self.preprocess)
        if parts is None:
            return None
        cut, finish = parts
        table = ByteTable.of(finish)
        direct = None if table is None else _Direct(cut, table)
        return direct if direct and direct.agrees(lambda picture: self.preprocess(picture).numpy()) else None

    def __call__(self, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
        """One RGB picture, the overlay pasted on what is left after cropping and resizing."""
        if self._direct is not None:
            return self._direct(picture, overlay)
        return composed_pixels(self.preprocess, picture, overlay)


def _whole(processor: Any, picture: Any, **options: bool) -> np.ndarray:
    from PIL import Image as pillow

    if isinstance(picture, np.ndarray):
        picture = pillow.fromarray(picture)
    pixels: np.ndarray = processor(images=[picture], return_tensors="np", **options)["pixel_values"][0]
    return pixels


def _cut_of(settings: dict[str, Any]) -> Callable[[Image], np.ndarray] | None:
    """Resize and central crop as the settings of a Pillow processor say; None where they say more."""
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
