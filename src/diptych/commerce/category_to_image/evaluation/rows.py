"""One model in one setting as a table prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.evaluation.comparison import Difference, Spread
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval
from diptych.metrics.paired import correction_named, correction_text, paired


@dataclass(frozen=True)
class Value:
    """A measure of one model, a share in [0, 1].

    Attributes:
        spread: per seed of training; one value for a model that is not trained.
        chance: what a random order gets.
        low, high: ends of the interval over queries, of the mean over seeds; None without one.
    """

    spread: Spread
    chance: float
    low: float | None = None
    high: float | None = None

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return self.spread.mean


@dataclass(frozen=True)
class ModelRow:
    """A row of a setting's table.

    Attributes:
        model: its name.
        label: as printed.
        trained: whether it was trained here.
        values: per measure, of categories that ask for products.
        products: per measure, of products that ask for their category; ``R@1`` is the share put in the right place.
    """

    model: str
    label: str
    trained: bool
    values: Mapping[str, Value]
    products: Mapping[str, Value]


def intervals_of(values: Mapping[str, np.ndarray], how: Bootstrap) -> dict[str, tuple[float, float] | None]:
    """Percentile intervals of means over queries, the same draws for all measures.

    Args:
        values: per measure, (q,) values, NaN for queries that were not asked.
    """
    if not how.samples or not values:
        return dict.fromkeys(values)
    table = np.stack(list(values.values()), axis=1)
    table = table[~np.isnan(table).any(axis=1)]
    q = len(table)
    means = [weights @ table / weights.sum(axis=1, keepdims=True) for weights in drawn_clusters(how, 0, q, q)]
    drawn = np.concatenate(means)
    return {name: interval(drawn[:, place], how.confidence) for place, name in enumerate(values)}


@dataclass(frozen=True)
class GroupValue:
    """A measure over a group of categories.

    Attributes:
        group: depth in the tree, from 1; or 1 for seen and 0 for unseen.
        categories: how many asked, the mean over seeds where the group depends on it.
        spread: the mean of the group, per seed.
    """

    group: int
    categories: float
    spread: Spread


def group_means(values: np.ndarray, group: np.ndarray) -> dict[int, tuple[int, float]]:
    """Per group its size and mean; (q,) values and (q,) whole numbers."""
    kinds, place = np.unique(np.asarray(group, dtype=np.int64), return_inverse=True)
    counts = np.bincount(place, minlength=len(kinds))
    sums = np.bincount(place, weights=values, minlength=len(kinds))
    return {
        int(kind): (int(count), float(total / count))
        for kind, count, total in zip(kinds, counts, sums, strict=True)
    }


def by_level(values: np.ndarray, depth: np.ndarray) -> dict[int, tuple[int, float]]:
    """Per depth of the asking category, how many and their mean."""
    return group_means(values, depth)


def by_seen(values: np.ndarray, seen: np.ndarray) -> dict[int, tuple[int, float]]:
    """Under 1 the categories that training saw, under 0 the others; a group without categories is not there."""
    return group_means(values, seen)


def over_seeds(each: list[Mapping[int, tuple[int, float]]]) -> list[GroupValue]:
    """Groups of several seeds together; a seed without a category of a group does not count in it."""
    groups = sorted({group for one in each for group in one})
    return [
        GroupValue(
            group,
            float(np.mean([one.get(group, (0, 0.0))[0] for one in each])),
            Spread(tuple(one[group][1] for one in each if group in one)),
        )
        for group in groups
    ]


def compare_models(
    values: Mapping[str, Mapping[str, Sequence[np.ndarray]]],
    baseline: str,
    measures: Sequence[str],
    *,
    correction: str = "holm",
    flips: int = 10_000,
    bootstrap: Bootstrap | None = None,
) -> list[Difference]:
    """Every model against a baseline, measure by measure, category by category.

    What is swapped and resampled are the categories that ask; values of several seeds are averaged per category
    first, so a p-value says whether the difference would be there with other categories, not with other seeds.

    Args:
        values: per model and measure, one (q,) array per seed, of the same categories in the same order.
    """
    if baseline not in values:
        raise UnknownNameError("baseline", baseline, values)
    if len(values) < 2:
        raise UsageError(f"{len(values)} model: at least two are needed", "evaluate another model beside it")
    how = bootstrap or Bootstrap()
    mean = {
        (model, name): np.mean(list(of[name]), axis=0) for model, of in values.items() for name in measures
    }
    sizes = {model: len(mean[model, measures[0]]) for model in values}
    if len(set(sizes.values())) > 1:
        raise MismatchError(
            f"numbers of categories differ: {', '.join(f'{name} {n}' for name, n in sizes.items())}",
            "measure all models on the same judged products",
        )
    pairs = [(model, name) for model in values if model != baseline for name in measures]
    gaps = [mean[pair] - mean[baseline, pair[1]] for pair in pairs]
    categories = np.arange(sizes[baseline])
    tests = paired(
        [[gap] for gap in gaps], [categories] * len(gaps), how=how, flips=flips, correction=correction
    )
    return [
        Difference(
            run=model,
            direction="t2i",
            measure=name,
            difference=test.difference,
            low=test.low,
            high=test.high,
            p_randomisation=test.p,
            p_t=test.p_t,
            p=test.corrected,
            better=None if test.difference == 0 else test.difference > 0,
        )
        for (model, name), test in zip(pairs, tests, strict=True)
    ]


def comparison_line(
    baseline: str,
    tested: int,
    *,
    correction: str = "holm",
    flips: int = 10_000,
    bootstrap: Bootstrap | None = None,
) -> str:
    """What :func:`compare_models` did, in one line."""
    how = bootstrap or Bootstrap()
    test = f"p of {flips:,} random swaps per category, two-sided"
    said = correction_text(correction_named(correction), tested)
    ends = (
        f"{100 * how.confidence:g} % intervals from {how.samples:,} resamples of categories, seed {how.seed}"
    )
    return "; ".join(
        text for text in (f"differences to {baseline}", ends if how.samples else "", test, said) if text
    )
