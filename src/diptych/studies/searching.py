"""How a way of searching is timed: queries per second, one query's time, and what of the best it finds.

Time is the processor's: that of one thread, whatever else the machine does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from diptych.index import Hits

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


class SearchOptions(BaseModel):
    """How a row of table 3.6 is made.

    Attributes:
        engine: of the index.
        options: the engine's, of the build and of the search.
        own_terms: captions search with their own terms alone; of a ``cascade``, its first stage does.
        equal_recall: for ``hnsw``: at each cut-off the least effort that reaches ``recall``.
        recall: which recall that is.
        items: how many pictures are searched.
        queries: how many captions ask.
        noise: of copies, where the collection has fewer pictures; of a row's length.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    """What timing a search gave.

    Attributes:
        rate: queries per second, in batches.
        alone: milliseconds of a query that comes alone.
        ids: what the first queries found, one list each.
    """

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
    """The mean share of a query's ``k`` exactly best items that are among those found; NaN without any.

    Args:
        best: (asked, ≥ k) ids of the best of the first queries, best first; None where there are fewer.
    """
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
