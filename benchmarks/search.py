"""Exact search against the bare matrix product of the same size."""

from __future__ import annotations

import numpy as np

from benchmarks.table import Line, interleaved, ratio
from diptych.encoders.embeddings import Embeddings
from diptych.index import build_index

__all__ = ["measure"]


def _unit(n: int, d: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def measure(items: int = 100_000, queries: int = 1000, width: int = 256) -> list[Line]:
    """Top 10 of 1,000 queries over 100,000 × 256, and the product alone, into a kept block."""
    rows, asked = _unit(items, width, 0), _unit(queries, width, 1)
    ids = [str(i) for i in range(items)]
    index = build_index(Embeddings(ids, rows, "bench", "bench", "image", {}))
    block = np.empty((queries, 10_000), dtype=np.float32)

    def product() -> None:
        for start in range(0, items, 10_000):
            np.matmul(asked, rows[start : start + 10_000].T, out=block)

    searched, bare = interleaved(5, lambda: index.search(asked, 10), product)
    found = ratio(searched, bare)
    speed = queries / sorted(searched)[2]
    how = f"{queries:,} queries × {items:,} × {width}, k = 10; product in blocks of 10,000 into one buffer"
    return [Line("exact search ÷ bare product", f"{found:.2f}× ({speed:,.0f} q/s)", "(stated)", True, how)]
