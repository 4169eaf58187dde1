"""A collection's pictures with overlays on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.fingerprint import fingerprint
from diptych.data.overlay import Overlay

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.data.collection import ImageSource


class ShortcutSource:
    """Another source's pictures, each with its overlay.

    Args:
        rows: (n,) the row in ``pictures`` of each row here.
    """

    def __init__(
        self, pictures: ImageSource, rows: np.ndarray, overlay_of: Callable[[int], Overlay | None]
    ) -> None:
        self._pictures = pictures
        self._rows = rows
        self._overlay_of = overlay_of

    def read(self, row: int) -> Image:
        """The picture of source row ``row`` without its overlay, upright, RGB."""
        return self._pictures.read(int(self._rows[row]))

    def overlay(self, row: int) -> Overlay | None:
        """What goes over the picture of source row ``row``."""
        return self._overlay_of(row)

    def content(self, row: int) -> str:
        """A fingerprint of the picture's bytes and of its overlay's."""
        plain = self._pictures.content(int(self._rows[row]))
        overlay = self.overlay(row)
        return plain if overlay is None else fingerprint(plain, overlay.key)
