"""Pictures prepared by other libraries' preprocessing, with an overlay pasted before it normalises.

What is pasted has to be in pixels of what the model sees, so the preprocessing is taken apart: crop and
resize, paste, then the numbers. Without an overlay it stays the one call that it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.overlay import Overlay, pasted

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["composed_parts", "composed_pixels", "processed_pixels"]


def processed_pixels(
    processor: Any, picture: Image, overlay: Overlay | None = None, check: bool = True
) -> np.ndarray:
    """One picture through an image processor of transformers: (3, height, width) float32.

    Args:
        processor: crops, resizes and normalises.
        picture: RGB.
        overlay: pasted on what is left after cropping and resizing.
        check: see first that the picture alone, taken apart, gives the bits of the one call.

    Raises:
        UsageError: a processor that gives more than pixels, or, with an overlay, one whose cropping and
            normalising cannot be told apart.
        ImageError: the overlay does not fit.
    """
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
    """One picture through a torchvision ``Compose``, as open_clip has them: (3, height, width) float32.

    Raises:
        UsageError: with an overlay, a preprocessing that has no step from picture to tensor.
        ImageError: the overlay does not fit.
    """
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
