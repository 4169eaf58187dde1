"""Pictures with something laid over them after they have been cropped and resized.

What is laid over a picture (the digits of a shortcut) has to survive every crop, flip and erasure, and
its size is in pixels of what a tower sees. So a picture carries its overlay along, and whoever prepares
pictures for a tower pastes it last, just before or after the numbers are normalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image


class Patch(NamedTuple):
    """Opaque pixels and where they go.

    Attributes:
        left, top: of the patch's first pixel, in pixels of the prepared picture.
        pixels: (height, width, 3) uint8.
    """

    left: int
    top: int
    pixels: np.ndarray


class Overlay(Protocol):
    """What is pasted over a prepared picture."""

    @property
    def key(self) -> str:
        """Return a name by content: the same overlay has the same key."""

    def patches(self, width: int, height: int) -> Sequence[Patch]:
        """Return the patches for a prepared picture of ``width`` × ``height`` pixels, the last on top."""


@dataclass(frozen=True)
class OverlaidPicture:
    """A picture as an encoder takes it, and what goes over it once it is prepared."""

    picture: Image
    overlay: Overlay


@runtime_checkable
class OverlaySource(Protocol):
    """An image source whose pictures have overlays."""

    def overlay(self, row: int) -> Overlay | None:
        """Return what goes over the picture of source row ``row``; None for nothing."""


def split_overlay(item: Any) -> tuple[Any, Overlay | None]:
    """Return a picture and its overlay; anything else as it is, with None."""
    if isinstance(item, OverlaidPicture):
        return item.picture, item.overlay
    return item, None


def pasted(pixels: np.ndarray, overlay: Overlay) -> np.ndarray:
    """Return a copy of (height, width, 3) uint8 ``pixels`` with the overlay's patches on it."""
    copy = pixels.copy()
    for left, top, patch in overlay.patches(pixels.shape[1], pixels.shape[0]):
        copy[top : top + patch.shape[0], left : left + patch.shape[1]] = patch
    return copy
