"""Rows that are ways of searching: an engine over what the base's rows make of many pictures."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diptych.core.errors import RecipeError
from diptych.core.fingerprint import fingerprint
from diptych.studies.given import DenseRows, dense_rows
from diptych.studies.making import Collections, Machine, Made, Wanted
from diptych.studies.rows import section_of
from diptych.studies.sparsified import Head, changed_of_head, head_of
from diptych.studies.study import PUBLISHED, Measurement, Subject
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.index import Hits, Index
    from diptych.studies.search_items import Items
    from diptych.studies.searching import Search, SearchOptions

_SAMPLE = 32  # queries by which an approximate engine measures its recall when it is built


@dataclass(frozen=True)
class Searched:
    """A way of searching that is there to be timed.

    Attributes:
        base: whose rows are searched.
        options: how.
    """

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
    from pydantic import ValidationError

    from diptych.studies.searching import SearchOptions
    from diptych.training.recipe_errors import recipe_error

    chosen = wanted.study.settings[wanted.setting]
    nested: dict[str, Any] = {"options": {}}
    for key, value in section_of(wanted.row, chosen, wanted.choices.values, "search").items():
        section, dot, name = key.partition(".")
        if dot and section != "options":
            raise RecipeError(f"searches have no section {section!r}", "e.g. search.items=20000")
        (nested["options"] if dot else nested)[name or section] = value
    try:
        return SearchOptions.model_validate(nested)
    except ValidationError as error:
        raise recipe_error("options of the search", error, nested, SearchOptions) from None


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
        from diptych.studies.search_items import dense_items, sparse_items
        from diptych.studies.searching import CUTOFFS, best_ids, recall_of, single_thread, time_search

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
    from diptych.studies.searching import recall_of

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
