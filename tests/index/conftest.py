"""Small embeddings for the index's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from diptych.encoders.embeddings import Embeddings

MakeEmbeddings = Callable[..., Embeddings]


@pytest.fixture(scope="session")
def make_embeddings() -> MakeEmbeddings:
    """Embeddings of given rows, or of ``count`` random unit rows."""

    def make(
        rows: np.ndarray | None = None, *, count: int = 200, width: int = 16, ids: Sequence[str] | None = None
    ) -> Embeddings:
        if rows is None:
            rows = np.random.default_rng(7).standard_normal((count, width)).astype(np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.asarray(rows, dtype=np.float32)
        names = [f"image-{row}" for row in range(len(rows))] if ids is None else list(ids)
        return Embeddings(names, rows, "encoder-a", "data-a", "image", {"dataset": "scenes"})

    return make


@pytest.fixture(params=["exact", "hnsw"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    return str(request.param)
