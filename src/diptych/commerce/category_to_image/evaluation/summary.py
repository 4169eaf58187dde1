"""The numbers of a finished evaluation: rows of tables, and one JSON file that tables, pages and studies read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.errors import KINSHIPS, choose_examples, kinship
from diptych.commerce.category_to_image.evaluation.grid import RESULTS
from diptych.commerce.category_to_image.evaluation.measure import CATEGORY_MEASURES
from diptych.core.context import track
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.core.files import write_json
from diptych.evaluation.comparison import Difference, Spread
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval
from diptych.metrics.paired import correction_named, correction_text, paired

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation.result import ModelsEvaluation


@dataclass(frozen=True)
class Value:
    """A measure of one model, a share in [0, 1].

    Attributes:
        mean: over seeds.
        sd: over seeds; None of one.
        values: per seed of training; one value for a model that is not trained.
        chance: what a random order gets.
        low, high: ends of the interval over queries, of the mean over seeds; None without one.
    """

    mean: float
    sd: float | None
    values: tuple[float, ...]
    chance: float
    low: float | None = None
    high: float | None = None


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
    """Per group its size and mean; (q,) values and (q,) whole numbers: depths, or 1 for seen and 0 for unseen."""
    kinds, place = np.unique(np.asarray(group, dtype=np.int64), return_inverse=True)
    counts = np.bincount(place, minlength=len(kinds))
    sums = np.bincount(place, weights=values, minlength=len(kinds))
    return {
        int(kind): (int(count), float(total / count))
        for kind, count, total in zip(kinds, counts, sums, strict=True)
    }


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


_SIBLINGS = 20
_EXAMPLES = 6


def write_results(found: ModelsEvaluation, test: Catalogue, bootstrap: Bootstrap | None = None) -> None:
    """Compute everything from the cells and write ``results.json``."""
    how = bootstrap or Bootstrap()
    settings = {
        name: _setting(found, name, test, how) for name in track(found.settings, "numbers", unit="settings")
    }
    said = {"key": found.protocol.key, "line": found.line(), "intervals": asdict(how), "settings": settings}
    write_json(found.folder / RESULTS, said)


def _setting(found: ModelsEvaluation, setting: str, test: Catalogue, how: Bootstrap) -> dict[str, Any]:
    models, judged = found.models, found.judged(setting)
    differences = found.compare(setting, bootstrap=how) if len(models) > 1 else []
    numbers: dict[str, Any] = {
        "line": found.setting_line(setting),
        "categories": len(judged.nodes),
        "products": len(judged.products),
        "table": [asdict(row) for row in found.table(setting, bootstrap=how)],
        "baseline": found.baseline if differences else None,
        "comparison": comparison_line(found.baseline, len(differences), bootstrap=how)
        if differences
        else None,
        "differences": [{**asdict(one), "verdict": one.verdict} for one in differences],
    }
    of_models: dict[str, Callable[[str], Any]] = {
        "levels": lambda model: _groups(partial(found.levels, setting, model)),
        "seen": lambda model: _groups(partial(found.seen, setting, model)),
        "errors": lambda model: _errors(found, setting, model),
        "siblings": lambda model: [
            asdict(one)
            | {name: found.tree.paths[getattr(one, name)] for name in ("left", "right")}
            | {"confused": one.confused}
            for one in found.siblings(setting, model, _SIBLINGS)
        ],
        "examples": lambda model: _examples(found, setting, model, test),
        "seconds": lambda model: [cell.about["seconds"] for cell in found.cells(setting, model)],
    }
    return numbers | {name: {model: of(model) for model in models} for name, of in of_models.items()}


def _groups(of_measure: Callable[[str], list[GroupValue]]) -> list[dict[str, Any]]:
    """One entry per group, with all measures."""
    entries: dict[int, dict[str, Any]] = {}
    for name in CATEGORY_MEASURES:
        for one in of_measure(name):
            new = {"group": one.group, "categories": one.categories, "values": {}}
            values = entries.setdefault(one.group, new)["values"]
            values[name] = {"mean": one.spread.mean, "sd": one.spread.sd}
    return [entries[group] for group in sorted(entries)]


def _errors(found: ModelsEvaluation, setting: str, model: str) -> dict[str, Any]:
    cells, parts = found.cells(setting, model), {"all": None, "seen": True, "unseen": False}
    known = all(cell.about.get("seen_known") for cell in cells)
    said: dict[str, Any] = {"runs": len(cells)}
    for name, seen in parts.items():
        counts = found.errors(setting, model, seen=seen) if known or seen is None else None
        said[name] = counts and {
            **asdict(counts),
            "wrong": counts.wrong,
            "same_tree_share": counts.same_tree_share,
        }
    return said


def _examples(found: ModelsEvaluation, setting: str, model: str, test: Catalogue) -> list[dict[str, Any]]:
    """Of the first seed: right ones, then wrong ones of every kind."""
    tree, judged, cell = found.tree, found.judged(setting), found.cells(setting, model)[0]
    category, right = found.first_categories(setting, cell)
    shown = []
    for wrong in (False, True):
        rows = choose_examples(tree, judged.nodes, category, right, cell.scores[:, 0], _EXAMPLES, wrong=wrong)
        kinds = kinship(tree, judged.nodes[rows], category[rows])
        for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True):
            product = int(judged.products[cell.first[row, 0]])
            shown.append(
                {
                    "category": list(tree.paths[int(judged.nodes[row])]),
                    "found": list(tree.paths[int(category[row])]),
                    "kind": KINSHIPS[kind],
                    "right": not wrong,
                    "product": str(test.ids[product]),
                    "row": product,
                    "title": str(test.titles[product]),
                    "score": float(cell.scores[row, 0]),
                    "relevant": int(np.asarray(judged.truth.t2i.counts)[row]),
                    "seen": bool(cell.seen[row]) if cell.about.get("seen_known") else None,
                }
            )
    return shown
