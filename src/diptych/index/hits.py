"""Hits of a search, and the recall of an approximate engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.encoders.sparse_embeddings import SparseEmbeddings

if TYPE_CHECKING:
    from diptych.index.contract import Index
    from diptych.index.engine import AnyEmbeddings


@dataclass(frozen=True, eq=False)
class Hits:
    """The best items for each query, best first.

    Where fewer than ``asked`` items were found, a query's list simply ends: :attr:`found` says
    where, :attr:`note` says so in words, and no placeholder stands in any list.

    Attributes:
        ids: one list of item ids per query.
        scores: (q, longest list) float32; ``scores[i, :found[i]]`` belong to ``ids[i]``, what lies
            beyond is ``-inf``.
        asked: k, how many were asked for.
    """

    ids: Sequence[Sequence[str]]
    scores: np.ndarray
    asked: int

    @classmethod
    def from_slots(cls, names: np.ndarray, slots: np.ndarray, scores: np.ndarray, asked: int) -> Hits:
        """Hits from (q, k) ``slots`` into ``names`` (an object array of ids); all are found."""
        ids: Any = names[slots].tolist()
        return cls(ids, np.ascontiguousarray(scores, dtype=np.float32), asked)

    @classmethod
    def ragged(
        cls, names: np.ndarray, slots: np.ndarray, scores: np.ndarray, found: np.ndarray, asked: int
    ) -> Hits:
        """As :meth:`from_slots`, but of query i only the first ``found[i]`` are found.

        What lies beyond in ``slots`` is ignored and must be a slot nevertheless; in ``scores`` it is
        ``-inf`` afterwards.
        """
        longest = int(found.max(initial=0))
        listed: Any = names[slots[:, :longest]].tolist()
        ids = [one[:count] for one, count in zip(listed, found.tolist(), strict=True)]
        kept = np.array(scores[:, :longest], dtype=np.float32)
        kept[np.arange(longest) >= found[:, None]] = -np.inf
        return cls(ids, kept, asked)

    @classmethod
    def none(cls, queries: int, asked: int) -> Hits:
        """No hit for any of so many queries."""
        return cls([[] for _ in range(queries)], np.empty((queries, 0), dtype=np.float32), asked)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[list[tuple[str, float]]]:
        for ids, scores in zip(self.ids, self.scores, strict=True):
            yield list(zip(ids, scores[: len(ids)].tolist(), strict=True))

    @property
    def found(self) -> np.ndarray:
        """(q,) int64: how many items each query's list holds."""
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)

    @property
    def note(self) -> str:
        """A sentence when a list is shorter than asked for, else nothing."""
        short = self.found[self.found < self.asked]
        if not len(short):
            return ""
        return (
            f"{self.asked:,} hits were asked for; {len(short):,} of {len(self):,} queries have fewer "
            f"(the fewest: {short.min():,}), for the index holds no more for them"
        )


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


def own_queries(embeddings: AnyEmbeddings) -> tuple[Any, list[str]]:
    """Some rows of ``embeddings`` as queries, the same ones every time, with their ids; no empty bags."""
    rng = np.random.default_rng(_SEED)
    if isinstance(embeddings, SparseEmbeddings):
        full = np.flatnonzero(np.diff(embeddings.rows.indptr))
        rows = np.sort(rng.choice(full, min(_SAMPLE, len(full)), replace=False))
    else:
        rows = np.sort(rng.choice(len(embeddings), min(_SAMPLE, len(embeddings)), replace=False))
    return embeddings.rows[rows], [embeddings.ids[row] for row in rows.tolist()]


def measure_recall(
    index: Index,
    queries: Any,
    k: int = 10,
    *,
    excluded: Sequence[str] | None = None,
    reference: Index | None = None,
    **options: Any,
) -> Recall:
    """Search ``queries`` as the engine does and exactly, and compare.

    Args:
        queries: (q, width) vectors, at least one.
    """
    depth = min(k, len(index) - (excluded is not None))
    extra = depth + (excluded is not None)
    hits = index.search(queries, extra, **options)
    counts: list[tuple[int, int]]
    if reference is None:
        found = _scores(hits, excluded, depth)
        best = _scores(index.search_exact(queries, extra), excluded, depth)
        counts = [
            (int(np.count_nonzero(a >= b.min(initial=np.inf))), len(b))
            for a, b in zip(found, best, strict=True)
        ]
    else:
        # Twice as deep, to see which items are as good as the last.
        truth = reference.search_exact(queries, 2 * extra)
        counts = _among_best(_pairs(hits, excluded), _pairs(truth, excluded), depth)
    shares = [min(count, wanted) / wanted if wanted else 1.0 for count, wanted in counts]
    return Recall(
        value=float(np.mean(shares)),
        k=k,
        queries=len(shares),
        source="given" if excluded is None else "items of the index, each without itself",
        items=len(index),
        options=dict(index.engine().resolve_search(index.options, options)),
    )


def _pairs(hits: Hits, excluded: Sequence[str] | None) -> list[list[tuple[str, float]]]:
    owns = [None] * len(hits) if excluded is None else excluded
    return [[pair for pair in pairs if pair[0] != own] for pairs, own in zip(hits, owns, strict=True)]


def _scores(hits: Hits, excluded: Sequence[str] | None, depth: int) -> list[np.ndarray]:
    return [np.array([score for _, score in pairs][:depth]) for pairs in _pairs(hits, excluded)]


def _among_best(
    found: list[list[tuple[str, float]]], best: list[list[tuple[str, float]]], depth: int
) -> list[tuple[int, int]]:
    """Per query, how many of the ``depth`` found are among the best, and how many best there are."""
    counts = []
    for mine, wanted in zip(found, best, strict=True):
        few = wanted[:depth]
        good = {name for name, score in wanted if score >= few[-1][1]} if few else set()
        counts.append((len(good & {name for name, _ in mine[:depth]}), len(few)))
    return counts
