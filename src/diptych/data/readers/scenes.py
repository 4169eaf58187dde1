"""The embedded dataset, as ``diptych data scenes`` writes it."""

from __future__ import annotations

from pathlib import Path

from diptych.core.reading import beginning_of
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.scenes import read_scenes

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
