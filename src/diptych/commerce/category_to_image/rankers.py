"""Rankers: models that order products for a category, as embeddings whose inner products are the scores."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.core.context import track
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.data.title_words import Fold, folded_by
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.row_store import RowPlan, RowStore

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK = 16_384


class Ranker(ABC):
    """A ready model, trained or not.

    Attributes:
        name: ``bm25``, ``sentence``, ``clip``, ``clip-ita``, …
        unmatched: the meaning of a score of exactly 0. ``unranked``: product and category have nothing in common, no
            word or no embedding, so the product is not retrieved; ``ranked``: a score like others.
    """

    name: str
    unmatched: Literal["ranked", "unranked"] = "ranked"

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of everything that a score depends on besides the features."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return JSON-able metadata, printed beside its numbers."""

    @abstractmethod
    def product_rows(self, products: ProductFeatures) -> np.ndarray | csr_array:
        """Return (n, d) float32 embeddings of products: dense unit rows, or sparse ones."""

    @abstractmethod
    def category_rows(self, categories: CategoryFeatures) -> np.ndarray | csr_array:
        """Return (q, d) float32 embeddings of categories, of the same type."""


class BM25(Ranker):
    """BM25 over the titles of the products that are ranked, as sparse rows whose inner product is the score.

    A product's row holds, for each word of its title, idf · tf / (tf + k1 (1 − b + b · length / mean length)) with
    idf = ln(1 + (N − df + ½) / (df + ½)) as in Lucene; a category's row counts its words. A score of 0 means no word
    in common. Sources: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; Lù, BM25S, 2024.
    """

    name = "bm25"
    unmatched: Literal["ranked", "unranked"] = "unranked"

    def __init__(
        self, products: ProductFeatures, *, k1: float = 1.5, b: float = 0.75, fold: Fold = "plural"
    ) -> None:
        from scipy.sparse import csc_array

        if k1 < 0 or not 0 <= b <= 1:
            raise UsageError(f"BM25 with k1 {k1} and b {b}", "give k1 of at least 0 and b in [0, 1]")
        self.k1, self.b, self.fold = k1, b, fold
        self._library = require("bm25s", "commerce", "BM25")
        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for every message to be shown
        self._words, self._vocabulary = folded_by(fold), dict[str, int]()
        self._products = list(zip(products.ids, products.titles, strict=True))
        texts = [
            [self._vocabulary.setdefault(word, len(self._vocabulary)) for word in self._words(title)]
            for title in products.titles
        ]
        if not self._vocabulary:
            raise DataError(f"no word in the titles of {len(products):,} products", "BM25 needs titles")
        index = self._library.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        # Its own dictionary gets a word for nothing, so it gets a copy.
        index.index((texts, dict(self._vocabulary)), show_progress=False)
        start = index.scores["indptr"][: len(self._vocabulary) + 1]
        weights, products_of = (index.scores[name][: int(start[-1])] for name in ("data", "indices"))
        columns = csc_array((weights, products_of, start), shape=(len(products), len(self._vocabulary)))
        self._rows: csr_array = columns.tocsr().astype(np.float32)
        self._rows.sort_indices()

    @cached_property
    def fingerprint(self) -> str:
        """Of titles, settings and the words that count as the same."""
        ids, titles = zip(*self._products, strict=True)
        return fingerprint(self.name, fingerprint(iter(ids), iter(titles)), self.k1, self.b, self.fold)

    def describe(self) -> dict[str, Any]:
        """Return settings, sizes and the library."""
        return {
            "name": self.name,
            "k1": self.k1,
            "b": self.b,
            "idf": "lucene: ln(1 + (N - df + 0.5) / (df + 0.5))",
            "words": f"lower case, hyphens and apostrophes closed, fold {self.fold}, no word dropped",
            "statistics": f"of the titles of the {len(self._products):,} products that are ordered",
            "vocabulary": len(self._vocabulary),
            "unmatched": "products without a word of the category are not retrieved",
            "library": f"bm25s {self._library.__version__}",
            "fingerprint": self.fingerprint,
        }

    def product_rows(self, products: ProductFeatures) -> csr_array:
        """Return (n, words) float32 weights of each title's words, of products that it was made for."""
        given = list(zip(products.ids, products.titles, strict=True))
        if given == self._products:
            return self._rows
        if strange := [name for name, title in given if (name, title) not in self._places]:
            raise MismatchError(
                f"BM25 was made for {len(self._products):,} products, {strange[0]!r} with this title is none of them",
                "make it for the products that are ordered: its statistics are theirs",
            )
        return self._rows[np.array([self._places[one] for one in given], dtype=np.int64)]

    def category_rows(self, categories: CategoryFeatures) -> csr_array:
        """Return (q, words) float32 counts of each category's words; an empty row where no title has any."""
        from scipy.sparse import csr_array

        counts = [
            Counter(self._vocabulary[word] for word in self._words(text) if word in self._vocabulary)
            for text in categories.texts
        ]
        start = np.cumsum([0, *map(len, counts)])
        words = np.array([word for one in counts for word in sorted(one)], dtype=np.int64)
        times = np.array([one[word] for one in counts for word in sorted(one)], dtype=np.float32)
        return csr_array((times, words, start), shape=(len(counts), len(self._vocabulary)))

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {pair: place for place, pair in enumerate(self._products)}


class ZeroShot(Ranker):
    """The cosine of a product and a category by one frozen encoder; what has no embedding is not ranked."""

    unmatched: Literal["ranked", "unranked"] = "unranked"
    side: ClassVar[str]  # ``text`` or ``image``: the encoder in the features' ``about``
    rows_of: ClassVar[tuple[str, str]]  # the embeddings in the features of products and of categories
    fix: ClassVar[str] = ""

    def __init__(self, products: ProductFeatures) -> None:
        self._encoder: Mapping[str, Any] = products.about.get(self.side) or {}
        if not self._encoder:
            raise UsageError(f"{self.name} needs rows of pictures, and the products have none", self.fix)

    @property
    def fingerprint(self) -> str:
        """Of the encoder."""
        return fingerprint(self.name, self._encoder["fingerprint"])

    def describe(self) -> dict[str, Any]:
        """Return the encoder's description."""
        return {"name": self.name, "encoder": dict(self._encoder), "fingerprint": self.fingerprint}

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        """Return (n, d) float32 embeddings of products."""
        return self._rows(products, "products")

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        """Return (q, d) float32 embeddings of the categories' texts."""
        return self._rows(categories, "categories")

    def _rows(self, features: ProductFeatures | CategoryFeatures, what: str) -> np.ndarray:
        found = (features.about.get(self.side) or {}).get("fingerprint")
        if found != self._encoder["fingerprint"]:
            made = f"{self.name} was made for rows of {self._encoder['fingerprint']}"
            fix = "make the features of both with the same FeatureMaker"
            raise MismatchError(f"{made}, those of the {what} are of {found}", fix)
        rows: np.ndarray | None = getattr(features, self.rows_of[what == "categories"])
        if rows is None:
            raise UsageError(f"{self.name} needs rows of the {what} by its encoder, there are none", self.fix)
        return rows


class ClipRanker(ZeroShot):
    """An image and a category by both sides of a dual encoder (Radford et al., CLIP, ICML 2021)."""

    name, side, rows_of = "clip", "image", ("image", "dual")
    fix = "make the features with a dual encoder as image encoder (CLIP, or one that was trained), or leave clip out"

    def __init__(self, products: ProductFeatures) -> None:
        super().__init__(products)
        if self._encoder.get("kind") != "dual":
            made = f"pictures were encoded by {self._encoder.get('source')}"
            raise UsageError(f"clip needs a dual encoder, and {made}", self.fix)


class SentenceRanker(ZeroShot):
    """A title and a category by a text encoder; the thesis takes MPNet (Song et al., NeurIPS 2020)."""

    name, side, rows_of = "sentence", "text", ("title", "text")


RANKERS: dict[str, Callable[[ProductFeatures], Ranker]] = {
    "bm25": BM25,
    "clip": ClipRanker,
    "sentence": SentenceRanker,
}
"""Rankers that need no training, by name: made from the products that are ranked."""


def features_part(features: ProductFeatures, rows: np.ndarray) -> ProductFeatures:
    """Return the features of some products."""
    begin = features.attribute_start[rows]
    counts = features.attribute_start[rows + 1] - begin
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    items = np.arange(start[-1]) + np.repeat(begin - start[:-1], counts)
    some = rows.tolist()
    return replace(
        features,
        ids=[features.ids[row] for row in some],
        titles=[features.titles[row] for row in some],
        **{name: getattr(features, name)[rows] for name in ("title", "pictured", "titled")},
        image=None if features.image is None else features.image[rows],
        attribute_start=start,
        attribute_items=features.attribute_items[items],
    )


def features_of_nodes(categories: CategoryFeatures, nodes: np.ndarray) -> CategoryFeatures:
    """Return the features of some nodes, of those of all nodes."""
    texts = [categories.texts[node] for node in nodes.tolist()]
    dual = None if categories.dual is None else categories.dual[nodes]
    return CategoryFeatures(texts, categories.text[nodes], dual, categories.about)


def product_rows(ranker: Ranker, features: ProductFeatures, block: int = _BLOCK) -> np.ndarray | csr_array:
    """Return (n, d) float32 embeddings of all products in memory, encoded ``block`` at a time."""
    if len(features) <= block:
        return ranker.product_rows(features)
    parts: list[Any] = list(_blocks(ranker, features, block))
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(parts, format="csr"))


def product_embeddings(
    ranker: Ranker, features: ProductFeatures, folder: Path | str, *, data: str, about: dict[str, Any]
) -> Embeddings:
    """Write the same embeddings to ``folder`` block by block, and open them."""
    blocks = _blocks(ranker, features, _BLOCK)
    first = next(blocks, None)
    if not isinstance(first, np.ndarray):
        problem = f"{ranker.name} has no dense rows of {len(features):,} products"
        raise UsageError(problem, "take a ranker that embeds, such as clip")
    maker, metadata = ranker.fingerprint, {"ranker": ranker.describe(), **about}
    plan = RowPlan({"encoder": maker, "data": data}, len(features), (first.shape[1],), _BLOCK)
    with RowStore.begin(Path(folder), plan) as store:
        for number, rows in enumerate(chain([first], blocks)):
            store.write(number, np.asarray(rows))
    return store.finish(lambda rows: Embeddings(features.ids, rows, maker, data, "product", metadata))


def _blocks(ranker: Ranker, features: ProductFeatures, block: int) -> Iterator[np.ndarray | csr_array]:
    for begin in track(range(0, len(features), block), "products", unit="blocks"):
        yield ranker.product_rows(
            features_part(features, np.arange(begin, min(begin + block, len(features))))
        )
