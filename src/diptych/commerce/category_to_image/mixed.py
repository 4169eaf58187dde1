"""Mixed: the trained model and the zero-shot text encoder, weighted by how often training saw a category's text.

The rule is learned on validation categories: a share of the training categories, and of the other training products,
is held out, a model is trained on the rest, and for categories that it never saw, saw rarely and saw often, the
weight of the trained scores is chosen by mAP@10 among the products that were held out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diptych.commerce.catalogue import Catalogue, judge, targets_of
from diptych.commerce.catalogue.making import assign_splits
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.measuring import measure_ranker
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.rankers import Ranker, SentenceRanker
from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint

MIXED = "mixed"
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the trained scores
OFTEN = 10  # training products from which on a category was seen often
_CHOOSES = "mAP@10"
_ENOUGH = 30  # validation categories from which on rarely seen ones have a weight of their own
_HELD_OUT = 0.2  # share of categories, and of the other products


@dataclass(frozen=True, eq=False)
class Mixed(Ranker):
    """w · trained + (1 − w) · zero-shot, both standardised; w depends on the category.

    A product without a title has an average zero-shot score; a text without an embedding has trained scores.
    """

    trained: Ranker
    frozen: Ranker
    counts: Mapping[str, int]  # training products by category text
    weights: tuple[float, float, float] = (
        0.0,
        1.0,
        1.0,
    )  # w of categories never seen, seen rarely, seen often
    scales: tuple[tuple[float, float], tuple[float, float]] = (
        (0, 1),
        (0, 1),
    )  # mean, deviation of both scores
    about: Mapping[str, Any] = field(default_factory=dict)
    name = MIXED

    @property
    def fingerprint(self) -> str:
        parts = self.trained.fingerprint, self.frozen.fingerprint
        return fingerprint(self.name, *parts, *self.weights, *self.scales[0], *self.scales[1])

    def describe(self) -> dict[str, Any]:
        weights = dict(zip(("never seen", "rarely seen", "often seen"), self.weights, strict=True))
        parts = {"trained": self.trained.describe(), "zero-shot": self.frozen.describe()}
        return {"name": self.name, "weights of the trained": weights, **parts, **self.about}

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        rows = self.trained.product_rows(products), self.frozen.product_rows(products)
        return np.column_stack([*rows, np.ones(len(products)), products.titled]).astype(np.float32)

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        trained, frozen = (np.asarray(one.category_rows(categories)) for one in (self.trained, self.frozen))
        share = np.array(self.weights)[_groups(self.counts, categories)]
        share[~frozen.any(axis=1)] = 1.0
        (mean, sd), (zero_mean, zero_sd) = self.scales
        mine, theirs = share / sd, (1 - share) / zero_sd
        parts = mine[:, None] * trained, theirs[:, None] * frozen, -mean * mine, -zero_mean * theirs
        return np.column_stack(parts).astype(np.float32)


def _groups(counts: Mapping[str, int], categories: CategoryFeatures) -> np.ndarray:
    """Return (q,) 0 for a category that training never saw, 1 for one that it saw rarely, 2 for often."""
    seen = np.array([counts.get(text, 0) for text in categories.texts])
    return (seen > 0) + (seen >= OFTEN).astype(np.int64)


def _counts(catalogue: Catalogue, categories: CategoryFeatures, options: TrainOptions) -> dict[str, int]:
    epochs = range(options.epochs) if options.resample else (None,)
    drawn = np.concatenate([targets_of(catalogue, options.setting, options.seed, epoch) for epoch in epochs])
    counts = Counter(categories.texts[node] for node in drawn[drawn >= 0].tolist())
    return {text: math.ceil(count / len(epochs)) for text, count in counts.items()}


def learn_mixed(
    train: Catalogue,
    features: ProductFeatures,
    categories: CategoryFeatures,  # of all nodes of the tree
    options: TrainOptions,
    *,
    validation: tuple[Catalogue, ProductFeatures] | None = None,
) -> Mixed:
    """Train the model, and learn on held-out categories how to mix it with the zero-shot text encoder."""
    from diptych.commerce.category_to_image.training import train as fit

    frozen = SentenceRanker(features)
    model = fit(train, features, categories, options, validation=validation)
    final = Mixed(model, frozen, _counts(train, categories, options))
    try:
        shares, seed = {"train": 1 - _HELD_OUT, "test": _HELD_OUT}, options.seed
        parted = assign_splits(train, "product", shares=shares, seed=seed)
        held_out = {"setting": options.setting, "held_out": _HELD_OUT}
        is_learned = np.array(assign_splits(parted, "category", seed=seed, **held_out).splits) == "train"
        learned, left = np.flatnonzero(is_learned), np.flatnonzero(~is_learned)
        rest, others = train.subset(learned), train.subset(left)
        inner = fit(rest, features.part(learned), categories, options, validation=validation)
        judged = judge(others, options.setting, "label", seed)
    except DataError as error:
        return replace(final, about={"rule": f"not learned: {error.message}"})
    given, queries = features.part(left), categories.part(judged.nodes)
    counts = _counts(rest, categories, options)
    scales = (_scale(inner, given, queries), _scale(frozen, given, queries))
    trial = Mixed(inner, frozen, counts, scales=scales)
    values = [
        measure_ranker(replace(trial, weights=(w, w, w)), given, queries, judged, measures=[_CHOOSES])
        for w in WEIGHTS
    ]
    per_category = np.array([one.per_query["t2i"][_CHOOSES] for one in values])
    group = _groups(counts, queries)
    seen = _weight(per_category[:, group > 0], 1.0)
    rarely, often = (_weight(per_category[:, group == one], seen, _ENOUGH) for one in (1, 2))
    never = per_category[-1, group == 0].sum() > per_category[0, group == 0].sum()  # of few, no mixture holds
    sizes = np.bincount(group, minlength=3).tolist()
    about = {"validation categories": sizes, "chosen by": f"{_CHOOSES} of validation categories"}
    return replace(final, weights=(float(never), rarely, often), scales=scales, about=about)


def _weight(values: np.ndarray, default: float, least: int = 1) -> float:
    q = values.shape[1]
    if q < least:
        return default
    means = values.mean(axis=1)
    end, best = 0 if means[0] >= means[-1] else len(WEIGHTS) - 1, int(means.argmax())
    gain = values[best] - values[end]
    is_better = q > 1 and gain.mean() > 2 * gain.std() / np.sqrt(q - 1)
    return WEIGHTS[best if is_better else end]


def _scale(ranker: Ranker, products: ProductFeatures, queries: CategoryFeatures) -> tuple[float, float]:
    rows: Any = ranker.product_rows(products)
    scores = rows[rows.any(axis=1)] @ ranker.category_rows(queries).T
    return (float(scores.mean()), float(scores.std()) or 1.0) if scores.size else (0.0, 1.0)
