"""The embedded shop, as ``diptych scenes --products`` writes it."""

from __future__ import annotations

from pathlib import Path

from diptych.data.readers.declaration import READERS, Reader
from diptych.data.scenes import read_product_scenes

__all__: list[str] = []

_BEGINNING = '{"dataset":"product-scenes"'


def _recognises(path: Path) -> bool:
    file = path / "dataset.json"
    if not file.is_file():
        return False
    with open(file, encoding="utf-8", errors="replace") as handle:
        return handle.read(len(_BEGINNING)) == _BEGINNING


READERS.add(
    Reader(
        "product-scenes",
        "generated products with a category tree, as diptych scenes --products writes them",
        _recognises,
        read_product_scenes,
        {},
    )
)
