"""Rankers: models that order products for a category, as embeddings whose inner products are the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
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
from diptych.data.title_words import folded_by
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.row_store import RowPlan, RowStore

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK = 16_384
_K1, _B = 1.5, 0.75  # of BM25


class Ranker(ABC):
    """A ready model, trained or not.

    Where ``unmatched`` is ``unranked``, a score of exactly 0 means that product and category have nothing in common, no
    word or no embedding, and the product is not retrieved.
    """

    name: str
    unmatched: Literal["ranked", "unranked"] = "ranked"

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of everything that a score depends on besides the features."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return JSON-able metadata, printed with its numbers."""

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
    in common. Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
    """

    name = "bm25"
    unmatched: Literal["ranked", "unranked"] = "unranked"

    def __init__(self, products: ProductFeatures) -> None:
        text = require("sklearn.feature_extraction.text", "commerce", "BM25")
        words = folded_by("plural")
        if not any(words(title) for title in products.titles):
            raise DataError(f"no word in the titles of {len(products):,} products", "BM25 needs titles")
        self._counter = text.CountVectorizer(analyzer=words, dtype=np.float32)
        rows: csr_array = self._counter.fit_transform(products.titles).astype(np.float64)
        n, length = rows.shape[0], np.asarray(rows.sum(axis=1)).ravel()
        seen = np.bincount(rows.indices, minlength=rows.shape[1])
        idf = np.log1p((n - seen + 0.5) / (seen + 0.5))
        norm = _K1 * (1 - _B + _B * length / length.mean())
        rows.data *= idf[rows.indices] / (rows.data + np.repeat(norm, np.diff(rows.indptr)))
        self._rows = rows.astype(np.float32)
        self._place = {pair: row for row, pair in enumerate(zip(products.ids, products.titles, strict=True))}

    @cached_property
    def fingerprint(self) -> str:
        ids, titles = zip(*self._place, strict=True)
        return fingerprint(self.name, fingerprint(iter(ids), iter(titles)), _K1, _B)

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "k1": _K1,
            "b": _B,
            "idf": "lucene: ln(1 + (N - df + 0.5) / (df + 0.5))",
            "words": "lower case, hyphens and apostrophes closed, plurals folded, no word dropped",
            "statistics": f"of the titles of the {len(self._place):,} products that are ordered",
            "vocabulary": self._rows.shape[1],
            "fingerprint": self.fingerprint,
        }

    def product_rows(self, products: ProductFeatures) -> csr_array:
        places = [self._place.get(one, -1) for one in zip(products.ids, products.titles, strict=True)]
        if -1 in places:
            odd = f"{products.ids[places.index(-1)]!r} with this title is none of them"
            problem = f"BM25 was made for {len(self._place):,} products, {odd}"
            raise MismatchError(
                problem, "make it for the products that are ordered: its statistics are theirs"
            )
        return self._rows[places]

    def category_rows(self, categories: CategoryFeatures) -> csr_array:
        counts: csr_array = self._counter.transform(categories.texts)
        return counts


class ZeroShot(Ranker):
    """The cosine of a product and a category by one frozen encoder; what has no embedding is not ranked."""

    unmatched: Literal["ranked", "unranked"] = "unranked"
    side: ClassVar[Literal["image", "text"]]  # the encoder in the features' ``about``

    def __init__(self, products: ProductFeatures) -> None:
        self._encoder: Mapping[str, Any] = products.about.get(self.side) or {}

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.name, self._encoder["fingerprint"])

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "encoder": dict(self._encoder), "fingerprint": self.fingerprint}

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        return self._rows(products, products.image if self.side == "image" else products.title, "products")

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        rows = categories.dual if self.side == "image" else categories.text
        return self._rows(categories, rows, "categories")

    def _rows(
        self, features: ProductFeatures | CategoryFeatures, rows: np.ndarray | None, what: str
    ) -> np.ndarray:
        found, own = (features.about.get(self.side) or {}).get("fingerprint"), self._encoder["fingerprint"]
        if rows is None or found != own:
            problem = f"{self.name} was made for rows of {own}, those of the {what} are of {found}"
            raise MismatchError(problem, "make the features of both with the same FeatureMaker")
        return rows


class ClipRanker(ZeroShot):
    """An image and a category by both sides of a dual encoder (Radford et al., CLIP, ICML 2021)."""

    name, side = "clip", "image"

    def __init__(self, products: ProductFeatures) -> None:
        super().__init__(products)
        if self._encoder.get("kind") != "dual":
            source = self._encoder.get("source", "none")
            problem = f"clip needs a dual encoder, and pictures were encoded by {source}"
            raise UsageError(
                problem, "give one as image encoder (CLIP, or one that was trained), or leave clip out"
            )


class SentenceRanker(ZeroShot):
    """A title and a category by a text encoder; the thesis takes MPNet (Song et al., NeurIPS 2020)."""

    name, side = "sentence", "text"


RANKERS: dict[str, Callable[[ProductFeatures], Ranker]] = {
    "bm25": BM25,
    "clip": ClipRanker,
    "sentence": SentenceRanker,
}
"""Rankers that need no training, by name: made from the products that are ranked."""


def product_embeddings(
    ranker: Ranker, features: ProductFeatures, folder: Path | str, *, data: str, about: dict[str, Any]
) -> Embeddings:
    """Write (n, d) float32 embeddings of all products to ``folder`` block by block, and open them."""
    n = len(features)

    def rows_of(begin: int) -> np.ndarray | csr_array:
        rows = np.arange(begin, min(begin + _BLOCK, n))
        return ranker.product_rows(features if n <= _BLOCK else features.part(rows))

    blocks = map(rows_of, track(range(0, n, _BLOCK), "products", unit="blocks"))
    first = next(blocks, None)
    if not isinstance(first, np.ndarray):
        problem = f"{ranker.name} has no dense rows of {n:,} products"
        raise UsageError(problem, "take a ranker that embeds, such as clip")
    maker, metadata = ranker.fingerprint, {"ranker": ranker.describe(), **about}
    with RowStore.begin(
        Path(folder), RowPlan({"encoder": maker, "data": data}, n, (first.shape[1],), _BLOCK)
    ) as store:
        for number, rows in enumerate(chain([first], blocks)):
            store.write(number, np.asarray(rows))
    return store.finish(lambda rows: Embeddings(features.ids, rows, maker, data, "product", metadata))
