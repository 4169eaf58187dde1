"""Latent targets: captions in, unit rows out, the same rows for the same captions; kept on disk per model."""

import importlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from diptych.core.artifact import Artifact
from diptych.core.context import task
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.core.files import atomic_folder
from diptych.core.options import Options
from diptych.data.row_store import keyed_rows, text_keys
from diptych.encoders.dual_encoder import unit_rows

logger: logging.Logger = logging.getLogger(__name__)


class TargetOptions(Options):
    """Options of the model that makes the vectors."""

    kind: str = "sentence"  # or lsa (of the training captions), or dual (text side of a dual encoder)
    # Of sentence: a folder, or a name on the hub; of dual: what DualEncoder.load takes.
    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    # Of sentence; with bfloat16, two to three times as fast on some CPUs, rows turn by up to 2e-5 in 1 − cosine.
    precision: Literal["float32", "bfloat16"] = "float32"
    width: int = Field(384, ge=2)  # of lsa: length of a vector
    shuffled: bool = False  # give each training caption the vector of another one, as a control


@dataclass(frozen=True)
class TargetHeader(Artifact, kind="targets", version=2, recreate="recreate the targets"):
    kind: str
    fingerprint: str
    settings: dict[str, Any]  # what its other files do not hold


BATCH_SIZE = 64  # on a CPU core larger batches were slower


class TargetModel(ABC):
    kind: ClassVar[str]
    source: str  # the model, for a run's records

    @property
    @abstractmethod
    def width(self) -> int: ...

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Return the fingerprint of everything a row depends on: weights, vocabulary, settings."""

    def describe(self) -> dict[str, Any]:
        known = {"kind": self.kind, "model": self.source, "width": self.width}
        return {**known, "fingerprint": self.fingerprint, **self._about()}

    def _about(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def _rows(self, texts: list[str]) -> np.ndarray:
        """Return (n, width) rows of any length."""

    @abstractmethod
    def _write(self, folder: Path) -> dict[str, Any]:
        """Write the files that opening needs, if any, and return the settings that it needs."""

    def encode(self, texts: Sequence[str], batch_size: int = BATCH_SIZE) -> np.ndarray:
        """Return (n, width) float32 unit rows, each distinct text computed once; zeros for an unknown one."""
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        rows = np.empty((len(place), self.width), dtype=np.float32)
        with task("encoding captions", len(place), "captions") as bar:
            for positions, block in self.encode_batches(list(place), batch_size):
                rows[positions] = block
                bar.advance(len(positions))
        return rows[[place[text] for text in texts]] if len(place) < len(texts) else rows

    def encode_batches(
        self, texts: Sequence[str], batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield positions in ``texts`` and their unit rows, batch by batch, long texts first: little is padding."""
        if batch_size < 1:
            raise UsageError(f"batch size {batch_size}", "give one of at least 1")
        order = np.argsort([-len(text) for text in texts], kind="stable")
        for start in range(0, len(texts), batch_size):
            positions = order[start : start + batch_size]
            batch = [texts[position] for position in positions]
            yield positions, unit_rows(self._rows(batch), "caption", np.array(batch))

    def save(self, folder: Path | str) -> Path:
        folder = Path(folder)
        with atomic_folder(folder, TargetHeader.marker()) as temporary:
            settings = self._write(temporary)
            TargetHeader(self.kind, self.fingerprint, settings).write_header(temporary)
        return folder


_KINDS = {"dual": "DualTexts", "lsa": "LatentSemanticAnalysis", "sentence": "SentenceEncoder"}


def _class_of(kind: str) -> Any:
    if kind not in _KINDS:
        raise UnknownNameError("kind of target", kind, _KINDS)
    return getattr(importlib.import_module(f"diptych.encoders.targets.kinds.{kind}"), _KINDS[kind])


def make_target_model(options: TargetOptions, training_captions: Sequence[str]) -> TargetModel:
    return _class_of(options.kind).make(options, training_captions)  # type: ignore[no-any-return]


def open_target_model(folder: Path | str) -> TargetModel:
    """Open what :meth:`TargetModel.save` wrote."""
    folder = Path(folder)
    header = TargetHeader.open(folder)
    model: TargetModel = _class_of(header.kind).reopen(folder, header.settings)
    if model.fingerprint != header.fingerprint:
        raise MismatchError(
            f"the {model.kind} model of {folder} was {header.fingerprint} when it was saved "
            f"and is {model.fingerprint} now ({model.describe()['model']})",
            "put the model's old files back, or start anew with the new ones",
        )
    return model


def stored_rows(
    model: TargetModel, texts: Sequence[str], root: Path | str, unit: str
) -> tuple[np.ndarray, bool]:
    """Return (n, width) float32 unit rows, memory-mapped, zeros for a blank text; and whether all were stored."""
    if not len(texts):
        return np.empty((0, model.width), dtype=np.float32), True

    def make(places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        blank = np.array([not texts[place].strip() for place in places], dtype=bool)
        yield np.flatnonzero(blank), np.zeros((int(blank.sum()), model.width), dtype=np.float32)
        read = np.flatnonzero(~blank)
        for numbers, rows in model.encode_batches([texts[place] for place in places[read]]):
            yield read[numbers], rows

    folder = Path(root) / model.fingerprint
    return keyed_rows(folder, text_keys(texts), model.width, make, doing=f"encoding {unit}", unit=unit)


def targets_of(model: TargetModel, captions: Sequence[str], root: Path | str) -> np.ndarray:
    """Return (n, width) float32 unit rows, one per caption, memory-mapped for reading."""
    rows, were_there = stored_rows(model, captions, root, "captions")
    if not were_there:
        blocks = np.array_split(rows, -(-len(rows) // 65_536))
        empty = sum(int((~block.any(axis=1)).sum()) for block in blocks)
        if empty:
            logger.warning("%d of %d captions have no target: no known word in them", empty, len(rows))
    return rows
