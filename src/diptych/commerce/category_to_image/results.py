"""ModelsEvaluation: the numbers of an evaluation, computed once from its units, and the units themselves.

::

    EVALUATION/
      category_evaluation.json   what was evaluated and how, except for models, settings and seeds
      units/SETTING-MODEL-….npz  values per query and first products of every model and seed
      results.json               tables, groups, errors, examples; written last
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart
from diptych.core.context import track
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_json
from diptych.core.table import Table
from diptych.evaluation.comparison import Difference, Spread
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap, interval, resampled_sums
from diptych.metrics.paired import correction_named, correction_text, paired

RESULTS = "results.json"
_RECREATE = "diptych categories evaluate DATA --out EVALUATION"
_SIBLINGS, _EXAMPLES = 20, 6  # how many are kept

TRAINED: tuple[str, ...] = tuple(
    "clip-" + "".join(one[0] for one in chosen)
    for size in range(1, len(MODALITIES) + 1)
    for chosen in combinations(MODALITIES, size)
)
"""``clip-i`` … ``clip-ita``: every subset of modalities, fewest first."""


def modalities_of(model: str) -> tuple[Modality, ...] | None:
    """Return what a trained model represents a product by; None for a name of none."""
    letters = model.removeprefix("clip-")
    return tuple(one for one in MODALITIES if one[0] in letters) if model in TRAINED else None


def printed_name(model: str) -> str:
    """Return ``CLIP-ITA``, ``BM25``, ``sentence encoder``, ``mixed``."""
    return {"sentence": "sentence encoder", "mixed": "mixed"}.get(model, model.upper())


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
        """Fingerprint of it all."""
        return fingerprint(asdict(self))

    def line(self, seeds: Sequence[int] = ()) -> str:
        """Return how numbers were made, for the line under every table."""
        way = "as the chapter says (compat published)" if self.published else "by our defaults"
        trained = f"trained {way}, seeds {', '.join(map(str, seeds))}"
        text = {"unique": "name, or its path where names repeat"}.get(self.query, self.query)
        parts = [f"relevance by {self.relevance}", f"a category's text is its {text}"]
        parts.append(f"{self.given}, nothing fitted" if self.given else trained)
        parts.append(f"judged with seed {self.judged_seed}")
        parts.append(
            "P@k over k, mAP@k over min(k, relevant products), mAP-hits@k over those found (compat), R-precision "
            "over relevant products"
        )
        return "; ".join([*parts, "ties expected"])


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

    @classmethod
    def of(cls, result: Result, **values: Any) -> Self:
        """Keep the values per query that are used; a category is resampled by itself."""
        products = {name: result.per_query["i2t"][name] for name in PRODUCT_MEASURES}
        per_query = {"t2i": dict(result.per_query["t2i"]), "i2t": products}
        alone = np.full(result.protocol.n_texts, -1)
        return cls(replace(result, per_query=per_query, ranks={}, text_image=alone), **values)


def compare_models(
    values: Mapping[str, Mapping[str, Sequence[np.ndarray]]], baseline: str, how: Bootstrap
) -> list[Difference]:
    """Compare every model with a baseline by the thesis's measures, category by category.

    Categories are swapped and resampled, their values averaged over seeds first: a p-value says whether the
    difference would be there with other categories, not with other seeds. ``values``: (q,) per model, measure, seed.
    """
    pairs = [(model, name) for model in values if model != baseline for name in CATEGORY_MEASURES]
    gaps = [
        [np.mean(values[one][name], axis=0) - np.mean(values[baseline][name], axis=0)] for one, name in pairs
    ]
    tests = paired(gaps, [np.arange(len(gap)) for (gap,) in gaps], how=how, correction="holm")
    return [
        Difference(
            *(model, "t2i", name, test.difference, test.low, test.high, test.p, test.p_t, test.corrected),
            better=None if test.difference == 0 else test.difference > 0,
        )
        for (model, name), test in zip(pairs, tests, strict=True)
    ]


def comparison_line(baseline: str, tested: int, how: Bootstrap) -> str:
    """Return how models were compared with the baseline, in one line."""
    resamples = f"from {how.samples:,} resamples of categories, seed {how.seed}"
    parts = [f"differences to {baseline}"]
    parts += [f"{100 * how.confidence:g} % intervals {resamples}"] if how.samples else []
    parts.append("p of 10,000 random swaps per category, two-sided")
    return "; ".join([*parts, correction_text(correction_named("holm"), tested)])


def intervals_of(values: Mapping[str, np.ndarray], how: Bootstrap) -> dict[str, tuple[float, float] | None]:
    """Return percentile intervals of means over (q,) queries, the same draws for all measures."""
    if not how.samples:
        return dict.fromkeys(values)
    table = np.stack(list(values.values()), axis=1)
    means = resampled_sums(table, how) / len(table)
    return {name: interval(means[:, place], how.confidence) for place, name in enumerate(values)}


def write_results(
    folder: Path,
    protocol: EvaluationProtocol,
    cells: Mapping[str, Mapping[str, list[Cell]]],
    judged: Mapping[str, Judged],
    test: Catalogue,
    about: Mapping[str, Any],
    how: Bootstrap,
) -> None:
    """Compute everything that is printed from the units, and write ``results.json``."""
    settings = {
        name: _setting(cells[name], judged[name], test, how)
        for name in track(cells, "numbers", unit="settings")
    }
    line = "; ".join([about["data"], about["encoders"], protocol.line(about["seeds"])])
    numbers = {"key": protocol.key, "line": line, "intervals": asdict(how), "about": dict(about)}
    write_json(folder / RESULTS, numbers | {"settings": settings})


def baseline_of(models: Sequence[str]) -> str:
    """Return the model that others are compared with: CLIP-ITA as in the thesis, or the last that there is."""
    return "clip-ita" if "clip-ita" in models else models[-1]


def _setting(
    cells: Mapping[str, list[Cell]], judged: Judged, test: Catalogue, how: Bootstrap
) -> dict[str, Any]:
    base, tree, counts = baseline_of([*cells]), test.tree, judged.truth.t2i.counts
    values = {
        model: {
            name: [one.result.per_query["t2i"][name] for one in of]
            for name in (*CATEGORY_MEASURES, *LEADERBOARD)
        }
        for model, of in cells.items()
    }
    differences = compare_models(values, base, how)
    line = (
        f"{len(judged.nodes):,} categories ask {len(judged.products):,} products, "
        f"{int(counts.min()):,}–{int(counts.max()):,} relevant ones each"
    )
    if judged.without_category:
        line += f"; {judged.without_category:,} products without a category are no candidates"
    found: dict[str, Any] = {
        "line": line,
        "categories": len(judged.nodes),
        "products": len(judged.products),
        "table": [_row(model, of, values[model], how) for model, of in cells.items()],
        "baseline": base if differences else None,
        "comparison": comparison_line(base, len(differences), how) if differences else None,
        "differences": [{**asdict(one), "verdict": one.verdict} for one in differences],
    }
    depth = [tree.depth[judged.nodes]]
    of_models: dict[str, Callable[[str, list[Cell]], Any]] = {
        "levels": lambda model, of: _groups(values[model], depth * len(of)),
        "seen": lambda model, of: _groups(values[model], [one.seen for one in of]),
        "errors": lambda _, of: _errors(tree, of),
        "siblings": lambda _, of: _siblings(tree, judged, of),
        "examples": lambda _, of: _examples(test, of[0], counts),
        "seconds": lambda _, of: [one.about["seconds"] for one in of],
    }
    for name, entry in of_models.items():
        found[name] = {model: entry(model, of) for model, of in cells.items()}
    return found | {"unseen": _unseen(tree, cells, values, counts)}


def _row(
    model: str, cells: Sequence[Cell], values: Mapping[str, list[np.ndarray]], how: Bootstrap
) -> dict[str, Any]:
    """Return a row of the table: shares in [0, 1], spread over seeds, intervals over categories."""
    ends = intervals_of({name: np.mean(values[name], axis=0) for name in CATEGORY_MEASURES}, how)

    def entry(way: str, name: str) -> dict[str, Any]:
        scores = [one.result.score(name, way) for one in cells]
        spread = Spread(tuple(one.value for one in scores))
        low, high = (ends.get(name) if way == "t2i" else None) or (None, None)
        chance = {"chance": scores[0].chance, "low": low, "high": high}
        return {"mean": spread.mean, "sd": spread.sd, "values": list(spread.values), **chance}

    parts = {
        "values": ("t2i", CATEGORY_MEASURES),
        "products": ("i2t", PRODUCT_MEASURES),
        "leaderboard": ("t2i", LEADERBOARD),
    }
    entries = {part: {name: entry(way, name) for name in names} for part, (way, names) in parts.items()}
    head = {"model": model, "label": printed_name(model), "trained": cells[0].about["trained"]}
    return head | entries


def _groups(
    values: Mapping[str, list[np.ndarray]], groups: Sequence[np.ndarray | None]
) -> list[dict[str, Any]]:
    """Return the measures of groups of categories; a seed without a category of a group does not count in it."""
    known = [np.asarray(group, dtype=np.int64) for group in groups if group is not None]
    found = []
    for group in np.unique(np.concatenate(known)).tolist() if known else ():
        sizes = [int((one == group).sum()) for one in known]
        measures = {}
        for name in CATEGORY_MEASURES:
            each = zip(values[name], known, sizes, strict=True)
            spread = Spread(
                tuple(float(np.bincount(one == group, of, 2)[1] / size) for of, one, size in each if size)
            )
            measures[name] = {"mean": spread.mean, "sd": spread.sd}
        found.append({"group": group, "categories": float(np.mean(sizes)), "values": measures})
    return found


def _errors(tree: CategoryTree, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return counts of first products of another category, summed over seeds."""
    nodes, found, right = (
        np.concatenate([getattr(one, name) for one in cells]) for name in ("nodes", "found", "right")
    )
    seen = [one.seen for one in cells if one.seen is not None]
    groups: dict[str, Any] = {"all": np.full(len(nodes), True), "seen": None, "unseen": None}
    if seen:
        groups |= {"seen": np.concatenate(seen), "unseen": ~np.concatenate(seen)}
    counts = {
        name: None if rows is None else count_errors(tree, nodes[rows], found[rows], right[rows])
        for name, rows in groups.items()
    }
    return {"runs": len(cells), **counts}


def _siblings(tree: CategoryTree, judged: Judged, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the siblings that products are taken for, summed over seeds."""
    truth, guess = np.tile(judged.labels, len(cells)), np.concatenate([one.guess for one in cells])
    pairs = confused_siblings(tree, truth, guess, _SIBLINGS)
    return [one | {side: list(tree.paths[one[side]]) for side in ("left", "right")} for one in pairs]


def _unseen(
    tree: CategoryTree, cells: Mapping[str, list[Cell]], values: Mapping[str, Any], relevant: np.ndarray
) -> list[dict[str, Any]]:
    """Return the query categories that no training of any seed saw, with each model's mAP@10."""
    known = [one.seen for of in cells.values() for one in of if one.seen is not None]
    means = {model: np.mean(values[model]["mAP@10"], axis=0) for model in cells}
    nodes = next(iter(cells.values()))[0].nodes
    return [
        {
            "category": list(tree.paths[int(nodes[row])]),
            "relevant": int(relevant[row]),
            "mAP@10": {model: float(mean[row]) for model, mean in means.items()},
        }
        for row in (np.flatnonzero(~np.any(known, axis=0)).tolist() if known else ())
    ]


def _examples(test: Catalogue, cell: Cell, relevant: np.ndarray) -> list[dict[str, Any]]:
    """Return first products of the first seed: right ones, then wrong ones of every kind."""
    tree, shown = test.tree, []
    for wrong in (False, True):
        rows = choose_examples(tree, cell.nodes, cell.found, cell.right, cell.score, _EXAMPLES, wrong=wrong)
        for row in rows.tolist():
            query, found, product = (int(part[row]) for part in (cell.nodes, cell.found, cell.first))
            kind = kinship(tree, np.array([query]), np.array([found]))
            shown.append(
                {
                    "category": list(tree.paths[query]),
                    "found": list(tree.paths[found]),
                    "kind": KINSHIPS[int(kind[0])],
                    "right": not wrong,
                    "product": str(test.ids[product]),
                    "row": product,
                    "title": str(test.titles[product]),
                    "score": float(cell.score[row]),
                    "relevant": int(relevant[row]),
                    "seen": None if cell.seen is None else bool(cell.seen[row]),
                }
            )
    return shown


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
        """Data, encoders, notes and whatever else readers are told."""
        found: Mapping[str, Any] = self.numbers["about"]
        return found

    @property
    def settings(self) -> tuple[str, ...]:
        """In the order of thesis Table 7.1."""
        return tuple(self.numbers["settings"])

    @property
    def models(self) -> tuple[str, ...]:
        """Untrained ones first."""
        return tuple(row["model"] for row in next(iter(self.numbers["settings"].values()))["table"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of trained models; others are measured once."""
        return tuple(self.about["seeds"])

    @property
    def baseline(self) -> str:
        """The model that others are compared with."""
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
        """Return tables and charts by what they answer."""
        from diptych.commerce.category_to_image.tables import evaluation_sections

        return evaluation_sections(self.numbers["settings"], self.baseline, self.models)

    def tables(self) -> list[Table]:
        """Return all tables."""
        return [one for part in self.sections().values() for one in part if isinstance(one, Table)]

    def charts(self) -> list[Chart]:
        """Return the charts of the baseline."""
        return [one for part in self.sections().values() for one in part if isinstance(one, Chart)]

    def line(self) -> str:
        """Return the protocol in one line, to be printed with every number."""
        return str(self.numbers["line"])
