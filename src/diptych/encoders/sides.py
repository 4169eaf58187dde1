"""The two halves of a collection on their way to embeddings: pictures and captions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.context import Task, task
from diptych.core.errors import DataError, StorageError
from diptych.core.files import recover_folder
from diptych.core.reading import read_json
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings, embeddings_header
from diptych.encoders.row_blocks import RowBlocks, RowPlan, forget_plan

_IMAGE_BLOCK = 64
_TEXT_BLOCK = 8192

HALVES = ("images", "texts")
"""The folders of both."""


@dataclass(frozen=True)
class Side:
    """The pictures or the captions of a collection.

    Attributes:
        rows: what is there of them.
        target: the folder that they will be.
        ids: one per row.
        header: of the finished embeddings.
    """

    rows: RowBlocks
    target: Path
    ids: Sequence[str]
    header: dict[str, Any]

    @property
    def unit(self) -> str:
        """What one row is of, in the plural."""
        return "pictures" if self.rows.plan.kind == "image" else "captions"

    @contextmanager
    def bar(self, done: int) -> Iterator[Task]:
        """How far it is, of which ``done`` rows were there before."""
        with task(f"embedding {self.unit}", self.rows.plan.count, self.unit, done) as bar:
            yield bar


def sides_of(encoder: DualEncoder, collection: Collection, folder: Path, about: dict[str, Any]) -> list[Side]:
    """What is not finished yet of a collection's embeddings in ``folder``, pictures first."""
    sides, weights, data = [], encoder.fingerprint, about["data"]
    for name, kind, ids, block in zip(
        HALVES,
        ("image", "text"),
        (collection.image_ids, collection.caption_ids),
        (_IMAGE_BLOCK, _TEXT_BLOCK),
        strict=True,
    ):
        target = folder / name
        header = embeddings_header(kind, weights, data, about, encoder.similarity)
        if _is_made(target, header, len(ids)):
            continue  # finished before something interrupted the other half
        plan = RowPlan(kind, weights, data, len(ids), encoder.width, block, encoder.similarity)
        sides.append(Side(RowBlocks.begin(target, plan), target, ids, header))
    return sides


def _is_made(target: Path, header: dict[str, Any], count: int) -> bool:
    try:
        recover_folder(target)
        made = read_json(target / "embeddings.json") == header and len(Embeddings.open(target)) == count
        if made:
            forget_plan(target)
        return made
    except (StorageError, DataError):
        return False  # missing or damaged
