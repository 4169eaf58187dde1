"""Targets on disk: computed once per model and caption, whatever the collection, memory-mapped.

A store is a folder named by the model's fingerprint, whose rows are kept under the fingerprints of their captions'
texts; see :mod:`diptych.encoders.row_store`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from diptych.encoders.row_store import keyed_rows, text_keys
from diptych.encoders.targets.contract import BATCH_SIZE, TargetModel

logger = logging.getLogger(__name__)


def targets_of(
    model: TargetModel, captions: Sequence[str], root: Path | str, batch_size: int = BATCH_SIZE
) -> np.ndarray:
    """(n, width) float32 unit rows, one per caption, memory-mapped for reading."""
    if not captions:
        return np.empty((0, model.width), dtype=np.float32)

    def make(places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return model.encode_batches([captions[place] for place in places], batch_size)

    folder, texts = Path(root) / model.fingerprint, text_keys(captions)
    rows, was_there = keyed_rows(folder, texts, model.width, make, doing="encoding captions", unit="captions")
    if not was_there:
        empty = sum(
            int((~block.any(axis=1)).sum()) for block in np.array_split(rows, -(-len(rows) // 65_536))
        )
        if empty:
            logger.warning("%d of %d captions have no target: no known word in them", empty, len(rows))
    return rows
