"""Rankers: what orders products for a category, as rows whose inner products are the scores."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from diptych.commerce.category_to_image.features import CategoryFeatures, Modality, ProductFeatures
from diptych.core.context import track
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.core.registry import Registry
from diptych.data.title_words import Fold, folded_by
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.row_store import RowPlan, RowStore

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Ranker(ABC):
    """A ready model, trained or not.

    Attributes:
        name: ``bm25``, ``sentence``, ``clip``, ``clip-ita``, …
        unmatched: what a score of exactly 0 says. ``unranked``: product and category have nothing in common (no
            word, or one of them has no row at all), so the product is not retrieved, and a category that has
            nothing in common with any product has no ranking; ``ranked``: it is a score like others.
    """

    name: str
    unmatched: Literal["ranked", "unranked"] = "ranked"

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of everything that a score depends on besides the features."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What has to be printed beside its numbers, JSON-able."""

    @abstractmethod
    def product_rows(self, products: ProductFeatures) -> np.ndarray | csr_array:
        """(n, d) float32 rows of products: dense unit rows, or sparse ones."""

    @abstractmethod
    def category_rows(self, categories: CategoryFeatures) -> np.ndarray | csr_array:
        """(q, d) float32 rows of categories, of the same kind."""


@dataclass(frozen=True)
class RankerKind:
    """A way to order products for categories without training."""

    name: str  # what it is called wherever models are named
    description: str  # one line
    citation: str  # where it is from
    modalities: tuple[Modality, ...]  # what it sees of a product
    make: Callable[[ProductFeatures], Ranker]  # from the products that will be ordered


RANKERS: Registry[RankerKind] = Registry("ranker", "diptych.commerce.category_to_image.rankers")


class ZeroShot(Ranker):
    """A frozen encoder's own rows.

    A product without a title or picture has a row of zeros, and so has a category of which the encoder knows no
    word: their scores are 0, which is no ranking.
    """

    unmatched: Literal["ranked", "unranked"] = "unranked"
    side: ClassVar[str]
    """``text`` or ``image``: whose rows they are, as features' ``about`` calls it."""

    def __init__(self, encoder: Mapping[str, Any]) -> None:
        self._encoder = encoder

    @property
    def fingerprint(self) -> str:
        """Of the encoder."""
        return fingerprint(self.name, self._encoder["fingerprint"])

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {"name": self.name, "encoder": dict(self._encoder), "fingerprint": self.fingerprint}

    def _check(self, about: Mapping[str, Any], what: str) -> None:
        """See that rows are of the same encoder."""
        other = about.get(self.side) or {}
        if other.get("fingerprint") != self._encoder["fingerprint"]:
            raise MismatchError(
                f"{self.name} was made for rows of {self._encoder['fingerprint']}, those of the {what} are of "
                f"{other.get('fingerprint')}",
                "make the features of both with the same FeatureMaker",
            )


# BM25 over titles (bm25s), as sparse rows whose inner product is the score.
#
# A product's row holds, for each word of its title, idf · tf / (tf + k1 (1 − b + b · length / mean length)), in which
# idf = ln(1 + (N − df + ½) / (df + ½)) as Lucene has it: never negative, and 0 for no word. A category's row counts its
# words. A score of 0 so says that they have no word in common, and such a product is not retrieved.
#
# Sources: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; Lù, BM25S, 2024.
class BM25(Ranker):
    """BM25 over the titles of some products; its statistics are theirs."""

    name = "bm25"
    unmatched: Literal["ranked", "unranked"] = "unranked"

    def __init__(
        self, products: ProductFeatures, *, k1: float = 1.5, b: float = 0.75, fold: Fold = "plural"
    ) -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise UsageError(f"BM25 with k1 {k1} and b {b}", "give k1 of at least 0 and b in [0, 1]")
        self.k1, self.b, self.fold = k1, b, fold
        self._library = require("bm25s", "commerce", "BM25")
        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for every message to be shown
        self._words = folded_by(fold)
        self._ids, self._all_titles = products.ids, products.titles
        self._titles = _fingerprint(products)
        self._vocabulary: dict[str, int] = {}
        texts = [
            [self._vocabulary.setdefault(word, len(self._vocabulary)) for word in self._words(title)]
            for title in products.titles
        ]
        if not self._vocabulary:
            raise DataError(f"no word in the titles of {len(products):,} products", "BM25 needs titles")
        index = self._library.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        # Its own dictionary gets a word for nothing, so it gets a copy.
        index.index((texts, dict(self._vocabulary)), show_progress=False)
        self._rows = _rows_of(index.scores, len(products), len(self._vocabulary))

    @cached_property
    def fingerprint(self) -> str:
        """Of titles, settings and the words that count as the same."""
        return fingerprint(self.name, self._titles, self.k1, self.b, self.fold)

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {
            "name": self.name,
            "k1": self.k1,
            "b": self.b,
            "idf": "lucene: ln(1 + (N - df + 0.5) / (df + 0.5))",
            "words": f"lower case, hyphens and apostrophes closed, fold {self.fold}, no word dropped",
            "statistics": f"of the titles of the {len(self._ids):,} products that are ordered",
            "vocabulary": len(self._vocabulary),
            "unmatched": "products without a word of the category are not retrieved",
            "library": f"bm25s {self._library.__version__}",
            "fingerprint": self.fingerprint,
        }

    def product_rows(self, products: ProductFeatures) -> csr_array:
        """(n, words) float32 weights of each title's words; products among those that it was made for."""
        if _fingerprint(products) == self._titles:
            return self._rows
        places = [
            self._places.get((name, title), -1)
            for name, title in zip(products.ids, products.titles, strict=True)
        ]
        if -1 in places:
            raise MismatchError(
                f"BM25 was made for {len(self._ids):,} products, {products.ids[places.index(-1)]!r} with this title "
                "is none of them",
                "make it for the products that are ordered: its statistics are theirs",
            )
        return self._rows[np.array(places, dtype=np.int64)]

    def category_rows(self, categories: CategoryFeatures) -> csr_array:
        """(q, words) float32 counts of each category's words; an empty row where no title has any of them."""
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
        return {pair: place for place, pair in enumerate(zip(self._ids, self._all_titles, strict=True))}


def _fingerprint(products: ProductFeatures) -> str:
    return fingerprint(iter(products.ids), iter(products.titles))


def _rows_of(scores: dict[str, Any], n: int, words: int) -> csr_array:
    """What bm25s computed, word by word, as a row per product."""
    from scipy.sparse import csc_array

    indptr = scores["indptr"][: words + 1]
    end = int(indptr[-1])
    columns = csc_array((scores["data"][:end], scores["indices"][:end], indptr), shape=(n, words))
    rows: csr_array = columns.tocsr().astype(np.float32)
    rows.sort_indices()
    return rows


RANKERS.add(
    RankerKind(
        "bm25",
        "BM25 over titles: products that share words with the category's text",
        "Robertson and Zaragoza 2009",
        ("title",),
        BM25,
    )
)


# Pictures and categories through the two sides of one dual encoder: CLIP, zero-shot.
#
# Source: Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021.
_FIX = "make the features with a dual encoder as image encoder (CLIP, or one that was trained), or leave clip out"


class ClipRanker(ZeroShot):
    """The cosine of a picture's row and of a category's, by the same dual encoder."""

    name = "clip"
    side: ClassVar[str] = "image"

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        """(n, d) float32 rows of pictures."""
        self._check(products.about, "products")
        if products.image is None:
            raise UsageError("clip needs rows of pictures, and the products have none", _FIX)
        return products.image

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        """(q, d) float32 rows of the categories' texts by the encoder's own text side."""
        self._check(categories.about, "categories")
        if categories.dual is None:
            raise UsageError("clip needs the text side of the image encoder, which has none", _FIX)
        return categories.dual


def _make(products: ProductFeatures) -> ClipRanker:
    encoder = products.about.get("image")
    if encoder is None:
        raise UsageError("clip needs rows of pictures, and the products have none", _FIX)
    if encoder.get("kind") != "dual":
        raise UsageError(
            f"clip needs a dual encoder, and pictures were encoded by {encoder.get('source')}", _FIX
        )
    return ClipRanker(encoder)


RANKERS.add(
    RankerKind(
        "clip",
        "a dual encoder, zero-shot: pictures whose rows are near those of the category's text",
        "Radford et al. 2021",
        ("image",),
        _make,
    )
)


# Titles and categories through one text encoder: the thesis's MPNet, zero-shot, or whichever made the features.
#
# Source: Song et al., MPNet: Masked and Permuted Pre-training for Language Understanding, NeurIPS 2020; Reimers and
# Gurevych, Sentence-BERT, EMNLP 2019.
class SentenceRanker(ZeroShot):
    """The cosine of a title's row and a category's."""

    name = "sentence"
    side: ClassVar[str] = "text"

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        """(n, d) float32 rows of titles."""
        self._check(products.about, "products")
        return products.title

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        """(q, d) float32 rows of the categories' texts."""
        self._check(categories.about, "categories")
        return categories.text


def _sentence_make(products: ProductFeatures) -> SentenceRanker:
    return SentenceRanker(products.about["text"])


RANKERS.add(
    RankerKind(
        "sentence",
        "a text encoder, zero-shot: titles whose rows are near the category's",
        "Song et al. 2020",
        ("title",),
        _sentence_make,
    )
)


KIND = "product"
"""What embeddings of products call themselves."""

_BLOCK = 16_384


def features_part(features: ProductFeatures, begin: int, end: int) -> ProductFeatures:
    """The features of the products ``begin`` to ``end``; nothing is copied but starts of attributes."""
    here = slice(begin, end)
    start = features.attribute_start[begin : end + 1]
    return replace(
        features,
        ids=features.ids[here],
        titles=features.titles[here],
        image=None if features.image is None else features.image[here],
        title=features.title[here],
        attribute_start=start - start[0],
        attribute_items=features.attribute_items[start[0] : start[-1]],
        pictured=features.pictured[here],
        titled=features.titled[here],
    )


def product_rows(ranker: Ranker, features: ProductFeatures, block: int = _BLOCK) -> np.ndarray | csr_array:
    """(n, d) float32 rows of all products in memory, dense ones made ``block`` at a time."""
    if len(features) <= block:
        return ranker.product_rows(features)
    parts = list(_blocks(ranker, features, block))
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(parts, format="csr"))


def product_embeddings(
    ranker: Ranker, features: ProductFeatures, folder: Path | str, *, data: str, about: dict[str, Any]
) -> Embeddings:
    """The same written to ``folder`` as they come, and opened; one block is in memory."""
    blocks = _blocks(ranker, features, _BLOCK)
    first = next(blocks, None)
    if not isinstance(first, np.ndarray):
        raise UsageError(
            f"{ranker.name} has no dense rows of {len(features):,} products",
            "take a ranker that embeds, such as clip",
        )

    maker, metadata = ranker.fingerprint, {"ranker": ranker.describe(), **about}
    plan = RowPlan({"encoder": maker, "data": data}, len(features), (first.shape[1],), _BLOCK)
    with RowStore.begin(Path(folder), plan) as store:
        for number, rows in enumerate(chain([first], blocks)):
            store.write(number, np.asarray(rows))
    return store.finish(lambda rows: Embeddings(features.ids, rows, maker, data, KIND, metadata))


def _blocks(ranker: Ranker, features: ProductFeatures, block: int) -> Iterator[np.ndarray | csr_array]:
    for begin in track(range(0, len(features), block), "products", unit="blocks"):
        yield ranker.product_rows(features_part(features, begin, min(begin + block, len(features))))
