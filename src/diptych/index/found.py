"""What a search for users finds: hits with captions and images, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.table import Table, Tabular

if TYPE_CHECKING:
    from PIL.Image import Image

# Where an index of products says which run they were embedded by, and how they were read.
OF_PRODUCTS = "category_run"

_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def query_type(query: Any) -> str:
    """Return ``image``, ``vectors`` or ``text``: files are known by their ending."""
    if not isinstance(query, str | Path):
        is_pixels = getattr(query, "dtype", None) == np.uint8 or hasattr(query, "convert")
        return "image" if is_pixels else "vectors"
    ending = Path(query).suffix.lower()
    if ending == ".npy":
        return "vectors"
    return "image" if ending in _IMAGES or isinstance(query, Path) else "text"


@dataclass(frozen=True)
class Hit:
    """An image, caption or product that was found."""

    name: str  # its id
    score: float
    text: str = ""  # a caption or title
    path: str = ""  # of the image's file, where it was requested
    image: Callable[[], Image] | None = None  # reads the image
    right: bool | None = None  # whether it is of the category that was searched for, where that is known


@dataclass(frozen=True)
class Found(Tabular):
    """The hits of one query, best first, and as a table; ``notes`` go below it."""

    query: str
    hits: Sequence[Hit]
    shown: Table
    notes: Sequence[str] = ()

    def tables(self) -> list[Table]:
        """Return the hits as a table."""
        return [self.shown]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, rank: int) -> Hit:
        return self.hits[rank]
