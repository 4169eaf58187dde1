"""Sparse search beside dense search, PISA and Seismic: one run, one thread, every speed at its recall.

The thesis (Table 3.6) searches 123,000 pictures with D2S's vectors in PISA and with dense ones in Faiss's HNSW graph,
whose recall it does not say. Here every engine's recall is against exact search of its own vectors; PISA and Seismic
are timed without our layer (their compiled search alone), ours with everything from the queries to ids and scores.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.real_vectors import given_set
from benchmarks.sparse_vectors import SparseSet, d2s_like
from benchmarks.table import Line
from diptych.encoders.embeddings import Embeddings, SparseEmbeddings, canonical_rows
from diptych.index import Index, build_index
from diptych.index.sparse_rows import SparseRows

__all__ = ["measure"]

_DEPTHS = (10, 100, 1000)
_ROUNDS = 3
_FAST, _SLOW = 1000, 60  # queries per round
_ENOUGH = 0.97


@dataclass(frozen=True)
class _Contender:
    """One way of searching: from a depth and queries to a call that is timed."""

    name: str
    prepare: Callable[[int, int], Callable[[], Any]]
    queries: int
    recall: dict[int, float]
    compares: bool = False


@dataclass(frozen=True)
class _Row:
    name: str
    speed: dict[int, float]
    recall: dict[int, float]

    def line(self) -> str:
        """Queries per second and recall at every depth."""
        return ", ".join(f"@{k} {self.speed[k]:,.0f} q/s (recall {self.recall[k]:.3f})" for k in _DEPTHS)


def measure(documents: int = 123_000) -> list[Line]:
    """The table of both sets of vectors, and what is aimed at."""
    from threadpoolctl import threadpool_limits

    lines = []
    with threadpool_limits(1):
        for weights, made in _sets(documents):
            rows = {row.name: row for row in _rows(made)}
            lines += [
                Line(f"sparse search, {weights}: {row.name}", row.line(), "(stated)", True, _how(made))
                for row in rows.values()
            ]
            lines += _aims(weights, rows)
    return lines


def _sets(documents: int) -> Iterator[tuple[str, SparseSet]]:
    for weights in ("flat", "peaked"):
        yield f"generated, {weights}", d2s_like(documents, _FAST, weights=weights)
    real = given_set(documents, _FAST)
    if real is not None:
        yield "a trained head's vectors", real


def _how(made: SparseSet) -> str:
    share = [
        np.bincount(rows.indices, minlength=rows.shape[1]) / rows.shape[0]
        for rows in (made.documents, made.queries)
    ]
    terms = [rows.nnz / rows.shape[0] for rows in (made.documents, made.queries)]
    return (
        f"{made.documents.shape[0]:,} pictures of {terms[0]:.0f} terms, captions of {terms[1]:.0f}, "
        f"FLOPs {share[0] @ share[1]:.1f}; medians of {_ROUNDS} interleaved rounds, one thread"
    )


def _aims(weights: str, rows: dict[str, _Row]) -> Iterator[Line]:
    ours = rows["inverted (exact)"]
    graph = next(row for name, row in rows.items() if name.startswith("hnsw, equal recall"))
    for name, aim in (("pisa, block_max_wand", 25.0), ("pisa, best algorithm", 2.0)):
        ratios = [ours.speed[k] / rows[name].speed[k] for k in _DEPTHS]
        said = ", ".join(
            f"@{k} {ratio:,.0f}×" if ratio >= 10 else f"@{k} {ratio:.1f}×"
            for k, ratio in zip(_DEPTHS, ratios, strict=True)
        )
        yield Line(
            f"sparse search, {weights}: inverted ÷ {name}",
            said,
            f"≥ {aim:g}×",
            min(ratios) >= aim,
            "ratios of the rows above",
        )
    ratios = [ours.speed[k] / graph.speed[k] for k in _DEPTHS]
    said = ", ".join(f"@{k} {ratio:.2f}×" for k, ratio in zip(_DEPTHS, ratios, strict=True))
    yield Line(
        f"sparse search, {weights}: inverted ÷ dense {graph.name}",
        said,
        "≥ 1×",
        min(ratios) >= 1,
        "ratios of the rows above",
    )


def _rows(made: SparseSet) -> Iterator[_Row]:
    contenders = list(_contenders(made))
    seconds: dict[tuple[str, int], list[float]] = {}
    for number in range(_ROUNDS + 1):
        for one in contenders:
            for k in _DEPTHS:
                call = one.prepare(k, one.queries)
                begun = time.perf_counter()
                call()
                if number:
                    seconds.setdefault((one.name, k), []).append((time.perf_counter() - begun) / one.queries)
    for one in contenders:
        yield _Row(one.name, {k: 1 / statistics.median(seconds[one.name, k]) for k in _DEPTHS}, one.recall)


def _contenders(made: SparseSet) -> Iterator[_Contender]:
    ids = [str(number) for number in range(made.documents.shape[0])]
    terms = [str(number) for number in range(made.documents.shape[1])]
    sparse = SparseEmbeddings(ids, canonical_rows(made.documents), terms, "bench", "bench", "image", {})
    dense = Embeddings(ids, made.dense_documents, "bench", "bench", "image", {})
    bags, rows = canonical_rows(made.queries), made.dense_queries
    exact = {k: 1.0 for k in _DEPTHS}
    inverted = build_index(sparse, "inverted")
    best = _Reference(inverted, bags)
    yield _Contender("inverted (exact)", _whole(inverted, bags), _FAST, exact)
    yield _Contender("inverted (exact), one query at a time", _single(inverted, bags), 200, exact)
    impacts = build_index(sparse, "impacts", sample=bags[:100])
    yield _Contender("impacts (8 bits)", _whole(impacts, bags), _FAST, best.recalls(impacts))
    cascade = build_index(sparse, "cascade", sample=bags[:100])
    own = canonical_rows(made.own)
    yield _Contender(
        "cascade, own terms first",
        _whole(cascade, bags, first=own),
        _FAST,
        best.recalls(cascade, first=own),
    )
    yield from _of_others(sparse, bags, best)
    flat = build_index(dense, "exact")
    yield _Contender("dense exact", _whole(flat, rows), _FAST, exact)
    yield from _graphs(dense, rows, _Reference(flat, rows))


def _of_others(sparse: SparseEmbeddings, bags: Any, exact: _Reference) -> Iterator[_Contender]:
    """PISA as the thesis has it and at its best, and Seismic; left out where they are not installed."""
    pisa = build_index(sparse, "pisa", sample=bags[:50])
    wand = {"algorithm": "block_max_wand"}
    yield _Contender("pisa, block_max_wand", _library(pisa, bags, **wand), _SLOW, exact.recalls(pisa, **wand))
    best = min(
        ("maxscore", "block_max_maxscore", "wand", "ranked_or"), key=lambda name: _time_of(pisa, bags, name)
    )
    yield _Contender(
        "pisa, best algorithm",
        _library(pisa, bags, algorithm=best),
        _SLOW,
        exact.recalls(pisa, algorithm=best),
    )
    seismic = build_index(sparse, "seismic", sample=bags[:50])
    for cut, factor in ((10, 0.8), (20, 0.7), (40, 0.5)):
        how = {"query_cut": cut, "heap_factor": factor}
        found = exact.recalls(seismic, **how)
        if found[10] >= _ENOUGH:
            break
    yield _Contender(
        f"seismic, query_cut {cut}, heap_factor {factor}", _library(seismic, bags, **how), 200, found
    )


def _graphs(dense: Embeddings, rows: np.ndarray, exact: _Reference) -> Iterator[_Contender]:
    """Faiss's graph as the thesis's script has it (M 32, efConstruction 40, efSearch 16), and at equal recall."""
    graph = build_index(dense, "hnsw", sample=rows[:100], m=32, ef_construction=40)
    yield _Contender(
        "hnsw, efSearch 16 (the thesis's script)",
        _whole(graph, rows, ef_search=16),
        _FAST,
        exact.recalls(graph, ef_search=16),
    )
    for effort in (32, 64, 96, 128, 192, 256, 384, 512, 1024):
        found = exact.recalls(graph, ef_search=effort)
        if found[10] >= _ENOUGH:
            break
    yield _Contender(
        f"hnsw, equal recall (efSearch {effort})", _whole(graph, rows, ef_search=effort), 300, found
    )


def _whole(index: Index, queries: Any, **options: Any) -> Callable[[int, int], Callable[[], Any]]:
    def prepare(k: int, count: int) -> Callable[[], Any]:
        chosen = {
            name: value[:count] if hasattr(value, "indptr") else value for name, value in options.items()
        }
        return lambda: index.search(queries[:count], k, **chosen)

    return prepare


def _single(index: Index, queries: Any) -> Callable[[int, int], Callable[[], Any]]:
    def prepare(k: int, count: int) -> Callable[[], Any]:
        parts = [queries[[number]] for number in range(count)]
        return lambda: [index.search(part, k) for part in parts]

    return prepare


def _call_of(index: Any, queries: Any, k: int, options: dict[str, Any]) -> Callable[[], Any]:
    """The library's search for all queries in one call, with all that it wants prepared."""
    rows = SparseRows(canonical_rows(queries))
    resolved = index.engine().resolve_search(index.options, options)
    call: Callable[[], Any] = index._call(rows, np.arange(len(rows)), min(k, len(index)), resolved)
    return call


def _library(index: Any, queries: Any, **options: Any) -> Callable[[int, int], Callable[[], Any]]:
    """The library's own search, without our layer."""

    def prepare(k: int, count: int) -> Callable[[], Any]:
        return _call_of(index, queries[:count], k, options)

    return prepare


def _time_of(index: Any, queries: Any, algorithm: str) -> float:
    call = _call_of(index, queries[:20], 10, {"algorithm": algorithm})
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


class _Reference:
    """What exact search finds, to hold others against."""

    def __init__(self, exact: Index, queries: Any, count: int = 100) -> None:
        self._queries, self._count = queries[:count], count
        self._best = {k: exact.search(self._queries, k).ids for k in _DEPTHS}

    def recalls(self, index: Index, **options: Any) -> dict[int, float]:
        """Mean share of the k best that ``index`` finds, at every depth."""
        chosen = _first(self._count, options)
        found = {}
        for k, best in self._best.items():
            mine = index.search(self._queries, k, **chosen).ids
            shares = [
                len({*one} & {*wanted}) / len(wanted)
                for one, wanted in zip(mine, best, strict=True)
                if wanted
            ]
            found[k] = float(np.mean(shares))
        return found


def _first(count: int, options: dict[str, Any]) -> dict[str, Any]:
    """Options of the first queries: of a cascade, its first-stage queries too."""
    return {name: value[:count] if hasattr(value, "indptr") else value for name, value in options.items()}
