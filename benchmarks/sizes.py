"""``OMP_NUM_THREADS=1 python -m benchmarks.sizes``: what one machine's engines need as a collection grows.

Processor milliseconds of a single query (median of 50, one thread) and of the build, and the process's own memory.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from diptych.encoders.embeddings import Embeddings, SparseEmbeddings, canonical_rows
from diptych.index import build_index

WIDTH, TERMS, VOCABULARY, BLOCK = 512, 60, 30_000, 50_000


def dense(items: int, seed: int) -> np.ndarray:
    """Unit rows around 1,000 centres, as embeddings lie in groups."""
    centres = np.random.default_rng(0).standard_normal((1000, WIDTH), dtype=np.float32)
    rows, random = np.empty((items, WIDTH), dtype=np.float32), np.random.default_rng(seed)
    for start in range(0, items, BLOCK):
        part = rows[start : start + BLOCK]
        part[:] = centres[random.integers(0, 1000, len(part))]
        part += random.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return rows


def sparse(items: int, seed: int) -> csr_array:
    """Bags of about 60 terms, a few of them frequent."""
    random = np.random.default_rng(seed)
    columns = np.concatenate(
        [
            (VOCABULARY * random.random(TERMS * min(BLOCK, items - start), dtype=np.float32) ** 3).astype(
                np.int32
            )
            for start in range(0, items, BLOCK)
        ]
    )
    weights = random.exponential(1, len(columns)).astype(np.float32)
    return canonical_rows(
        csr_array((weights, columns, np.arange(items + 1) * TERMS), shape=(items, VOCABULARY))
    )


def own_mb() -> float:
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024


def line(engine: str, items: int) -> str:
    """Build an index and search it with one query after the other."""
    ids, about = [f"image-{row}" for row in range(items)], ("bench", "bench", "image", {})
    rows: Any = sparse(items, 1) if engine == "inverted" else dense(items, 1)
    asked: Any = sparse(50, 2) if engine == "inverted" else dense(50, 2)
    size = (rows.data.nbytes + rows.indices.nbytes if engine == "inverted" else rows.nbytes) / 2**20
    terms = [f"term-{column}" for column in range(VOCABULARY)]
    made: Any = (
        SparseEmbeddings(ids, rows, terms, *about) if engine == "inverted" else Embeddings(ids, rows, *about)
    )
    gc.collect()
    before, began = own_mb(), time.process_time()
    index = build_index(made, engine, sample=asked)
    built, grown = time.process_time() - began, own_mb() - before
    index.search(asked[:1], 10)
    found = []
    for row in range(asked.shape[0]):
        start = time.process_time()
        index.search(asked[row : row + 1], 10)
        found.append(1000 * (time.process_time() - start))
    recall = f"{index.about['recall']['value']:.3f}" if "recall" in index.about else "exact"
    return (
        f"| {engine} | {items:,} | {size:,.0f} MB | {grown:,.0f} MB | {built:,.1f} s | "
        f"{statistics.median(found):.2f} ms | {recall} |"
    )


def main(wanted: list[str]) -> None:
    """Print a table of the engines and sizes named ``ENGINE:ITEMS``, or of all."""
    every = [f"exact:{n}" for n in (10_000, 100_000, 1_000_000)]
    every += [f"inverted:{n}" for n in (10_000, 100_000, 1_000_000)] + ["hnsw:10000", "hnsw:100000"]
    print("| engine | items | rows | memory on top | build, processor | one query, processor | recall@10 |")
    print("|---|---|---|---|---|---|---|")
    for one in wanted or every:
        engine, _, items = one.partition(":")
        print(line(engine, int(items)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
