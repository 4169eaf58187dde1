"""The embedded dataset, as ``diptych data scenes`` writes it."""

from __future__ import annotations

from pathlib import Path

from diptych.core.reading import beginning_of
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.scenes import read_product_scenes, read_scenes

_BEGINNING = '{"dataset":"scenes"'


def _recognises(path: Path) -> bool:
    return beginning_of(path / "dataset.json", len(_BEGINNING)) == _BEGINNING


READERS.add(
    Reader(
        "scenes",
        "generated scenes, as diptych data scenes writes them",
        _recognises,
        read_scenes,
        {"finer": "how many further topics every caption states (default: 0)"},
    )
)


_PRODUCT_SCENES_BEGINNING = '{"dataset":"product-scenes"'


def _product_scenes_recognises(path: Path) -> bool:
    return beginning_of(path / "dataset.json", len(_PRODUCT_SCENES_BEGINNING)) == _PRODUCT_SCENES_BEGINNING


READERS.add(
    Reader(
        "product-scenes",
        "generated products with a category tree, as diptych data products writes them",
        _product_scenes_recognises,
        read_product_scenes,
        {},
    )
)
