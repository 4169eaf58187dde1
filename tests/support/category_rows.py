"""Products, categories and rows made by hand for tests of what is trained on rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.taxonomy import CategoryTree
from diptych.data.collection import Collection

ABOUT: dict[str, Any] = {"image": {"fingerprint": "made-image"}, "text": {"fingerprint": "made-text"}}

_PATHS = (
    ("Clothes", "Shirts", "Long sleeves"),
    ("Clothes", "Shirts", "Short sleeves"),
    ("Clothes", "Trousers"),
    ("Home", "Lamps"),
    ("Home", "Rugs"),
    ("Home", "Accessories"),
    ("Clothes", "Accessories"),
)


class _NoPictures:
    def read(self, row: int) -> Any:
        raise AssertionError("rows are made already: no picture is read")

    def content(self, row: int) -> str:
        return ""


def made_shop(
    n: int = 60, *, seed: int = 0, image: int = 12, text: int = 8, noise: float = 0.4, uncategorised: int = 2
) -> tuple[ProductFeatures, CategoryFeatures]:
    """``n`` products whose rows are their category's direction and noise; the last few have no category."""
    chance = np.random.default_rng(seed)
    tree = CategoryTree(_PATHS)
    leaves = np.array([tree.node(path) for path in _PATHS])
    place = leaves[np.arange(n) % len(leaves)]
    words = {name: chance.standard_normal(text) for name in sorted({path[-1] for path in tree.paths})}
    directions = np.stack([words[path[-1]] for path in tree.paths])
    looks = chance.standard_normal((len(tree), image))
    has = np.arange(n) < n - uncategorised
    counts = np.arange(n) % 4  # every fourth product has no attributes
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    pictured, titled = np.arange(n) % 5 != 3, np.arange(n) % 7 != 6
    ids = [f"p{number}" for number in range(n)]
    collection = Collection(
        name="made",
        image_ids=ids,
        captions=[],
        caption_ids=[],
        caption_image=np.zeros(0, dtype=np.int64),
        splits=["train"] * n,
        source=_NoPictures(),
        source_rows=np.where(pictured, np.arange(n), -1),
    )
    catalogue = Catalogue(
        name="made",
        ids=ids,
        titles=[f"title {number}" if some else "" for number, some in enumerate(titled)],
        attributes=[tuple(f"a{one}" for one in range(count)) for count in counts],
        tree=tree,
        place_start=np.concatenate([[0], np.cumsum(has)]).astype(np.int64),
        places=place[has],
        splits=["train"] * n,
        collection=collection,
        picture_rows=collection.source_rows,
    )

    def noisy(rows: np.ndarray) -> np.ndarray:
        return rows + noise * chance.standard_normal(rows.shape)

    products = ProductFeatures(
        catalogue=catalogue,
        image=(noisy(looks[place]) * pictured[:, None]).astype(np.float32),
        title=(_unit(noisy(directions[place])) * titled[:, None]).astype(np.float32),
        attribute_rows=_unit(chance.standard_normal((9, text))).astype(np.float32),
        attributes=bags_of(chance.integers(0, 9, start[-1]), start, 9),
        pictured=pictured,
        about=ABOUT,
    )
    texts = [path[-1] for path in tree.paths]
    return products, CategoryFeatures(texts, _unit(directions).astype(np.float32), None, ABOUT)


def titled(titles: Sequence[str]) -> ProductFeatures:
    """Products of which only titles are known, rows of zeros."""
    n, none = len(titles), np.zeros(0, dtype=np.int64)
    ids, start = [f"p{row}" for row in range(n)], np.zeros(n + 1, dtype=np.int64)
    catalogue = replace(
        made_shop(7)[0].catalogue,
        ids=ids,
        titles=titles,
        attributes=[()] * n,
        place_start=start,
        places=none,
        splits=["test"] * n,
        picture_rows=none - 1,
    )
    rows = np.zeros((n, 2), dtype=np.float32)
    return ProductFeatures(catalogue, None, rows, rows[:0], csr_array((n, 0)), rows[:, 0] > 0, {})


def bags_of(items: np.ndarray, start: np.ndarray, distinct: int) -> csr_array:
    """The shares of each product's attributes: product i has ``items[start[i]:start[i + 1]]``."""
    counts = np.diff(start)
    shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    return csr_array((shares, items, start), shape=(len(counts), distinct))


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths
