"""Rows that are ways of searching: an engine over what the base makes of many images, timed with one thread."""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from diptych.core.context import track
from diptych.core.errors import RecipeError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.encoders.embeddings import Embeddings, SparseEmbeddings
from diptych.index import ENGINES, Hits, build_index
from diptych.index.engines.hnsw import faiss_threads
from diptych.metrics import top_k
from diptych.metrics.sparse_products import sparse_top_k
from diptych.sparse.measures import flops
from diptych.studies.plan import Plan
from diptych.studies.results import Measured, Measurement, Measuring
from diptych.studies.sources import DenseRows, Source, Subject
from diptych.studies.sparse import Head, dense_base, head_of
from diptych.studies.study import PUBLISHED, Row

_CUTOFFS = (10, 100, 1000)
_SECONDS = 8.0  # of one cut-off, at most
_LEAST = 0.4  # so long at least, so that fast engines are timed at all
_BATCH, _FIRST = 64, 3  # queries of a batch, and of the first one, which is not counted
_SLOW = 1.0  # seconds of the first queries, from which batches have an eighth of the queries
_TICK = 1e-6  # what a clock can tell
_ONE_BY_ONE = 50
_SAMPLE = 32  # queries by which an approximate engine measures its recall when it is built
_RECALL_QUERIES = 200
_BLOCK, _SEED = 8192, 36  # of copies with noise

Best = Sequence[Sequence[str]]  # ids of the exactly best items, per query
Search = Callable[..., Hits]  # of which of the queries, k and options, to hits


class SearchOptions(Options):
    """Options of searching for a row of Table 3.6 (``--set search.KEY=VALUE``)."""

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

    dense: DenseRows
    head: Head | None  # None: dense rows are searched
    options: SearchOptions


class Searches(Source):
    """A search over the rows of its base; nothing is trained."""

    def check(self, plan: Plan, row: Row) -> None:
        search_options(plan, row)

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        return {"search": search_options(plan, row).model_dump(mode="json")}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        base, options = plan.study.row(row.base), search_options(plan, row)
        head = head_of(plan, base) if base.kind == "head" else None
        dense = head.dense if head else dense_base(plan, row)
        made_by = head.sparsifier.fingerprint if head else dense.encoded(dense.data.test).images.encoder
        return Subject(
            Searched(dense, head, options),
            dense.collection,
            plan.features,
            state=(made_by, fingerprint(options.model_dump(mode="json"))),
            given=dense.source,
        )


def search_options(plan: Plan, row: Row) -> SearchOptions:
    start, values = "options.", plan.options_of(row)
    of_engine = {key.removeprefix(start): values.pop(key) for key in list(values) if key.startswith(start)}
    return SearchOptions.read({"options": of_engine, **values}, "options of the search", RecipeError)


def _items_of(run: Searched) -> tuple[Any, Any, Any]:
    """Return items, and evenly spaced test captions: with all their terms, and with their own alone (dense: the same).

    Items are kept: dense ones in the folder of the dense embeddings, sparse ones in the head's.
    """
    dense, head, options = run.dense, run.head, run.options
    folder = f"items/{options.items}-{options.noise:g}"
    images, captions = _images_of(dense, options, dense.folder / folder), dense.encoded(dense.data.test).texts
    places = np.linspace(0, len(captions) - 1, min(options.queries, len(captions))).round().astype(np.int64)
    if head is None:
        queries = np.ascontiguousarray(np.asarray(captions.rows)[places], dtype=np.float32)
        return images, queries, queries
    file = head.folder / folder / "rows"
    kept = SparseEmbeddings.open(file) if SparseEmbeddings.is_at(file) else None
    if kept is None or (kept.about["head"], kept.data) != (head.sparsifier.fingerprint, images.data):
        head.sparsifier.embed(images).save(file)
    test = head.sparsified(dense.data.test)
    return SparseEmbeddings.open(file), test.texts.rows[places], test.unexpanded.rows[places]


def _images_of(dense: DenseRows, options: SearchOptions, folder: Path) -> Embeddings:
    """Return images of all splits, those of the test split first, and where these are too few noisy copies."""
    parts = [dense.encoded(split).images for split in reversed(dense.splits)]
    data = fingerprint([part.data for part in parts], options.items, options.noise, _SEED)
    if Embeddings.is_at(folder) and (kept := Embeddings.open(folder)).data == data:
        return kept
    names, count = [name for part in parts for name in part.ids], options.items
    ids = [f"{names[place % len(names)]}#{place // len(names)}" for place in range(count)]
    copies = f", then copies with noise of {options.noise:g}" if count > len(names) else ""
    about = {"items": f"{count:,} items: {min(len(names), count):,} images of all splits{copies}"}
    rows = with_copies(np.concatenate([part.rows for part in parts]), count, options.noise)
    replace(parts[0], ids=ids, rows=rows, data=data, about=about).save(folder)
    return Embeddings.open(folder)


def with_copies(rows: np.ndarray, count: int, noise: float) -> np.ndarray:
    """Return ``count`` rows: ``rows``, then copies with noise; that of a block is a function of its place."""
    found = np.resize(rows.astype(np.float32), (count, rows.shape[1]))
    for start in track(range(0, count, _BLOCK), "making items", unit="blocks"):
        block = found[start : start + _BLOCK]
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        random = np.random.default_rng((_SEED, start)).standard_normal(block.shape, dtype=np.float32)
        copies = block + np.float32(noise / np.sqrt(rows.shape[1])) * lengths * random
        copies *= lengths / np.maximum(np.linalg.norm(copies, axis=1, keepdims=True), 1e-12)
        first_copy = max(0, len(rows) - start)
        block[first_copy:] = copies[first_copy:]
    return found


def as_dense(items: SparseEmbeddings, gigabytes: float) -> tuple[Embeddings, np.ndarray]:
    """Return as many bags of terms as fit into memory as dense rows, and their columns: the terms that any bag has."""
    terms = np.unique(items.rows.indices) if items.rows.nnz else np.zeros(1, dtype=np.int32)
    count = min(len(items), max(1, int(gigabytes * 2**30 / (4 * len(terms)))))
    first = "" if count == len(items) else f"the first {count:,} of "
    about = {**items.about, "items": f"{first}{items.about['items']}, as dense rows of {len(terms):,} terms"}
    rows = items.rows[:count, terms].toarray()
    return Embeddings(list(items.ids[:count]), rows, items.encoder, items.data, items.kind, about), terms


@dataclass(frozen=True)
class Searching(Measuring):
    """Throughput in batches (queries per second), latency of a single query (milliseconds; as published
    the reciprocal of the throughput), and recall of the exactly best by all terms, at 10, 100 and 1,000 items."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        run, options = subject.run, subject.run.options
        items, queries, own = _items_of(run)
        engine, count = ENGINES.get(options.engine), int(queries.shape[0])
        values, efforts = dict[str, float](), list[str]()
        if run.head is not None and engine.vectors == "dense":
            items, terms = as_dense(items, options.dense_gb)
            queries, own = queries[:, terms].toarray(), own[:, terms].toarray()
        elif run.head is not None and not engine.two_stages:  # all items are scored
            values["FLOPs"] = flops(own if options.own_terms else queries, items.rows)

        def search(part: slice, k: int, **effort: Any) -> Hits:
            if options.own_terms and engine.two_stages:
                return index.search(queries[part], k, first=own[part], **effort)
            return index.search((own if options.own_terms else queries)[part], k, **effort)

        with faiss_threads(1):
            sample = queries[:_SAMPLE] if engine.approximate else None
            index = build_index(items, options.engine, sample=sample, **options.options)
            best = best_of(items, queries, run.head is not None)
            for k in _CUTOFFS:
                effort = _effort(search, len(items), best, k, options.recall) if options.equal_recall else {}
                rate, latency, ids = time_search(partial(search, **effort), count, k)
                values |= {
                    f"throughput @{k}": rate,
                    f"latency @{k}": latency,
                    f"latency @{k}{PUBLISHED}": 1000 / rate,
                    f"recall @{k}": 100 * recall_of(ids, best, k),
                }
                efforts += [f"{name} {value} @{k}" for name, value in effort.items()]
        # Queries without terms find nothing, and have no recall.
        values = {name: value for name, value in values.items() if not math.isnan(value)}
        threads = os.environ.get("OMP_NUM_THREADS", "all cores")
        protocol = [
            items.about["items"],
            f"{count:,} test captions, evenly spaced{', own terms' if options.own_terms else ''}",
            index.describe(),
            ", ".join([*(f"{name} {value}" for name, value in index.options.items()), *efforts]),
            f"processor time of one thread (matrix products: OMP_NUM_THREADS {threads})",
            "batches of 64, of 8 where a query takes a quarter of a second",
            f"recall of the exact top k by {'all terms' if run.head else 'the dense embeddings'}, on 200 captions or "
            "as many as the time limit allowed",
        ]
        on = Measured(subject.collection.name, "all", len(items), count)
        return (Measurement(values, on, "; ".join(part for part in protocol if part)),)


def _effort(search: Search, items: int, best: Best, k: int, recall: float) -> dict[str, Any]:
    effort = max(16, k)
    while effort < items and recall_of(search(slice(len(best)), k, ef_search=effort).ids, best, k) < recall:
        effort *= 2
    return {"ef_search": effort}


def time_search(search: Search, queries: int, k: int) -> tuple[float, float, list[Sequence[str]]]:
    """Return queries per second in batches, milliseconds of a single query, and what batches found.

    Each is in processor time and stops after eight seconds; the first few queries, which may compile, are not counted.
    """

    def timed(start: int, count: int) -> tuple[float, Hits]:
        begun = time.process_time()
        hits = search(slice(start, start + count), k)
        return time.process_time() - begun, hits

    first = timed(0, _FIRST)[0] + timed(0, 1)[0]
    batch = _BATCH if first < _SLOW else _BATCH // 8
    done, spent, ids = 0, 0.0, list[Sequence[str]]()
    while spent < _SECONDS and (done < queries or spent < _LEAST):
        seconds, hits = timed(done % queries, batch)
        ids += hits.ids if done < queries else []
        done, spent = done + len(hits), spent + seconds
    single = list[float]()
    while len(single) < min(_ONE_BY_ONE, queries) and sum(single) < _SECONDS:
        single.append(timed(len(single), 1)[0])
    return done / max(spent, _TICK), 1000 * max(sum(single), _TICK) / len(single), ids


def best_of(items: Embeddings | SparseEmbeddings, queries: Any, with_terms: bool) -> Best:
    """Return the exactly best of the queries that recall is measured on; without a common term none is best."""
    find = sparse_top_k if isinstance(items, SparseEmbeddings) else top_k
    places, scores = find(queries[:_RECALL_QUERIES], items.rows, min(_CUTOFFS[-1], len(items)))
    is_best = (scores > 0) | (not with_terms)
    return [[items.ids[at] for at in row[best].tolist()] for row, best in zip(places, is_best, strict=True)]


def recall_of(found: Sequence[Sequence[str]], best: Best, k: int) -> float:
    """Return the mean share of a query's ``k`` exactly best items that are among those found; NaN without any."""
    pairs = [(set(ids), expected[:k]) for ids, expected in zip(found, best, strict=False) if expected]
    shares = [len(ids.intersection(expected)) / len(expected) for ids, expected in pairs]
    return sum(shares) / len(shares) if shares else math.nan
