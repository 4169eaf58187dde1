"""The embedded dataset, as ``diptych data scenes`` writes it."""

from pathlib import Path

from diptych.data.collection import Collection
from diptych.data.readers.contract import begins, reader
from diptych.data.scenes import read_scenes


@reader(
    "scenes",
    "generated scenes, as diptych data scenes writes them",
    "dataset.json",
    claims=begins('{"dataset":"scenes"'),
)
def read(path: Path | str, finer: int = 0) -> Collection:
    return read_scenes(path, finer)
