"""What an approximate engine misses: its recall against exact search, measured, never assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.encoders.embeddings import Embeddings

if TYPE_CHECKING:
    from diptych.index.contract import Index
    from diptych.index.hits import Hits

__all__ = ["Recall", "measure_recall", "own_queries"]

_SAMPLE = 100
_SEED = 0


@dataclass(frozen=True)
class Recall:
    """Which share of the k best items a search finds, averaged over queries.

    Attributes:
        value: from 0 to 1. A hit counts when its score is at least that of the k-th best item, so
            that of two equal items either will do.
        k: the cut-off.
        queries: how many were asked.
        source: where they came from.
        items: how many the index held.
        options: the per-search options it was measured with.
        changes: items added and deleted since; after many the value says little.
    """

    value: float
    k: int
    queries: int
    source: str
    items: int
    options: dict[str, Any]
    changes: int = 0

    def to_json(self) -> dict[str, Any]:
        """What is stored in :attr:`Index.about`."""
        return asdict(self)

    def describe(self) -> str:
        """One line with its protocol."""
        options = "".join(f", {name} {value}" for name, value in self.options.items())
        since = f", {self.changes:,} items changed since" if self.changes else ""
        return (
            f"recall@{self.k} {self.value:.3f} against exact search "
            f"({self.queries:,} queries: {self.source}{options}{since})"
        )


def own_queries(embeddings: Embeddings) -> tuple[Any, list[str]]:
    """Some rows of ``embeddings`` as queries, the same ones every time, with their ids."""
    rng = np.random.default_rng(_SEED)
    rows = np.sort(rng.choice(len(embeddings), min(_SAMPLE, len(embeddings)), replace=False))
    return embeddings.rows[rows], [embeddings.ids[row] for row in rows.tolist()]


def measure_recall(
    index: Index, queries: Any, k: int = 10, *, excluded: Sequence[str] | None = None, **options: Any
) -> Recall:
    """Search ``queries`` as the engine does and exactly, and compare.

    Args:
        index: a non-empty index.
        queries: (q, width) vectors, at least one.
        k: the cut-off; the index's size where that is smaller.
        excluded: per query, an id that shall not count (the query's own).
        options: per-search options of the engine.
    """
    depth = min(k, len(index) - (excluded is not None))
    extra = depth + (excluded is not None)
    found = _scores(index.search(queries, extra, **options), excluded, depth)
    best = _scores(index.search_exact(queries, extra), excluded, depth)
    shares = [
        np.count_nonzero(mine >= wanted.min()) / len(wanted) if len(wanted) else 1.0
        for mine, wanted in zip(found, best, strict=True)
    ]
    return Recall(
        value=float(np.mean(shares)),
        k=k,
        queries=len(shares),
        source="given" if excluded is None else "items of the index, each without itself",
        items=len(index),
        options=dict(index.engine().resolve_search(index.options, options)),
    )


def _scores(hits: Hits, excluded: Sequence[str] | None, depth: int) -> list[np.ndarray]:
    owns = [None] * len(hits) if excluded is None else excluded
    return [
        np.array([score for name, score in pairs if name != own][:depth])
        for pairs, own in zip(hits, owns, strict=True)
    ]
