"""ModelsEvaluation: the numbers of an evaluation, computed once from its units, and the units themselves.

::

    EVALUATION/
      category_evaluation.json   what was evaluated and how, except for models, settings and seeds
      units/SETTING-MODEL-….npz  values per query and first products of every model and seed
      results.json               tables, groups, errors, examples; written last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.commerce.catalogue import Catalogue, CategoryText, Judged, Relevance
from diptych.commerce.category_to_image.errors import (
    KINSHIPS,
    choose_examples,
    confused_siblings,
    count_errors,
    kinship,
)
from diptych.commerce.category_to_image.features import MODALITIES, Modality
from diptych.commerce.category_to_image.measuring import CATEGORY_MEASURES, LEADERBOARD, PRODUCT_MEASURES
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_json
from diptych.core.table import Table
from diptych.evaluation.comparison import Difference, Spread
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap, interval, resampled_sums
from diptych.metrics.ground_truth import Direction
from diptych.metrics.paired import correction_text, paired

RESULTS = "results.json"
_RECREATE = "diptych categories evaluate DATA --out EVALUATION"
_SIBLINGS, _EXAMPLES = 20, 6  # how many are kept

TRAINED: tuple[str, ...] = tuple(
    "clip-" + "".join(one[0] for one in chosen)
    for size in range(1, len(MODALITIES) + 1)
    for chosen in combinations(MODALITIES, size)
)
"""``clip-i`` … ``clip-ita``: every subset of modalities, fewest first."""

_LABELS = {"sentence": "sentence encoder", "mixed": "mixed"}  # of others their name in capitals


def modalities_of(model: str) -> tuple[Modality, ...] | None:
    """Return what a trained model represents a product by; None for a name of none."""
    letters = model.removeprefix("clip-")
    return tuple(one for one in MODALITIES if one[0] in letters) if model in TRAINED else None


@dataclass(frozen=True)
class EvaluationProtocol(Artifact, kind="category_evaluation", version=2, recreate=_RECREATE):
    """Everything that numbers depend on besides models, settings and seeds, by which an evaluation may grow."""

    train: str  # fingerprints of the catalogues; empty where there is none
    validation: str
    test: str
    encoders: str  # fingerprint of what made the features
    relevance: Relevance
    query: CategoryText  # a category's text
    published: bool  # trained as in the thesis
    options: dict[str, Any]  # of training; modalities, setting and seed are each unit's own
    judged_seed: int  # of the draws that judge the test products
    given: str = ""  # the model that was trained before; nothing is fitted then
    pictures: str = ""  # which products stand without one; empty where all have one

    @property
    def key(self) -> str:
        return fingerprint(asdict(self))

    def line(self, seeds: Sequence[int] = ()) -> str:
        way = "as the chapter says (compat published)" if self.published else "by our defaults"
        trained = f"trained {way}, seeds {', '.join(map(str, seeds))}"
        query = self.query.replace("unique", "name, or its path where names repeat")
        return (
            f"relevance by {self.relevance}; a category's text is its {query}; "
            f"{f'{self.given}, nothing fitted' if self.given else trained}; judged with seed {self.judged_seed}; "
            "P@k over k, mAP@k over min(k, relevant products), mAP-hits@k over those found (compat), R-precision "
            "over relevant products; ties expected"
        )


@dataclass(frozen=True, eq=False)
class Cell(Artifact, kind="category_cell", version=2, recreate=_RECREATE):
    """One model in one setting, of one seed."""

    result: Result  # ``t2i``: categories as queries, ``i2t``: products
    nodes: np.ndarray  # (q,) int64 query categories
    first: np.ndarray  # (q,) int64 row of each one's first product, -1 for none
    score: np.ndarray  # (q,) float64 its score
    found: np.ndarray  # (q,) int64 its own category, -1 for none
    right: np.ndarray  # (q,) booleans: it is relevant
    guess: np.ndarray  # (n,) int64 category that each judged product found first, -1 for none
    seen: np.ndarray | None  # (q,) booleans: training saw the category; None where that is not known
    about: dict[str, Any]  # the model, seconds


Values = Mapping[str, Mapping[str, Sequence[np.ndarray]]]  # (q,) per model, measure and seed


def compare_models(values: Values, baseline: str, how: Bootstrap) -> list[Difference]:
    """Compare every model with a baseline by the thesis's measures, category by category.

    Categories are swapped and resampled, their values averaged over seeds first: a p-value says whether the
    difference would be there with other categories, not with other seeds.
    """
    pairs = [(model, name) for model in values if model != baseline for name in CATEGORY_MEASURES]
    gaps = [
        [np.mean(values[one][name], axis=0) - np.mean(values[baseline][name], axis=0)] for one, name in pairs
    ]
    tests = paired(gaps, [np.arange(len(gap)) for (gap,) in gaps], how=how, correction="holm")
    found = []
    for (model, name), test in zip(pairs, tests, strict=True):
        numbers = (test.difference, test.low, test.high, test.p, test.p_t, test.corrected)
        better = None if test.difference == 0 else test.difference > 0
        found.append(Difference(model, "t2i", name, *numbers, better=better))
    return found


def _comparison_line(baseline: str, tested: int, how: Bootstrap) -> str:
    resamples = f"from {how.samples:,} resamples of categories, seed {how.seed}"
    intervals = f"{100 * how.confidence:g} % intervals {resamples}; " if how.samples else ""
    swaps = "p of 10,000 random swaps per category, two-sided"
    return f"differences to {baseline}; {intervals}{swaps}; {correction_text('holm', tested)}"


def baseline_of(models: Sequence[str]) -> str:
    """Return the model that others are compared with: CLIP-ITA as in the thesis, or the last that there is."""
    return "clip-ita" if "clip-ita" in models else models[-1]


def setting_numbers(
    cells: Mapping[str, list[Cell]], judged: Judged, test: Catalogue, how: Bootstrap
) -> dict[str, Any]:
    """Return everything that is printed of one setting, JSON-able."""
    base, tree, relevant = baseline_of([*cells]), test.tree, judged.truth.t2i.counts
    names = dict.fromkeys((*CATEGORY_MEASURES, *LEADERBOARD))
    values = {
        model: {name: [one.result.per_query["t2i"][name] for one in of] for name in names}
        for model, of in cells.items()
    }
    differences = compare_models(values, base, how)
    line = f"{len(judged.nodes):,} categories ask {len(judged.products):,} products, "
    line += f"{int(relevant.min()):,}–{int(relevant.max()):,} relevant ones each"
    if judged.without_category:
        line += f"; {judged.without_category:,} products without a category are no candidates"
    depth, seen = tree.depth[judged.nodes], {}
    for model, of in cells.items():
        seen[model] = [one.seen for one in of if one.seen is not None]
    known = [mask for masks in seen.values() for mask in masks]
    means = {model: np.mean(values[model]["mAP@10"], axis=0) for model in cells}
    return {
        "line": line,
        "categories": len(judged.nodes),
        "products": len(judged.products),
        "table": [_row(model, of, values[model], how) for model, of in cells.items()],
        "baseline": base if differences else None,
        "comparison": _comparison_line(base, len(differences), how) if differences else None,
        "differences": [{**asdict(one), "verdict": one.verdict} for one in differences],
        "levels": {model: _groups(values[model], [depth] * len(of)) for model, of in cells.items()},
        "seen": {model: _groups(values[model], masks) for model, masks in seen.items()},
        "errors": {model: _errors(test, of) for model, of in cells.items()},
        "siblings": {model: _siblings(test, judged, of) for model, of in cells.items()},
        "examples": {model: _examples(test, of[0], relevant) for model, of in cells.items()},
        "unseen": [  # the query categories that no training of any seed saw
            {
                "category": list(tree.paths[int(judged.nodes[row])]),
                "relevant": int(relevant[row]),
                "mAP@10": {model: float(mean[row]) for model, mean in means.items()},
            }
            for row in (np.flatnonzero(~np.any(known, axis=0)).tolist() if known else ())
        ],
    }


def _row(
    model: str, cells: Sequence[Cell], values: Mapping[str, Sequence[np.ndarray]], how: Bootstrap
) -> dict[str, Any]:
    table = np.stack([np.mean(values[name], axis=0) for name in CATEGORY_MEASURES], axis=1)
    ends = dict(zip(CATEGORY_MEASURES, (resampled_sums(table, how) / len(table)).T, strict=True))

    def numbers(name: str, way: Direction, with_interval: bool = False) -> dict[str, Any]:
        scores = [one.result.score(name, way) for one in cells]
        spread = Spread(tuple(one.value for one in scores))
        low, high = (interval(ends[name], how.confidence) if with_interval else None) or (None, None)
        entry = {"mean": spread.mean, "sd": spread.sd, "values": list(spread.values)}
        return entry | {"chance": scores[0].chance, "low": low, "high": high}

    return {
        "model": model,
        "label": _LABELS.get(model, model.upper()),
        "trained": cells[0].about["trained"],
        "values": {name: numbers(name, "t2i", True) for name in CATEGORY_MEASURES},
        "products": {name: numbers(name, "i2t") for name in PRODUCT_MEASURES},
        "leaderboard": {name: numbers(name, "t2i") for name in LEADERBOARD},
    }


def _groups(values: Mapping[str, Sequence[np.ndarray]], groups: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    found = []
    for group in np.unique(groups).tolist() if groups else ():
        masks = [one == group for one in groups]
        measures = {}
        for name in CATEGORY_MEASURES:
            parts = [of[mask] for of, mask in zip(values[name], masks, strict=True) if mask.any()]
            spread = Spread(tuple(float(part.mean()) for part in parts))
            measures[name] = {"mean": spread.mean, "sd": spread.sd}
        sizes = [int(mask.sum()) for mask in masks]
        found.append({"group": int(group), "categories": float(np.mean(sizes)), "values": measures})
    return found


def _errors(test: Catalogue, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return counts of first products of another category, summed over seeds."""
    nodes, found, right = (
        np.concatenate([getattr(one, name) for one in cells]) for name in ("nodes", "found", "right")
    )
    counts: dict[str, Any] = {"runs": len(cells), "seen": None, "unseen": None}
    counts["all"] = count_errors(test.tree, nodes, found, right)
    if known := [one.seen for one in cells if one.seen is not None]:
        for name, rows in {"seen": np.concatenate(known), "unseen": ~np.concatenate(known)}.items():
            counts[name] = count_errors(test.tree, nodes[rows], found[rows], right[rows])
    return counts


def _siblings(test: Catalogue, judged: Judged, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    truth, guess = np.tile(judged.labels, len(cells)), np.concatenate([one.guess for one in cells])
    pairs = confused_siblings(test.tree, truth, guess, _SIBLINGS)
    return [one | {side: list(test.tree.paths[one[side]]) for side in ("left", "right")} for one in pairs]


def _examples(test: Catalogue, cell: Cell, relevant: np.ndarray) -> list[dict[str, Any]]:
    """Return first products of the first seed: right ones, then wrong ones of every kind."""
    paths, first = test.tree.paths, (cell.nodes, cell.found, cell.right, cell.score, _EXAMPLES)
    kinds = kinship(test.tree, cell.nodes, np.maximum(cell.found, 0))
    return [
        {
            "category": list(paths[cell.nodes[row]]),
            "found": list(paths[cell.found[row]]),
            "kind": KINSHIPS[kinds[row]],
            "right": not wrong,
            "product": str(test.ids[cell.first[row]]),
            "row": int(cell.first[row]),
            "title": str(test.titles[cell.first[row]]),
            "score": float(cell.score[row]),
            "relevant": int(relevant[row]),
        }
        for wrong in (False, True)
        for row in choose_examples(test.tree, *first, wrong=wrong).tolist()
    ]


@dataclass(frozen=True, eq=False)
class ModelsEvaluation:
    """A finished evaluation of models of categories and products."""

    folder: Path
    protocol: EvaluationProtocol
    numbers: Mapping[str, Any]  # everything that is printed, as in ``results.json``

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open what :func:`~.evaluation.evaluate_models` has written."""
        folder = Path(folder)
        protocol, again = EvaluationProtocol.open(folder), "the command that began it resumes"
        if not (folder / RESULTS).is_file():
            raise StorageError(f"{folder} is not finished: it has no {RESULTS}", again)
        numbers = read_json(folder / RESULTS)
        if numbers.get("key") != protocol.key:
            raise StorageError(f"{folder / RESULTS} is of another evaluation", again)
        return cls(folder, protocol, numbers)

    @property
    def about(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.numbers["about"]
        return found

    @property
    def settings(self) -> tuple[str, ...]:
        return tuple(self.numbers["settings"])

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(row["model"] for row in next(iter(self.numbers["settings"].values()))["table"])

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.about["seeds"])

    @property
    def baseline(self) -> str:
        return baseline_of(self.models)

    def cells(self, setting: str, model: str) -> list[Cell]:
        """Return one unit per seed, or the one of a model that is not trained."""
        for what, name, known in (("setting", setting, self.settings), ("model", model, self.models)):
            if name not in known:
                raise UnknownNameError(what, name, known)
        keys = [key for key, unit in self.about["units"].items() if unit[:2] == [setting, model]]
        return [Cell.open(self.folder / "units" / f"{key}.npz") for key in keys]

    def value(self, setting: str, model: str, measure: str, direction: str = "t2i") -> Spread:
        """Return one number over seeds, a share in [0, 1]; ``i2t`` is a product as the query."""
        return Spread(tuple(one.result.value(measure, direction) for one in self.cells(setting, model)))

    def sections(self) -> dict[str, list[Table | Chart]]:
        from diptych.commerce.category_to_image.tables import evaluation_sections

        return evaluation_sections(self.numbers["settings"], self.baseline, self.models)

    def tables(self) -> list[Table]:
        return [one for part in self.sections().values() for one in part if isinstance(one, Table)]

    def charts(self) -> list[Chart]:
        return [one for part in self.sections().values() for one in part if isinstance(one, Chart)]

    def line(self) -> str:
        return str(self.numbers["line"])
