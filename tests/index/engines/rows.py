"""Sparse rows for the engines of other libraries."""

from __future__ import annotations

import numpy as np

from diptych.encoders.embeddings import SparseEmbeddings, canonical_rows


def bags(rows, ids=None):
    matrix = canonical_rows(np.asarray(rows, dtype=np.float32) if isinstance(rows, list) else rows)
    names = [f"image-{row}" for row in range(matrix.shape[0])] if ids is None else ids
    terms = [f"term-{column}" for column in range(matrix.shape[1])]
    return SparseEmbeddings(names, matrix, terms, "head-a", "data-a", "image", {"dataset": "scenes"})


def random_rows(count, width, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.exponential(1, (count, width)) * (rng.random((count, width)) < 0.2)
    return rows.astype(np.float32)
