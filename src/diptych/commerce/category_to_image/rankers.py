"""Rankers, models that order products for a category by inner products of embeddings, and their measures."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array

from diptych.commerce.catalogue import Judged, assign_splits, judge, seen_nodes
from diptych.commerce.category_to_image.features import (
    CategoryFeatures,
    ProductFeatures,
    TrainOptions,
    encoders_of,
)
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.data.title_words import folded_by
from diptych.evaluation.evaluate import evaluate, rows_source
from diptych.evaluation.result import Reranking, Result
from diptych.metrics.ground_truth import Direction
from diptych.metrics.measures import discounts
from diptych.metrics.measuring import AnyMeasure, Measure
from diptych.metrics.ranks import Ranks, TieGroups, ranks_of
from diptych.metrics.runs import starts
from diptych.metrics.sparse_products import sparse_top_k
from diptych.metrics.topk import top_k

_K1, _B = 1.5, 0.75  # of BM25


class Ranker(ABC):
    """A ready model, trained or not; JSON-able ``about`` is printed with its numbers."""

    name: str
    fingerprint: str  # of everything that a score depends on besides the features
    about: Mapping[str, Any]
    unranked = False  # whether products that score 0 are not retrieved

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "fingerprint": self.fingerprint, **self.about}

    @abstractmethod
    def product_rows(self, products: ProductFeatures) -> np.ndarray | csr_array:
        """Return (n, d) float32 embeddings of products: dense unit rows, or sparse ones."""

    @abstractmethod
    def category_rows(self, categories: CategoryFeatures) -> np.ndarray | csr_array:
        """Return (q, d) float32 embeddings of categories, of the same type."""


def check_encoders(model: str, expected: Mapping[str, str], about: Mapping[str, Any]) -> None:
    """Refuse embeddings of other encoders than those that a model was made for."""
    for side, found in encoders_of(about, *expected).items():
        if found != expected[side]:
            problem = f"{model} was made for rows of {side} encoder {expected[side]}, these are of {found}"
            raise MismatchError(problem, "make the features of both with one FeatureMaker, a run's its own")


class BM25(Ranker):
    """BM25 over the titles of the products that are ranked, as sparse rows whose inner product is the score.

    A product's row holds, for each word of its title, idf · tf / (tf + k1 (1 − b + b · length / mean length)) with
    idf = ln(1 + (N − df + ½) / (df + ½)) as in Lucene; a category's row counts its words. Source: Robertson and
    Zaragoza, The Probabilistic Relevance Framework, 2009.
    """

    name, unranked = "bm25", True

    def __init__(self, products: ProductFeatures) -> None:
        text = require("sklearn.feature_extraction.text", "commerce", "BM25")
        words, titles = folded_by("plural"), products.catalogue.titles
        if not any(map(words, titles)):
            raise DataError(f"no word in the titles of {len(titles):,} products", "BM25 needs titles")
        self._counter = text.CountVectorizer(analyzer=words, dtype=np.float32)
        counts: csr_array = self._counter.fit_transform(titles)
        seen = np.bincount(counts.indices, minlength=counts.shape[1])
        self._idf = np.log1p((len(titles) - seen + 0.5) / (seen + 0.5))
        self._length = counts.sum(dtype=np.float64) / len(titles)
        self.fingerprint = fingerprint(self.name, fingerprint(iter(titles)), _K1, _B)
        self.about = {"k1": _K1, "b": _B, "products": len(titles), "vocabulary": len(self._idf)}

    def product_rows(self, products: ProductFeatures) -> csr_array:
        rows: csr_array = self._counter.transform(products.catalogue.titles).astype(np.float64)
        norm = _K1 * (1 - _B + _B * np.asarray(rows.sum(axis=1)).ravel() / self._length)
        rows.data *= self._idf[rows.indices] / (rows.data + np.repeat(norm, np.diff(rows.indptr)))
        return rows.astype(np.float32)

    def category_rows(self, categories: CategoryFeatures) -> csr_array:
        counts: csr_array = self._counter.transform(categories.texts)
        return counts


class ZeroShot(Ranker):
    """The cosine of a product and a category by one frozen encoder; what has no embedding is not ranked.

    ``clip``: an image and a category by both sides of a dual encoder (Radford et al., CLIP, ICML 2021); ``sentence``: a
    title and a category by a text encoder; the thesis takes MPNet (Song et al., NeurIPS 2020).
    """

    unranked = True

    def __init__(self, name: str, side: Literal["image", "text"], products: ProductFeatures) -> None:
        encoder = products.about.get(side) or {}
        if side == "image" and encoder.get("kind") != "dual":
            source = encoder.get("source", "none")
            problem = f"{name} needs a dual encoder, and images were encoded by {source}"
            raise UsageError(problem, f"give CLIP or a run of yours as image encoder, or leave {name} out")
        self.name, self._side, self.about = name, side, {"encoder": dict(encoder)}
        self._expected = encoders_of(products.about, side)
        self.fingerprint = fingerprint(name, encoder["fingerprint"])

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        check_encoders(self.name, self._expected, products.about)
        rows: Any = products.image if self._side == "image" else products.title
        return np.asarray(rows)

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        check_encoders(self.name, self._expected, categories.about)
        rows: Any = categories.dual if self._side == "image" else categories.text
        return np.asarray(rows)


RANKERS: dict[str, Callable[[ProductFeatures], Ranker]] = {
    "bm25": BM25,
    "clip": partial(ZeroShot, "clip", "image"),
    "sentence": partial(ZeroShot, "sentence", "text"),
}
"""Rankers that need no training, by name: made from the products that are ranked."""


CATEGORY_MEASURES = ("P@1", "P@5", "P@10", "mAP@5", "mAP@10", "R-precision", "mAP-hits@5", "mAP-hits@10")
"""The thesis's measures of category queries. mAP@k divides by min(k, relevant products); mAP-hits@k by the relevant
ones among the first k, with which the published numbers agree better."""

LEADERBOARD = ("mAP", "P@10", "MRR", "nDCG@10")
"""Measures of category queries that Marqo's e-commerce leaderboards print."""

PRODUCT_MEASURES = ("R@1",)
"""Measures of product queries: the share of products that would be put in the right place."""

_APART = -2.0  # what a row of zeros scores, below every cosine


def _binary_ndcg(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    """Return (n_queries,) nDCG@k with gain 1 for a relevant item, expected over the orders of ties."""
    k = cutoff or 10
    gains = np.concatenate([[0.0], np.cumsum(discounts(k))])
    begin, end = np.minimum(groups.before, k), np.minimum(groups.before + groups.size, k)
    found = (gains[end] - gains[begin]) * groups.positives / groups.size
    total = np.bincount(groups.query, weights=found, minlength=groups.n_queries)
    return np.asarray(total / gains[np.clip(groups.relevant, 1, k)])


NDCG = Measure(
    name="nDCG@10",
    description="nDCG@10 with a gain of 1 for each relevant product; products that are not retrieved have none",
    citation="Järvelin and Kekäläinen, ACM TOIS 2002",
    positives="all",
    per_query=_binary_ndcg,
    cutoff=10,
)


@dataclass(frozen=True, eq=False)
class Scored:
    """The embeddings whose inner products are scores; in place of a score source, what is retrieved by them."""

    products: Any  # (n, d) of judged.products, dense or sparse
    categories: Any  # (q, d) of judged.nodes
    unranked: bool  # products that score 0, or whose row or query is zeros, are not retrieved
    judged: Judged
    similarity = "dot"
    usual_ties = "expected"
    protocol: Reranking | None = None

    @classmethod
    def of(
        cls, ranker: Ranker, products: ProductFeatures, categories: CategoryFeatures, judged: Judged
    ) -> Self:
        rows = ranker.product_rows(products)[judged.products]
        queries = ranker.category_rows(categories.part(judged.nodes))
        if ranker.unranked and isinstance(rows, np.ndarray) and isinstance(queries, np.ndarray):
            empty, none = (_APART * ~side.any(axis=1) for side in (rows, queries))
            rows = np.column_stack([rows, empty, np.ones(len(rows))]).astype(np.float32)
            queries = np.column_stack([queries, np.ones(len(queries)), none]).astype(np.float32)
        return cls(rows, queries, ranker.unranked, judged)

    def ranks(self, every: bool, block: int, threads: int | None) -> dict[Direction, Ranks]:
        """Return ranks among what is retrieved, of both directions; no cut-off finds other positives."""
        source, found = rows_source(self.products, self.categories, "dot"), dict[Direction, Ranks]()
        for way, one in ranks_of(source, self.judged.truth, every=every).items():
            keep = _retrieved(one.scores)
            start = starts(np.bincount(one.queries[keep], minlength=one.n_queries)).astype(np.int64)
            kept = {name: getattr(one, name)[keep] for name in ("above", "tied", "later", "group", "scores")}
            found[way] = replace(one, start=start, **kept)
        return found

    def first(self, k: int, side: Direction = "t2i") -> tuple[np.ndarray, np.ndarray]:
        """Return rows of the first k, -1 where less is retrieved, and scores; of equal ones the lower row is first."""
        sides = (self.categories, self.products)
        queries, gallery = sides if side == "t2i" else sides[::-1]
        if not isinstance(gallery, np.ndarray):
            return sparse_top_k(queries, gallery, k)
        rows, scores = top_k(queries, gallery, k)
        lost = self.unranked & ~_retrieved(scores)
        return np.where(lost, -1, rows), np.where(lost, 0.0, scores)


def _retrieved(scores: np.ndarray) -> np.ndarray:
    found: np.ndarray = (scores != 0) & (scores > _APART)
    return found


def measure_ranker(
    ranker: Ranker,
    products: ProductFeatures,
    categories: CategoryFeatures,
    judged: Judged,
    *,
    measures: Sequence[str | AnyMeasure] = (*CATEGORY_MEASURES, *PRODUCT_MEASURES, "mAP", "MRR", NDCG),
    about: Mapping[str, Any] | None = None,
    scored: Scored | None = None,
) -> Result:
    """Measure a ranker on judged products; ``categories`` are all nodes of the tree.

    ``t2i`` of the result is a category that is a query for products, ``i2t`` a product for its category. Where the
    ranker's score of 0 is no ranking, such pairs give no hit at any cut-off.
    """
    rows = scored or Scored.of(ranker, products, categories, judged)
    metadata = {"model": ranker.name, "setting": judged.setting, "relevance": judged.relevance}
    metadata |= {"data": f"judged with seed {judged.seed}", **(about or {})}
    if rows.unranked:
        metadata["retrieved"] = "pairs of score 0 are not retrieved"
        return evaluate(rows, None, judged.truth, measures, about=metadata)
    return evaluate(rows.products, rows.categories, judged.truth, measures, similarity="dot", about=metadata)


MIXED = "mixed"
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the trained scores
_CHOOSES = "mAP@10"
_HELD_OUT = 0.2  # share of categories, and of the other products


@dataclass(frozen=True, eq=False)
class Mixed(Ranker):
    """w · trained + (1 − w) · zero-shot, both standardised; w depends on whether training saw the category."""

    trained: Ranker
    frozen: Ranker
    seen: frozenset[str]  # category texts that training saw
    weights: tuple[float, float] = (0.0, 1.0)  # w of categories never seen and of others
    scales: Sequence[tuple[float, float]] = ((0, 1), (0, 1))  # mean and deviation of trained, frozen scores
    about: Mapping[str, Any] = field(default_factory=dict)
    name = MIXED

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        parts = self.trained.fingerprint, self.frozen.fingerprint
        return fingerprint(self.name, *parts, *self.weights, *map(tuple, self.scales))

    def describe(self) -> dict[str, Any]:
        weights = dict(zip(("never seen", "seen"), self.weights, strict=True))
        parts = {"trained": self.trained.describe(), "zero-shot": self.frozen.describe()}
        return {"name": self.name, "weights of the trained": weights, **parts, **self.about}

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        rows: list[Any] = [one.product_rows(products) for one in (self.trained, self.frozen)]
        return np.column_stack([*rows, np.ones(len(rows[0])), products.present["title"]]).astype(np.float32)

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        trained, frozen = (np.asarray(one.category_rows(categories)) for one in (self.trained, self.frozen))
        share = np.array(self.weights)[self.is_seen(categories)]
        share[~frozen.any(axis=1)] = 1.0
        (mean, sd), (zero_mean, zero_sd) = self.scales
        mine, theirs = share / sd, (1 - share) / zero_sd
        parts = mine[:, None] * trained, theirs[:, None] * frozen, -mean * mine, -zero_mean * theirs
        return np.column_stack(parts).astype(np.float32)

    def is_seen(self, categories: CategoryFeatures) -> np.ndarray:
        """Return (q,) 1 for a category whose text training saw, 0 for another."""
        return np.array([text in self.seen for text in categories.texts], dtype=np.int64)


def learn_mixed(
    products: ProductFeatures,
    categories: CategoryFeatures,  # of all nodes of the tree
    options: TrainOptions,
    *,
    validation: ProductFeatures | None = None,
) -> Mixed:
    """Train the model, and learn on held-out categories how to mix it with the zero-shot text encoder."""
    from diptych.commerce.category_to_image.training import train as fit

    def learned_from(part: ProductFeatures, frozen: Ranker) -> Mixed:
        model = fit(part, categories, options, validation=validation)
        nodes = np.flatnonzero(
            seen_nodes(part.catalogue, options.setting, options.seed, epochs=options.drawn_epochs)
        )
        return Mixed(model, frozen, frozenset(categories.texts[node] for node in nodes.tolist()))

    final = learned_from(products, RANKERS["sentence"](products))
    try:
        shares, seed = {"train": 1 - _HELD_OUT, "test": _HELD_OUT}, options.seed
        parted = assign_splits(products.catalogue, "product", shares=shares, seed=seed)
        held_out = {"setting": options.setting, "held_out": _HELD_OUT}
        is_learned = np.array(assign_splits(parted, "category", seed=seed, **held_out).splits) == "train"
        rest, given = (products.part(np.flatnonzero(rows)) for rows in (is_learned, ~is_learned))
        trial = learned_from(rest, final.frozen)
        judged = judge(given.catalogue, options.setting, "label", seed)
    except DataError as error:
        return replace(final, about={"rule": f"not learned: {error.message}"})
    queries = categories.part(judged.nodes)
    scales = _scale(trial.trained, given, queries), _scale(trial.frozen, given, queries)
    mixed = [replace(trial, scales=scales, weights=(w, w)) for w in WEIGHTS]
    measured = [measure_ranker(one, given, categories, judged, measures=[_CHOOSES]) for one in mixed]
    values, is_seen = np.array([one.per_query["t2i"][_CHOOSES] for one in measured]), trial.is_seen(queries)
    never = values[-1, is_seen == 0].sum() > values[0, is_seen == 0].sum()  # of few, no mixture holds
    sizes = np.bincount(is_seen, minlength=2).tolist()
    about = {"validation categories": sizes, "chosen by": f"{_CHOOSES} of validation categories"}
    return replace(
        final, weights=(float(never), _weight(values[:, is_seen == 1])), scales=scales, about=about
    )


def _weight(values: np.ndarray) -> float:
    """Return the weight with the best of (weights, q) values; one of both ends without two errors' gain."""
    if not (q := values.shape[1]):
        return 1.0
    means = values.mean(axis=1)
    end, best = 0 if means[0] >= means[-1] else len(WEIGHTS) - 1, int(means.argmax())
    gain = values[best] - values[end]
    is_better = q > 1 and gain.mean() > 2 * gain.std() / np.sqrt(q - 1)
    return WEIGHTS[best if is_better else end]


def _scale(ranker: Ranker, products: ProductFeatures, queries: CategoryFeatures) -> tuple[float, float]:
    rows: Any = ranker.product_rows(products)
    scores = rows[rows.any(axis=1)] @ ranker.category_rows(queries).T
    return (float(scores.mean()), float(scores.std()) or 1.0) if scores.size else (0.0, 1.0)
