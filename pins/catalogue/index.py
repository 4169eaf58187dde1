"""Top-k of every engine whose library is installed: ids and scores of seeded rows, with ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pins import adapters
from pins.catalogue.evaluation import unit
from pins.numbers import record, text_digest
from pins.registry import add, pin
from pins.world import World

ENGINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exact": ({}, {}),
    "hnsw": ({}, {"ef_search": 32}),
    "inverted": ({}, {}),
    "impacts": ({}, {}),
    "cascade": ({}, {"first_terms": 3, "candidates": 40}),
    "pisa": ({}, {}),
    "seismic": ({}, {}),
}
"""Per engine the options it is built and searched with."""


def dense() -> tuple[np.ndarray, np.ndarray]:
    """600 rows, some of them twice, and 20 queries."""
    rng = np.random.default_rng(11)
    rows = unit(rng.standard_normal((600, 24)))
    rows[300:310] = rows[100:110]
    return rows, unit(rows[rng.choice(600, 20)] + 0.4 * rng.standard_normal((20, 24)))


def bags() -> tuple[csr_array, csr_array]:
    """600 bags over 80 terms, frequent and rare ones, some bags twice or empty, and 20 queries."""
    rng = np.random.default_rng(12)
    share = np.minimum(0.8, 3 / (np.arange(80) + 1))
    rows = np.round(rng.gamma(2, 0.5, (600, 80)) * (rng.random((600, 80)) < share), 2).astype(np.float32)
    rows[300:310], rows[5] = rows[100:110], 0
    queries = np.round(rng.gamma(2, 0.5, (20, 80)) * (rng.random((20, 80)) < share), 2).astype(np.float32)
    return csr_array(rows), csr_array(queries)


def _engine(name: str) -> Any:
    def measure(world: World) -> Any:
        kind = adapters.engines()[name]
        rows, queries = dense() if kind == "dense" else bags()
        options, search = ENGINES[name]
        found: dict[str, Any] = {}
        for k in (1, 10):
            ids, scores = adapters.searched(name, rows, queries, k, options, search)
            lines = [" ".join(one) for one in ids]
            found[f"k {k}"] = {
                "first": lines[0],
                "ids": text_digest("\n".join(lines)),
                "scores": record(scores),
            }
        return found

    return measure


for name in ENGINES:
    add(f"index.{name}", _engine(name), fast=name in ("exact", "hnsw"))


@pin("index.complete", fast=True)
def complete(world: World) -> Any:
    """Engines that no pin searches."""
    return {"engines without a pin": sorted(set(adapters.engines()) - set(ENGINES))}
