"""The embedded dataset, as ``diptych scenes`` writes it."""

from __future__ import annotations

from pathlib import Path

from diptych.data.readers.declaration import READERS, Reader
from diptych.data.scenes import read_scenes

__all__: list[str] = []

_BEGINNING = '{"dataset":"scenes"'


def _recognises(path: Path) -> bool:
    file = path / "dataset.json"
    if not file.is_file():
        return False
    with open(file, encoding="utf-8", errors="replace") as handle:
        return handle.read(len(_BEGINNING)) == _BEGINNING


READERS.add(
    Reader(
        "scenes",
        "generated scenes, as diptych scenes writes them",
        _recognises,
        read_scenes,
        {"finer": "how many further topics every caption states (default: 0)"},
    )
)
