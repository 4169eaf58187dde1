"""Rows that are ways of searching: an engine over what the base's rows make of many pictures."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from diptych.core.context import track
from diptych.core.errors import RecipeError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.core.reading import read_json
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.studies.given import DenseRows, dense_rows
from diptych.studies.making import Collections, Machine, Made, Wanted
from diptych.studies.rows import section_of
from diptych.studies.sparse_retrieval import Head, changed_of_head, head_of
from diptych.studies.study import PUBLISHED, Measurement, Subject
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.index import Hits, Index


_SAMPLE = 32  # queries by which an approximate engine measures its recall when it is built


@dataclass(frozen=True)
class Searched:
    """A way of searching that is there to be timed."""

    base: DenseRows | Head
    options: SearchOptions


def make_search(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Open what its base's rows are; nothing is trained."""
    base = wanted.base
    assert base is not None  # there is nothing to search without, or the row is wrong
    options = options_of_search(wanted)
    rows: DenseRows | Head
    rows = (head_of if base.way == "head" else dense_rows)(base, collections, machine)
    dense = rows.dense if isinstance(rows, Head) else rows
    state = (
        rows.sparsifier.fingerprint
        if isinstance(rows, Head)
        else dense.encoded(dense.data.test).images.encoder
    )
    return Made(
        Subject(Searched(rows, options), dense.collection, machine.features_root, wanted.choices.positives),
        (state, fingerprint(options.model_dump(mode="json"))),
        changed=(*changed_of_head(wanted), *(k for k in wanted.choices.values if k.startswith("search."))),
        given=dense.source,
    )


def options_of_search(wanted: Wanted) -> SearchOptions:
    """How a row is searched."""
    chosen = wanted.study.settings[wanted.setting]
    nested: dict[str, Any] = {"options": {}}
    for key, value in section_of(wanted.row, chosen, wanted.choices.values, "search").items():
        section, dot, name = key.partition(".")
        if dot and section != "options":
            raise RecipeError(f"searches have no section {section!r}", "e.g. search.items=20000")
        (nested["options"] if dot else nested)[name or section] = value
    return SearchOptions.read(nested, "options of the search", RecipeError)


@dataclass(frozen=True)
class Searching:
    """Throughput, latency and recall of a way of searching, at 10, 100 and 1,000 items.

    ``throughput @10`` is in queries per second, in batches of 64; ``latency @10`` in milliseconds of a query
    that comes alone, and counted as published the reciprocal of the throughput. ``recall @10`` is of the
    exactly best items by the same rows, with expansion: captions that search with their own terms alone, and
    what is cut short, find fewer of them.
    """

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run."""
        return {"kind": "searching", "version": 1}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Build the index and time it, one thread."""
        base, chosen = subject.run.base, subject.run.options
        there = sparse_items(base, chosen) if isinstance(base, Head) else dense_items(base, chosen)
        values: dict[str, float] = {}
        asked = int(there.queries.shape[0])
        with single_thread():
            index = _built(there, chosen)
            best = best_ids(there.items, there.queries, min(CUTOFFS[-1], len(there.items)))
            efforts = []
            for k in CUTOFFS:
                search, effort = _search(index, there, chosen, k, best)
                timed = time_search(search, asked, k)
                values |= {
                    f"throughput @{k}": timed.rate,
                    f"latency @{k}": timed.alone,
                    f"latency @{k}{PUBLISHED}": 1000 / timed.rate,
                    f"recall @{k}": 100 * recall_of(timed.ids, best, k),
                }
                efforts += [effort] if effort else []
        # Queries without terms find nothing, and have no recall.
        values = {name: value for name, value in values.items() if not math.isnan(value)}
        if isinstance(base, Head) and chosen.engine != "cascade":
            values["FLOPs"] = _flops(there, chosen)  # of what is scored against all items
        on = Measured(subject.collection.name, "all", len(there.items), asked)
        return (Measurement(values, on, _protocol(there, chosen, index, efforts)),)


def _built(there: Items, chosen: SearchOptions) -> Index:
    from diptych.index import ENGINES, build_index

    engine = ENGINES.get(chosen.engine)
    sample = there.queries[:_SAMPLE] if engine.approximate else None
    return build_index(there.items, chosen.engine, sample=sample, **chosen.options)


def _search(index: Index, there: Items, chosen: SearchOptions, k: int, best: Any) -> tuple[Search, str]:
    """How to ask, and the effort where that was to be found."""

    if not chosen.equal_recall:
        return _asked(index, there, chosen), ""
    effort, part = max(16, k), slice(0, len(best))
    while True:
        search = _asked(index, there, chosen, ef_search=effort)
        if effort >= len(there.items) or recall_of(search(part, k).ids, best, k) >= chosen.recall:
            return search, f"ef_search {effort} @{k}"
        effort *= 2


def _asked(index: Index, there: Items, chosen: SearchOptions, **options: Any) -> Search:
    """A search by some of the queries; a cascade's first stage has the captions' own terms."""
    queries = there.own if chosen.own_terms and chosen.engine != "cascade" else there.queries

    def search(part: slice, k: int) -> Hits:
        if chosen.engine == "cascade" and chosen.own_terms:
            return index.search(queries[part], k, first=there.own[part], **options)
        return index.search(queries[part], k, **options)

    return search


def _flops(there: Items, chosen: SearchOptions) -> float:
    from diptych.sparse.measures import flops

    queries = there.own if chosen.own_terms else there.queries
    return flops(queries, there.items.rows)


def _protocol(there: Items, chosen: SearchOptions, index: Index, efforts: list[str]) -> str:
    from diptych.encoders.sparse_embeddings import SparseEmbeddings

    by = "all terms" if isinstance(there.items, SparseEmbeddings) else "the dense rows"
    threads = os.environ.get("OMP_NUM_THREADS", "all cores")
    parts = [
        there.told,
        f"{there.queries.shape[0]:,} test captions, evenly spaced"
        + (", own terms" if chosen.own_terms else ""),
        index.describe(),
        ", ".join(f"{name} {value}" for name, value in index.options.items()),
        ", ".join(efforts),
        f"processor time of one thread (matrix products: OMP_NUM_THREADS {threads})",
        "batches of 64, of 8 where a query takes a quarter of a second",
        f"recall of the exactly best by {by}, on 200 captions or as many as there was time for",
    ]
    return "; ".join(part for part in parts if part)


CUTOFFS = (10, 100, 1000)

_SECONDS = 8.0  # of one cut-off, at most
_LEAST = 0.4  # so long at least, so that fast engines are timed at all
_CHUNK = 64
_FIRST = 3
_SLOW = 1.0  # seconds of the first four queries
_TICK = 1e-6  # what a clock can tell
_ONE_BY_ONE = 50
_RECALL_QUERIES = 200

Search = Callable[[slice, int], "Hits"]
"""From which of the queries ask, and k, to hits."""


class SearchOptions(Options):
    """How a row of table 3.6 is made."""

    engine: str = "inverted"
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)
    own_terms: bool = False
    equal_recall: bool = False
    recall: float = Field(0.97, gt=0, le=1)
    items: int = Field(123_287, ge=1)
    queries: int = Field(1024, ge=1)
    noise: float = Field(0.5, ge=0)


@contextmanager
def single_thread() -> Iterator[None]:
    """One thread for Faiss and for compiled loops; matrix products have as many as OMP_NUM_THREADS says."""
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


@dataclass(frozen=True)
class Timed:
    """What timing a search gave."""

    rate: float
    alone: float
    ids: list[list[str]]


def time_search(search: Search, queries: int, k: int) -> Timed:
    """Queries per second in batches of 64, and milliseconds of a query that comes alone, processor time.

    Each stops after eight seconds; the first few queries, which may compile, are not counted. A search that
    takes a quarter of a second for a query has batches of 8.
    """
    begun = time.process_time()
    search(slice(0, min(_FIRST, queries)), k)
    search(slice(0, 1), k)
    chunk = _CHUNK if time.process_time() - begun < _SLOW else _CHUNK // 8
    done, spent, ids = 0, 0.0, []
    for start in _rounds(queries, chunk):
        part = slice(start, min(start + chunk, queries))
        begun = time.process_time()
        hits = search(part, k)
        spent += time.process_time() - begun
        if done < queries:
            ids += [list(found) for found in hits.ids]
        done += part.stop - part.start
        if spent >= _SECONDS or (done >= queries and spent >= _LEAST):
            break
    alone, total = 0, 0.0
    for place in range(min(_ONE_BY_ONE, queries)):
        begun = time.process_time()
        search(slice(place, place + 1), k)
        total += time.process_time() - begun
        alone += 1
        if total >= _SECONDS:
            break
    return Timed(done / max(spent, _TICK), 1000 * max(total, _TICK) / alone, ids)


def _rounds(count: int, chunk: int) -> Iterator[int]:
    """Starts of chunks, over and over."""
    while True:
        yield from range(0, count, chunk)


def recall_of(ids: Sequence[Sequence[str]], best: np.ndarray, k: int) -> float:
    """The mean share of a query's ``k`` exactly best items that are among those found; NaN without any."""
    shares = []
    for found, wanted in zip(ids, best[:, :k], strict=False):
        there = {name for name in wanted if name is not None}
        if there:
            shares.append(len(there & set(found)) / len(there))
    return sum(shares) / len(shares) if shares else math.nan


def best_ids(items: Any, queries: Any, k: int = CUTOFFS[-1]) -> np.ndarray:
    """(asked, k) ids of the exactly best items of the queries that recall is measured on, None where fewer."""
    from diptych.encoders.sparse_embeddings import SparseEmbeddings
    from diptych.metrics import top_k
    from diptych.metrics.sparse_products import sparse_top_k

    asked = queries[: min(_RECALL_QUERIES, queries.shape[0])]
    if isinstance(items, SparseEmbeddings):
        places, _ = sparse_top_k(asked, items.rows, k)
    else:
        places, _ = top_k(asked, np.ascontiguousarray(items.rows), k)
    names = np.array([*items.ids, None], dtype=object)
    found: np.ndarray = names[places]  # -1, no item, is None
    return found


_BLOCK = 8192
_SEED = 36


@dataclass(frozen=True)
class Items:
    """What is searched, and by what."""

    items: Embeddings | SparseEmbeddings
    queries: Any
    own: Any
    told: str


def dense_items(dense: DenseRows, chosen: SearchOptions) -> Items:
    """Dense rows of ``chosen.items`` pictures, kept beside the dense rows, and of evenly spaced captions."""
    splits = (dense.data.test, dense.data.validation, dense.data.train)
    parts = [dense.encoded(split).images for split in splits]
    rows = np.concatenate([np.asarray(part.rows) for part in parts])
    ids = [name for part in parts for name in part.ids]
    wanted, there = chosen.items, len(rows)
    told = f"{wanted:,} of {there:,} pictures of all splits"
    if wanted > there:
        told = (
            f"{wanted:,} items: {there:,} pictures of all splits, then copies with noise of {chosen.noise:g}"
        )
    data = fingerprint([part.data for part in parts], wanted, chosen.noise, _SEED)
    folder = dense.folder / "items" / _name(chosen)
    if not _is_there(folder, data):
        Embeddings.stream(
            folder,
            [f"{ids[place % there]}#{place // there}" for place in range(wanted)],
            rows.shape[1],
            with_copies(rows, wanted, chosen.noise),
            encoder=parts[0].encoder,
            data=data,
            kind="image",
            about={"items": told},
            similarity=parts[0].similarity,
        )
    texts = dense.encoded(dense.data.test).texts
    queries = np.ascontiguousarray(np.asarray(texts.rows)[_asking(len(texts), chosen)], dtype=np.float32)
    return Items(Embeddings.open(folder), queries, queries, told)


def sparse_items(head: Head, chosen: SearchOptions) -> Items:
    """What a head makes of the dense items and of the same captions; kept in the head's folder."""
    dense = dense_items(head.dense, chosen)
    folder = head.folder / "items" / _name(chosen)
    key = fingerprint(head.sparsifier.fingerprint, dense.items.data)
    if not (folder / "key.json").is_file() or read_json(folder / "key.json") != key:
        assert isinstance(dense.items, Embeddings)
        head.sparsifier.embed(dense.items).save(folder / "rows")
        # Written last: a folder with it is complete.
        write_json(folder / "key.json", key)
    sparsified = head.sparsified(head.dense.data.test)
    places = _asking(len(sparsified.texts), chosen)
    return Items(
        SparseEmbeddings.open(folder / "rows"),
        sparsified.texts.rows[places],
        sparsified.unexpanded.rows[places],
        dense.told,
    )


def _name(chosen: SearchOptions) -> str:
    return f"{chosen.items}-{chosen.noise:g}"


def _is_there(folder: Path, data: str) -> bool:
    return Embeddings.is_at(folder) and Embeddings.open(folder).data == data


def _asking(captions: int, chosen: SearchOptions) -> np.ndarray:
    """Which test captions ask: evenly spaced."""
    count = min(chosen.queries, captions)
    places: np.ndarray = np.linspace(0, captions - 1, count).round().astype(np.int64)
    return places


def with_copies(rows: np.ndarray, wanted: int, noise: float) -> Iterator[np.ndarray]:
    """Rows, then copies with noise, in blocks; a block's noise is a function of its place."""
    there, width = rows.shape
    for start in track(range(0, wanted, _BLOCK), "making items", unit="blocks"):
        places = np.arange(start, min(start + _BLOCK, wanted))
        block = rows[places % there].astype(np.float32)
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        random = np.random.default_rng((_SEED, start)).standard_normal(block.shape, dtype=np.float32)
        copies = block + np.float32(noise / np.sqrt(width)) * lengths * random
        copies *= lengths / np.maximum(np.linalg.norm(copies, axis=1, keepdims=True), 1e-12)
        yield np.where((places >= there)[:, None], copies, block).astype(np.float32)
