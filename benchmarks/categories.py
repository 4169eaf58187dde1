"""Pictures for 5,000 categories out of a million products, against the bare matrix product.

``python -m benchmarks.categories 100000`` measures it with fewer products.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.table import Line, ratio
from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.picking import pick
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.files import create_array
from diptych.data.collection import Collection

__all__ = ["measure"]

PRODUCTS, CATEGORIES, WIDTH, K = 1_000_000, 5_000, 256, 8
RUNS = 2
_BLOCK = 10_000


class _Source:
    """Pictures that nobody looks at."""

    def read(self, row: int) -> object:
        raise NotImplementedError

    def content(self, row: int) -> str:
        raise NotImplementedError


def _rows_on_disk(file: Path, n: int, seed: int) -> np.ndarray:
    """Unit rows around 500 centres, as those of products are around their kinds."""
    rows = create_array(file, "float32", (n, WIDTH))
    centres = np.random.default_rng(0).standard_normal((500, WIDTH), dtype=np.float32)
    draws = np.random.default_rng(seed)
    for begin in range(0, n, _BLOCK):
        size = min(_BLOCK, n - begin)
        block = draws.standard_normal((size, WIDTH), dtype=np.float32)
        block += centres[draws.integers(0, len(centres), size)]
        rows[begin : begin + size] = block / np.linalg.norm(block, axis=1, keepdims=True)
    rows.flush()  # type: ignore[attr-defined]
    del rows
    mapped: np.ndarray = np.load(file, mmap_mode="r")
    return mapped


def _catalogue(products: int, categories: int) -> Catalogue:
    """Every twentieth product has no picture."""
    tree = CategoryTree([(f"{node % 30:02d}", f"{node:04d}") for node in range(categories - 30)])
    leaves = np.flatnonzero(tree.is_leaf)
    ids = [f"{row:07d}" for row in range(products)]
    empty = np.zeros(0, np.int64)
    source_rows = np.where(np.arange(products) % 20, np.arange(products), -1)
    shop = Collection("bench", ids, [], [], empty, ["all"] * products, _Source(), source_rows)  # type: ignore[arg-type]
    return Catalogue(
        name="bench",
        ids=ids,
        titles=[""] * products,
        attributes=[()] * products,
        tree=tree,
        place_start=np.arange(products + 1),
        places=leaves[np.arange(products) % len(leaves)],
        splits=shop.splits,
        collection=shop,
        picture_rows=source_rows,
    )


@contextmanager
def _private_megabytes(seen: list[float]) -> Iterator[None]:
    """The most memory of its own that the process has meanwhile; pages of mapped files are the system's."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            status = Path("/proc/self/status").read_text()
            seen.append(int(status.split("RssAnon:")[1].split()[0]) / 1024)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _child(products: int, categories: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = _rows_on_disk(Path(folder) / "products.npy", products, 1)
        asked = np.array(_rows_on_disk(Path(folder) / "categories.npy", categories, 2))
        shop = _catalogue(products, categories)
        texts = [path[-1] for path in shop.tree.paths]
        block = np.empty((1000, 2500), dtype=np.float32)

        def product() -> None:
            for begin in range(0, categories, 1000):
                some = asked[begin : begin + 1000]
                for start in range(0, products, 2500):
                    there = rows[start : start + 2500]
                    np.matmul(some, there.T, out=block[: len(some), : len(there)])

        used: dict[str, list[float]] = {"bare": [], "picked": []}
        seconds: dict[str, list[float]] = {"bare": [], "picked": []}
        for _ in range(RUNS):
            for name, work in (
                ("bare", product),
                ("picked", lambda: pick(asked, rows, shop, K, texts=texts)),
            ):
                with _private_megabytes(used[name]):
                    begun = time.perf_counter()
                    made = work()
                    seconds[name].append(time.perf_counter() - begun)
        assert made is not None
        assert len(made.products) == K * categories
    found = {
        "ratio": ratio(seconds["picked"], seconds["bare"]),
        "seconds": min(seconds["picked"]),
        "megabytes": max(used["picked"]) - max(used["bare"]),
        "rows": products * WIDTH * 4 / 1e6,
    }
    print(json.dumps(found))


def measure(products: int = PRODUCTS, categories: int = CATEGORIES) -> list[Line]:
    """In a process of its own, so that its peak memory is its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.categories", "--child", str(products), str(categories)],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    how = (
        f"{categories:,} categories × {products:,} products × {WIDTH}, k = {K}, exact, rows mapped from disk"
    )
    return [
        Line(
            "pick ÷ bare product",
            f"{found['ratio']:.2f}× ({found['seconds']:.0f} s)",
            "≤ 1.5×",
            found["ratio"] <= 1.5,
            f"{how}; every twentieth product without a picture; product in blocks of 1,000 × 2,500",
        ),
        Line(
            "its memory above the product's",
            f"{found['megabytes']:.0f} MB; the rows: {found['rows']:,.0f} MB",
            "≤ 200 MB",
            found["megabytes"] <= 200,
            "most private memory at any moment, ids and tree apart; mapped pages belong to the system",
        ),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(int(sys.argv[2]), int(sys.argv[3]))
    else:
        for line in measure(*map(int, sys.argv[1:])):
            print(f"{line.what}: {line.measured} (aim {line.aim}); {line.how}")
