"""Pictures by their colours and edges: a stand-in where there are no weights of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from diptych.commerce.category_to_image.features.pictures.contract import (
    PICTURES,
    NoOptions,
    PictureEncoder,
    PictureKind,
    Precision,
)
from diptych.commerce.category_to_image.features.pictures.grid_descriptor import GRID_WIDTH, describe_grid
from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint

__all__ = ["GridPictures"]

_VERSION = 1
"""Of the description: another one makes other rows."""


class GridPictures(PictureEncoder):
    """Colours and edges on a grid."""

    kind: ClassVar[str] = "grid"
    source = "grid"

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    @property
    def width(self) -> int:
        """Length of a row."""
        return GRID_WIDTH

    @property
    def fingerprint(self) -> str:
        """Of its version."""
        return fingerprint(self.kind, _VERSION, GRID_WIDTH)

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {
            "kind": self.kind,
            "source": self.source,
            "model": "colours and edges on an 8 × 8 grid: a stand-in without weights",
            "width": self.width,
            "fingerprint": self.fingerprint,
        }

    def prepared(self, item: Any, name: str) -> np.ndarray:
        """The row itself."""
        from diptych.encoders.inputs import as_picture

        return describe_grid(as_picture(item, name))

    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        """(n, width) float32 unit rows."""
        return np.stack(prepared)


def _make(rest: str, options: NoOptions, precision: Precision) -> PictureEncoder:
    if rest:
        raise UsageError(f"grid takes nothing behind it, got {rest!r}", "give grid alone")
    return GridPictures()


PICTURES.add(
    PictureKind(
        "grid",
        "grid",
        "colours and edges on an 8 × 8 grid: a stand-in without weights, which runs anywhere",
        "Dalal and Triggs 2005; Swain and Ballard 1991",
        NoOptions,
        _make,
    )
)
