"""Small embeddings for the index's tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from diptych.encoders.embeddings import Embeddings, SparseEmbeddings, canonical_rows

MakeEmbeddings = Callable[..., Embeddings]
MakeBags = Callable[..., SparseEmbeddings]


@pytest.fixture(scope="session")
def make_embeddings():
    """Embeddings of given rows, or of ``count`` random unit rows."""

    def make(rows=None, *, count=200, width=16, ids=None):
        if rows is None:
            rows = np.random.default_rng(7).standard_normal((count, width)).astype(np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.asarray(rows, dtype=np.float32)
        names = [f"image-{row}" for row in range(len(rows))] if ids is None else list(ids)
        return Embeddings(names, rows, "encoder-a", "data-a", "image", {"dataset": "scenes"})

    return make


@pytest.fixture(scope="session")
def make_bags():
    """Sparse embeddings of given rows, or of ``count`` random bags over ``width`` terms, some terms in most."""

    def make(rows=None, *, count=200, width=40, ids=None):
        if rows is None:
            rng = np.random.default_rng(7)
            share = np.minimum(0.9, 2 / (np.arange(width) + 1))
            rows = rng.gamma(2, 0.5, (count, width)) * (rng.random((count, width)) < share)
        bags = canonical_rows(rows)
        names = [f"image-{row}" for row in range(bags.shape[0])] if ids is None else list(ids)
        terms = [f"term-{column}" for column in range(bags.shape[1])]
        return SparseEmbeddings(names, bags, terms, "encoder-a", "data-a", "image", {"dataset": "scenes"})

    return make


@pytest.fixture(params=["exact", "hnsw"])
def engine(request):
    """Each engine in turn."""
    return str(request.param)
