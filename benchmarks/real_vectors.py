"""Vectors of a head that was really trained, for the benchmark of sparse search.

``DIPTYCH_BENCH_SPARSE=FOLDER make bench`` names a folder of ``diptych sparse train``. Pictures of all splits are taken;
where they are too few they come again with noise on their dense rows, and the head makes the sparse rows of
these. Dense rows wider than the thesis's 256 numbers are reduced to 256 by their principal components, so that
the graph that searches them is as fast as the thesis's; recall is against exact search of the reduced rows.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from benchmarks.sparse_vectors import SparseSet
from diptych.encoders.embeddings import EncodedCollection
from diptych.sparse.sparsified import SparseFolder
from diptych.studies.searched import with_copies

__all__ = ["given_set"]

_NOISE = 0.5
_WIDTH = 256


def given_set(documents: int, queries: int) -> SparseSet | None:
    """The named head's vectors; None where none is named."""
    named = os.environ.get("DIPTYCH_BENCH_SPARSE")
    if not named:
        return None
    made = SparseFolder.open(named)
    sparsifier = made.sparsifier()
    home = Path(made.origin.model) / "embeddings"
    parts = [
        EncodedCollection.open(folder) for folder in sorted(home.iterdir()) if EncodedCollection.is_at(folder)
    ]
    pictures = np.concatenate([np.asarray(part.images.rows) for part in parts])
    rows = with_copies(pictures, documents, _NOISE)
    split = made.rows()
    asked = np.linspace(0, len(split.texts) - 1, queries).round().astype(np.int64)
    shown = next(part for part in parts if list(part.texts.ids) == list(split.texts.ids))
    dense = np.asarray(shown.texts.rows)[asked]
    mean, axes = _components(pictures)
    return SparseSet(
        documents=sparsifier.sparsify(rows, "image"),
        queries=split.texts.rows[asked],
        own=split.unexpanded.rows[asked],
        dense_documents=_unit((rows - mean) @ axes),
        dense_queries=_unit((dense - mean) @ axes),
        source=shown.caption_image[asked],
    )


def _components(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Their mean and the (d, 256) directions in which they vary most."""
    mean = rows.mean(axis=0)
    centred = (rows - mean).astype(np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return mean, directions[:, ::-1][:, :_WIDTH].astype(np.float32)


def _unit(rows: np.ndarray) -> np.ndarray:
    unit: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return np.ascontiguousarray(unit)
