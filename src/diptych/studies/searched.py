"""Rows that are ways of searching: an engine over what the base makes of many images, timed with one thread."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from diptych.core.context import track
from diptych.core.errors import RecipeError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.index import ENGINES, Hits, Index, build_index
from diptych.metrics import top_k
from diptych.metrics.sparse_products import sparse_top_k
from diptych.sparse.measures import flops
from diptych.studies.dense import DenseRows
from diptych.studies.plan import Plan
from diptych.studies.results import Measurement, Measuring
from diptych.studies.sources import Source, Subject
from diptych.studies.sparse import Head, dense_base, head_of, refuse_positives
from diptych.studies.study import PUBLISHED, Row
from diptych.studies.verdict import Measured

CUTOFFS = (10, 100, 1000)
_SECONDS = 8.0  # of one cut-off, at most
_LEAST = 0.4  # so long at least, so that fast engines are timed at all
_CHUNK, _FIRST = 64, 3  # queries of a batch, and of the first one, which is not counted
_SLOW = 1.0  # seconds of the first queries, from which batches have an eighth of the queries
_TICK = 1e-6  # what a clock can tell
_ONE_BY_ONE = 50
_SAMPLE = 32  # queries by which an approximate engine measures its recall when it is built
_RECALL_QUERIES = 200
_BLOCK, _SEED = 8192, 36  # of copies with noise

Search = Callable[[slice, int], Hits]
"""From which of the queries ask, and k, to hits."""


class SearchOptions(Options):
    """How a row of Table 3.6 is searched (``--set search.KEY=VALUE``)."""

    engine: str = "inverted"
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)  # of the engine
    own_terms: bool = False
    equal_recall: bool = False  # whether effort doubles until ``recall`` is reached
    recall: float = Field(0.97, gt=0, le=1)
    items: int = Field(123_287, ge=1)
    queries: int = Field(1024, ge=1)
    noise: float = Field(0.5, ge=0)  # of copies, where images are fewer than items
    dense_gb: float = Field(4.0, gt=0)  # of terms as dense rows, several times that while linked


@dataclass(frozen=True)
class Searched:
    """A way of searching that is there to be timed."""

    base: DenseRows | Head
    options: SearchOptions


class Searches(Source):
    """A search over the rows of its base; nothing is trained."""

    def check(self, plan: Plan, row: Row) -> None:
        """See that the options exist."""
        refuse_positives(plan.choices.positives)
        search_options(plan, row)

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        """Return how it is searched."""
        return {"search": search_options(plan, row).model_dump(mode="json")}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        """Open the rows of its base."""
        base, options = plan.study.row(row.base), search_options(plan, row)
        rows = head_of(plan, base) if base.kind == "head" else dense_base(plan, row)
        dense = rows.dense if isinstance(rows, Head) else rows
        images = dense.encoded(dense.data.test).images
        state = rows.sparsifier.fingerprint if isinstance(rows, Head) else images.encoder
        return Subject(
            Searched(rows, options),
            dense.collection,
            plan.features,
            state=(state, fingerprint(options.model_dump(mode="json"))),
            given=dense.source,
        )


def search_options(plan: Plan, row: Row) -> SearchOptions:
    """Return how a row is searched."""
    start, given = "options.", plan.options_of(row)
    own = {key: value for key, value in given.items() if not key.startswith(start)}
    options = {key.removeprefix(start): value for key, value in given.items() if key.startswith(start)}
    return SearchOptions.read({"options": options, **own}, "options of the search", RecipeError)


@dataclass(frozen=True)
class Items:
    """What is searched, and by what: all terms, and own terms alone."""

    items: Embeddings | SparseEmbeddings
    queries: Any
    own: Any


def items_of(base: DenseRows | Head, chosen: SearchOptions) -> Items:
    """Return what a base makes of as many images as are chosen, kept in its folder, and of evenly spaced captions."""
    dense, name = base.dense if isinstance(base, Head) else base, f"items/{chosen.items}-{chosen.noise:g}"
    items, texts = _grown(dense, chosen, dense.folder / name), dense.encoded(dense.data.test).texts
    places = np.linspace(0, len(texts) - 1, min(chosen.queries, len(texts))).round().astype(np.int64)
    if isinstance(base, DenseRows):
        queries = np.ascontiguousarray(np.asarray(texts.rows)[places], dtype=np.float32)
        return Items(items, queries, queries)
    folder = base.folder / name / "rows"
    there = SparseEmbeddings.open(folder) if SparseEmbeddings.is_at(folder) else None
    if there is None or (there.about["head"], there.data) != (base.sparsifier.fingerprint, items.data):
        base.sparsifier.embed(items).save(folder)
    rows = base.sparsified(dense.data.test)
    return Items(SparseEmbeddings.open(folder), rows.texts.rows[places], rows.unexpanded.rows[places])


def as_dense(there: Items, gigabytes: float) -> tuple[Items, Items]:
    """Return as many bags of terms as fit into memory, and the same as dense rows of the terms that any of all has."""
    items = there.items
    assert isinstance(items, SparseEmbeddings)
    has = np.bincount(items.rows.indices, minlength=items.width) > 0
    has[0] |= not has.any()
    terms = np.flatnonzero(has)
    count = min(len(items), max(1, int(gigabytes * 2**30 / (4 * len(terms)))))
    first = "" if count == len(items) else f"the first {count:,} of "
    about = {**items.about, "items": f"{first}{items.about['items']}, as dense rows of {len(terms):,} terms"}
    few = replace(items, ids=list(items.ids[:count]), rows=items.rows[:count], about=about)
    rows, queries, own = (part[:, terms].toarray() for part in (few.rows, there.queries, there.own))
    dense = Embeddings(few.ids, rows, items.encoder, items.data, items.kind, about)
    return replace(there, items=few), Items(dense, queries, own)


def _grown(dense: DenseRows, chosen: SearchOptions, folder: Path) -> Embeddings:
    """Return images of all splits, those of the test split first, and where these are too few noisy copies."""
    parts = [dense.encoded(split).images for split in reversed(dense.splits)]
    data = fingerprint([part.data for part in parts], chosen.items, chosen.noise, _SEED)
    if Embeddings.is_at(folder) and (found := Embeddings.open(folder)).data == data:
        return found
    ids = [name for part in parts for name in part.ids]
    there, all_ids = len(ids), [f"{ids[at % len(ids)]}#{at // len(ids)}" for at in range(chosen.items)]
    more = f", then copies with noise of {chosen.noise:g}" if chosen.items > there else ""
    about = f"{chosen.items:,} items: {min(there, chosen.items):,} pictures of all splits{more}"
    blocks = with_copies(np.concatenate([part.rows for part in parts]), chosen.items, chosen.noise)
    rows = np.concatenate(list(blocks))
    replace(parts[0], ids=all_ids, rows=rows, data=data, about={"items": about}).save(folder)
    return Embeddings.open(folder)


def with_copies(rows: np.ndarray, wanted: int, noise: float) -> Iterator[np.ndarray]:
    """Yield rows, then copies with noise, in blocks; a block's noise is a function of its place."""
    there, width = rows.shape
    for start in track(range(0, wanted, _BLOCK), "making items", unit="blocks"):
        places = np.arange(start, min(start + _BLOCK, wanted))
        block = rows[places % there].astype(np.float32)
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        random = np.random.default_rng((_SEED, start)).standard_normal(block.shape, dtype=np.float32)
        copies = block + np.float32(noise / np.sqrt(width)) * lengths * random
        copies *= lengths / np.maximum(np.linalg.norm(copies, axis=1, keepdims=True), 1e-12)
        yield np.where((places >= there)[:, None], copies, block).astype(np.float32)


@dataclass(frozen=True)
class Searching(Measuring):
    """Throughput, latency and recall of a way of searching, at 10, 100 and 1,000 items.

    ``throughput @10`` is in queries per second, in batches; ``latency @10`` in milliseconds of a query that comes
    alone, and counted as published the reciprocal of the throughput. ``recall @10`` is of the exactly best items by
    the same rows, with expansion.
    """

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Build the index and time it, one thread."""
        base, chosen = subject.run.base, subject.run.options
        bags, engine = items_of(base, chosen), ENGINES.get(chosen.engine)
        as_terms = isinstance(base, Head) and engine.vectors == "sparse"
        there = bags
        if isinstance(base, Head) and not as_terms:
            bags, there = as_dense(bags, chosen.dense_gb)
        values: dict[str, float] = {}
        asked, efforts = int(there.queries.shape[0]), []
        with single_thread():
            sample = there.queries[:_SAMPLE] if engine.approximate else None
            index = build_index(there.items, chosen.engine, sample=sample, **chosen.options)
            best = best_ids(bags.items, bags.queries)  # of items without a term in common none is best
            for k in CUTOFFS:
                effort = _effort(index, there, chosen, k, best) if chosen.equal_recall else {}
                rate, alone, ids = time_search(_search(index, there, chosen, **effort), asked, k)
                values |= {
                    f"throughput @{k}": rate,
                    f"latency @{k}": alone,
                    f"latency @{k}{PUBLISHED}": 1000 / rate,
                    f"recall @{k}": 100 * recall_of(ids, best, k),
                }
                efforts += [f"{name} {value} @{k}" for name, value in effort.items()]
        # Queries without terms find nothing, and have no recall.
        values = {name: value for name, value in values.items() if not math.isnan(value)}
        if as_terms and not engine.two_stages:  # of what is scored against all items
            values["FLOPs"] = flops(there.own if chosen.own_terms else there.queries, there.items.rows)
        on = Measured(subject.collection.name, "all", len(there.items), asked)
        return (Measurement(values, on, _protocol(bags, chosen, index, efforts)),)


def _search(index: Index, there: Items, chosen: SearchOptions, **options: Any) -> Search:
    """Return a search by some of the queries; a cascade's first stage has the captions' own terms."""
    in_stages = chosen.own_terms and index.engine().two_stages
    queries = there.own if chosen.own_terms and not in_stages else there.queries

    def search(part: slice, k: int) -> Hits:
        first = {"first": there.own[part]} if in_stages else {}
        return index.search(queries[part], k, **first, **options)

    return search


def _effort(index: Index, there: Items, chosen: SearchOptions, k: int, best: np.ndarray) -> dict[str, int]:
    """Return the option that finds the share of the best that is wanted."""
    effort = max(16, k)
    while effort < len(there.items):
        hits = _search(index, there, chosen, ef_search=effort)(slice(0, len(best)), k)
        if recall_of(hits.ids, best, k) >= chosen.recall:
            break
        effort *= 2
    return {"ef_search": effort}


def _protocol(there: Items, chosen: SearchOptions, index: Index, efforts: list[str]) -> str:
    threads = os.environ.get("OMP_NUM_THREADS", "all cores")
    by = "all terms" if isinstance(there.items, SparseEmbeddings) else "the dense rows"
    own = ", own terms" if chosen.own_terms else ""
    parts = [
        there.items.about["items"],
        f"{there.queries.shape[0]:,} test captions, evenly spaced{own}",
        index.describe(),
        ", ".join([*(f"{name} {value}" for name, value in index.options.items()), *efforts]),
        f"processor time of one thread (matrix products: OMP_NUM_THREADS {threads})",
        "batches of 64, of 8 where a query takes a quarter of a second",
        f"recall of the exactly best by {by}, on 200 captions or as many as there was time for",
    ]
    return "; ".join(part for part in parts if part)


@contextmanager
def single_thread() -> Iterator[None]:
    """Let Faiss and compiled loops have one thread; matrix products have as many as OMP_NUM_THREADS says."""
    import faiss
    import numba

    before = faiss.omp_get_max_threads(), numba.get_num_threads()
    faiss.omp_set_num_threads(1)
    numba.set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before[0])
        numba.set_num_threads(before[1])


def time_search(search: Search, queries: int, k: int) -> tuple[float, float, list[Sequence[str]]]:
    """Return queries per second in batches, milliseconds of a query that comes alone, and what batches found.

    Each is in processor time and stops after eight seconds; the first few queries, which may compile, are not counted.
    """

    def timed(part: slice) -> tuple[float, Hits]:
        begun = time.process_time()
        hits = search(part, k)
        return time.process_time() - begun, hits

    first = timed(slice(0, min(_FIRST, queries)))[0] + timed(slice(0, 1))[0]
    chunk = _CHUNK if first < _SLOW else _CHUNK // 8
    done, spent, ids = 0, 0.0, list[Sequence[str]]()
    for start in itertools.cycle(range(0, queries, chunk)):
        part = slice(start, min(start + chunk, queries))
        seconds, hits = timed(part)
        if done < queries:
            ids += hits.ids
        done, spent = done + part.stop - start, spent + seconds
        if spent >= _SECONDS or (done >= queries and spent >= _LEAST):
            break
    alone, total = 0, 0.0
    while alone < min(_ONE_BY_ONE, queries) and total < _SECONDS:
        total += timed(slice(alone, alone + 1))[0]
        alone += 1
    return done / max(spent, _TICK), 1000 * max(total, _TICK) / alone, ids


def recall_of(ids: Sequence[Sequence[str]], best: np.ndarray, k: int) -> float:
    """Return the mean share of a query's ``k`` exactly best items that are among those found; NaN without any."""
    shares = []
    for found, wanted in zip(ids, best[:, :k], strict=False):
        if there := {name for name in wanted if name is not None}:
            shares.append(len(there & set(found)) / len(there))
    return sum(shares) / len(shares) if shares else math.nan


def best_ids(items: Embeddings | SparseEmbeddings, queries: Any, k: int = CUTOFFS[-1]) -> np.ndarray:
    """Return (asked, k) ids of the exactly best items of the queries that recall is measured on, None where fewer."""
    asked, k = queries[:_RECALL_QUERIES], min(k, len(items))
    if isinstance(items, SparseEmbeddings):
        places, _ = sparse_top_k(asked, items.rows, k)
    else:
        places, _ = top_k(asked, np.ascontiguousarray(items.rows), k)
    found: np.ndarray = np.array([*items.ids, None], dtype=object)[places]  # -1, no item, is None
    return found
