"""Evaluation: a folder with every prediction, the protocol that made them, and the numbers.

::

    EVALUATION/
      intent_evaluation.json  what was evaluated and how
      units/…                 the scores of every fold
      results.npz             the numbers; written last
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import (
    Persons,
    Ranking,
    always_buy_f1,
    average_precision,
    brier,
    f1,
    lift_at,
    log_loss,
    precision_at_recall,
    reliability,
    roc_auc,
)
from diptych.commerce.purchase_intent.evaluation.shown import evaluation_tables, left_out_lines, step_text
from diptych.commerce.purchase_intent.models import MODELS
from diptych.core.artifact import Artifact, encode
from diptych.core.context import RESUME
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.reading import opening
from diptych.core.table import Table

RESULTS = "results.npz"
RESAMPLED = ("f1", "best_f1", "average_precision")
"""Measures that have intervals."""


class Unit(NamedTuple):
    """One fold of one setting, feature set and step: its features are fitted once, for all models."""

    setting: str
    feature_set: str
    step: int
    fold: int = 0

    @property
    def key(self) -> str:
        """Of the job."""
        return f"{self.setting}-{self.feature_set}-{step_text(self.step)}-{self.fold:02d}"


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores of a fold's test part."""

    rows: np.ndarray  # (m,) int64 numbers of the sessions in the table, rising
    scores: np.ndarray  # (m,) float64 as the model gives them
    calibrated: np.ndarray  # (m,) float64 probabilities; NaN where there are none
    threshold: float  # of calibrated probabilities, chosen inside the training part; NaN likewise
    constant: str = ""  # why the model is a constant; empty where it is not
    uncalibrated: str = (
        ""  # why there are no probabilities; empty where there are, or they were not asked for
    )
    warnings: tuple[str, ...] = ()  # what the fit complained of


@dataclass(frozen=True, eq=False)
class FoldImportance:
    """What features are worth to the model that tells it, in one fold."""

    features: tuple[str, ...]  # f names
    dynamic: np.ndarray  # (f,) bool, whether a feature may change while a session runs
    impurity: (
        np.ndarray
    )  # (f,) shares of all decrease of impurity, adding up to 1; NaN where the model has none
    drops: np.ndarray  # (f, repeats) average precision lost when the feature's values are permuted


@dataclass(frozen=True, eq=False)
class FoldResult(Artifact, kind="intent_fold", version=2):
    """The unit that is kept: what every model predicted for the test part of one fold."""

    scores: dict[str, FoldScores]
    importance: FoldImportance | None = None


@dataclass(frozen=True)
class Protocol(
    Artifact, kind="intent_evaluation", recreate="diptych intent evaluate FEATURES --out EVALUATION"
):
    """What is evaluated, and how."""

    features: str  # fingerprint of the table
    models: tuple[str, ...]  # models, settings, sets, steps: what the grid is made of
    settings: tuple[str, ...]
    sets: tuple[str, ...]
    steps: tuple[int, ...]
    split: str  # name of the way of splitting
    folds: int  # how many
    balanced: bool  # whether classes weigh the same
    inner: bool  # whether thresholds and probabilities are fitted on an inner part of every training part
    importance: bool  # whether the importance of features is computed
    seed: int  # of splits, models and permutations
    scikit_learn: str  # its version
    scorer: str = ""  # of given scores, what gave them; nothing is fitted then
    about: dict[str, Any] = field(
        default_factory=dict, compare=False
    )  # the table, split, models, notes: for readers

    @property
    def key(self) -> str:
        """A short name of all of it."""
        return fingerprint({name: value for name, value in encode(self, {}).items() if name != "about"})

    @property
    def importance_model(self) -> str:
        """Whose importances are computed: the first that has impurities, else the first; empty for none."""
        if not self.importance:
            return ""
        return next((name for name in self.models if MODELS.get(name).has_impurity), self.models[0])

    def line(self) -> str:
        """Return one line, to be printed with every number."""
        if self.scorer:
            return f"scores of {self.scorer} as given, nothing fitted"
        folds = "one fold" if self.folds == 1 else f"{self.folds} folds"
        parts = [
            f"split {self.split}, {folds}",
            "classes weighed equally where a model can" if self.balanced else "classes not weighed",
            "threshold and calibration from inside the training part" if self.inner else "nothing calibrated",
            f"seed {self.seed}",
            f"scikit-learn {self.scikit_learn}",
        ]
        return "; ".join(parts)


@dataclass(frozen=True, eq=False)
class Pooled:
    """What a model said of every test session of a setting, set and step, by models that had not seen it."""

    model: str  # its name
    output: str  # whether scores are probabilities or decisions
    labels: np.ndarray  # (n,) bool
    rows: np.ndarray  # (n,) int64 numbers of the sessions in the table, rising
    scores: np.ndarray  # (n,) float64
    calibrated: np.ndarray  # (n,) float64, NaN where there is none
    thresholds: (
        np.ndarray
    )  # (n,) float64 of calibrated probabilities, of the session's fold; NaN where there is none
    fold: np.ndarray  # (n,) int64
    parts: Sequence[FoldScores]  # what every fold said of itself

    @property
    def predicted(self) -> np.ndarray:
        """(n,) bool: a purchase, where nothing is tuned: from 0.5 on, or 0 of a decision."""
        found: np.ndarray = self.scores >= (0.5 if self.output == "probability" else 0.0)
        return found

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking.of(self.scores)

    def values(self, measure: str, weights: np.ndarray | None = None) -> np.ndarray:
        """Return one of :data:`RESAMPLED`, with (…, n) weights."""
        if measure == "average_precision":
            return self._ranking.curve(self.labels, weights).average_precision
        if measure == "f1":
            return f1(self.predicted, self.labels, weights)
        known = ~np.isnan(self.thresholds)
        some = None if weights is None else weights[..., known]
        return f1((self.calibrated >= self.thresholds)[known], self.labels[known], some)

    def resampled(self, persons: Persons) -> dict[str, np.ndarray]:
        """Return (samples,) values on resamples of persons; none of a tuned F1 where nothing is tuned."""
        names = [name for name in RESAMPLED if name != "best_f1" or not np.isnan(self.thresholds).all()]
        return persons.resamples(self.rows, {name: partial(self.values, name) for name in names})


def pool(parts: Sequence[FoldScores], model: str, labels: np.ndarray, output: str) -> Pooled:
    """Join all folds, in the order of sessions."""
    order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
    fold = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])[order]
    rows, scores, calibrated = (
        np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("rows", "scores", "calibrated")
    )
    thresholds = np.array([part.threshold for part in parts])[fold]
    return Pooled(model, output, labels[rows], rows, scores, calibrated, thresholds, fold, parts)


def summarise(
    unit: Unit, pooled: Pooled, weighting: str, persons: Persons, samples: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Return one cell of the results.

    F1 and average precision are of all folds' test sessions together, which is less biased than their mean over
    folds (Forman and Scholz, Apples-to-apples in cross-validation studies, SIGKDD Explorations 2010); the folds'
    own values are beside them.
    """
    model, labels, scores, parts = MODELS.get(pooled.model), pooled.labels, pooled.scores, pooled.parts
    known = ~np.isnan(pooled.calibrated)
    base_rate, is_probability = float(labels.mean()), pooled.output == "probability"
    folds = [np.flatnonzero(pooled.fold == fold) for fold in range(len(parts))]
    remarks = Counter(
        one for part in parts for one in (part.constant, part.uncalibrated, *part.warnings) if one
    )
    found: dict[str, Any] = {
        "setting": unit.setting,
        "set": unit.feature_set,
        "step": unit.step,
        "model": model.name,
        "label": model.label,
        "sessions": len(labels),
        "purchases": int(labels.sum()),
        "base_rate": base_rate,
        "always_buy_f1": always_buy_f1(base_rate),
        "f1": pooled.values("f1"),
        "fold_f1": [f1(pooled.predicted[rows], labels[rows]) for rows in folds],
        "best_f1": pooled.values("best_f1") if "best_f1" in samples else None,
        "threshold": _mean([part.threshold for part in parts]),
        "average_precision": pooled.values("average_precision"),
        "fold_average_precision": [
            average_precision(scores[rows], labels[rows]) if len(rows) else None for rows in folds
        ],
        "roc_auc": roc_auc(scores, labels),
        "brier": brier(scores, labels) if is_probability else None,
        "brier_prior": base_rate * (1 - base_rate),
        "lift_10": lift_at(scores, labels, 0.1),
        "precision_at_recall_50": precision_at_recall(scores, labels, 0.5),
        "weighting": "none" if all(part.constant for part in parts) else weighting,
        "output": pooled.output,
        "reliability": reliability(scores, labels) if is_probability else None,
        **_calibrated(pooled.calibrated[known], labels[known]),
        "constant_folds": sum(bool(part.constant) for part in parts),
        "uncalibrated_folds": sum(bool(part.uncalibrated) for part in parts),
        "remarks": dict(sorted(remarks.items())),
    }
    for name in RESAMPLED:
        low, high = persons.interval(samples[name]) if name in samples else (None, None)
        found |= {f"{name}_low": low, f"{name}_high": high}
    return {name: _plain(value) for name, value in found.items()}


def _calibrated(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    names = ("brier_calibrated", "log_loss_calibrated", "log_loss_prior", "reliability_calibrated")
    if not len(labels):
        return dict.fromkeys(names)
    prior = log_loss(np.full(len(labels), labels.mean()), labels)
    measured = brier(probabilities, labels), log_loss(probabilities, labels), prior
    return dict(zip(names, (*measured, reliability(probabilities, labels)), strict=True))


def gains_of(
    cells: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[str, np.ndarray]], persons: Persons
) -> list[dict[str, Any]]:
    """Return what the extended set has more than the baseline, on the same sessions and resamples of persons."""
    found = []
    keys = [(cell["setting"], cell["step"], cell["model"]) for cell in cells]
    baseline = {key: one for one, key in enumerate(keys) if cells[one]["set"] == "baseline"}
    for key, cell, mine in zip(keys, cells, samples, strict=True):
        if cell["set"] != "extended" or key not in baseline:
            continue
        other, theirs = cells[baseline[key]], samples[baseline[key]]
        for measure in RESAMPLED:
            if cell[measure] is None or other[measure] is None:
                continue
            low, high = persons.interval(mine[measure] - theirs[measure])
            found.append(
                {
                    **dict(zip(("setting", "step", "model"), key, strict=True)),
                    "measure": measure,
                    "baseline": other[measure],
                    "extended": cell[measure],
                    "difference": cell[measure] - other[measure],
                    "low": low,
                    "high": high,
                }
            )
    return found


def importance_rows(unit: Unit, parts: Sequence[FoldImportance], model: str) -> list[dict[str, Any]]:
    """Return one row per feature, the most important by permutation first.

    Means over folds; the standard deviation is of all permutations of all folds.
    """
    rows = []
    for number, name in enumerate(parts[0].features if parts else ()):
        drops = np.concatenate([part.drops[number] for part in parts])
        usable = drops[~np.isnan(drops)]
        rows.append(
            {
                "setting": unit.setting,
                "set": unit.feature_set,
                "step": unit.step,
                "feature": name,
                "impurity": _mean([part.impurity[number] for part in parts]),
                "permutation": _mean(usable),
                "permutation_sd": float(usable.std(ddof=1)) if len(usable) > 1 else None,
                "dynamic": bool(parts[0].dynamic[number]),
                "model": model,
            }
        )
    return sorted(rows, key=lambda row: (-(row["permutation"] or 0.0), row["feature"]))


def _mean(values: Sequence[float] | np.ndarray) -> float | None:
    usable = np.asarray(values, dtype=np.float64)
    usable = usable[~np.isnan(usable)]
    return float(usable.mean()) if len(usable) else None


def _plain(value: Any) -> Any:
    """Return numbers of NumPy as Python's, None for what is not defined."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray | np.floating):
        value = float(value)
    return None if isinstance(value, float) and np.isnan(value) else value


@dataclass(frozen=True, eq=False)
class Results(Artifact, kind="intent_results"):
    """The numbers of an evaluation."""

    intervals: dict[str, Any]  # samples, confidence and seed
    cells: list[dict[str, Any]]  # one per setting, set, step and model, in the order asked for
    gains: list[dict[str, Any]]  # one per setting, step, model and measure: extended less baseline
    importance: list[dict[str, Any]]  # one per setting, set, step and feature
    left_out: list[dict[str, Any]]  # settings and steps that could not be evaluated, each with its reason
    notes: list[str]  # what went not as it should, counted over the grid
    labels: np.ndarray  # labels, persons: (n,) of all sessions of the table
    persons: np.ndarray


def _of_results(name: str) -> Any:
    return property(lambda found: getattr(found.results, name), doc=f"The ``{name}`` of the results.")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A finished evaluation: its folder, its protocol and its numbers, named as in :class:`Results`."""

    folder: Path
    protocol: Protocol
    results: Results

    @classmethod
    @opening("evaluate again")
    def open(cls, folder: Path | str) -> Evaluation:
        """Open what an evaluation has written."""
        folder = Path(folder)
        protocol = Protocol.open(folder)
        if not (folder / RESULTS).is_file():
            raise StorageError(f"{folder} is not finished (no {RESULTS})", RESUME)
        return cls(folder, protocol, Results.open(folder / RESULTS, of=protocol.key))

    @property
    def about(self) -> Mapping[str, Any]:
        """The table, the split, models and notes."""
        return self.protocol.about

    cells, gains, importance, left_out = map(_of_results, ("cells", "gains", "importance", "left_out"))

    @property
    def job(self) -> Job[FoldResult]:
        """The folds."""
        return Job(self.folder, self.protocol, FoldResult, noun="folds")

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers should know besides."""
        return [*self.about["notes"], *self.results.notes]

    def cell(self, setting: str, feature_set: str, step: int, model: str) -> dict[str, Any] | None:
        """Return the numbers of one; None where it was not evaluated."""
        wanted = (setting, feature_set, step, model)
        return next((cell for cell in self.cells if _name(cell) == wanted), None)

    def pooled(self, setting: str, feature_set: str, step: int, model: str) -> Pooled:
        """Return what a model said of every test session."""
        cell = self.cell(setting, feature_set, step, model)
        if cell is None:
            known = (", ".join(map(str, _name(cell))) for cell in self.cells)
            name = ", ".join(map(str, (setting, feature_set, step, model)))
            raise UnknownNameError("cell (setting, set, step, model)", name, known)
        folds = folds_of(self.job, Unit(setting, feature_set, step), self.protocol.folds)
        return pool([one.scores[model] for one in folds], model, self.results.labels, cell["output"])

    def tables(self) -> list[Table]:
        """Return all that was measured; what belongs to a page alone is folded."""
        return evaluation_tables(self)

    def lines(self) -> list[str]:
        """Return what could not be evaluated, what a reader should know, and the protocol."""
        return [*left_out_lines(self.left_out), *self.notes, self.line()]

    def line(self) -> str:
        """Return the protocol in one line, to be printed with every number."""
        how = self.results.intervals
        samples = f"{100 * how['confidence']:g} % intervals of {how['samples']:,} resamples of persons"
        intervals = samples if how["samples"] else "no intervals"
        return "; ".join([self.about["features"]["line"], self.protocol.line(), intervals])


def _name(cell: Mapping[str, Any]) -> tuple[str, str, int, str]:
    return cell["setting"], cell["set"], cell["step"], cell["model"]


def folds_of(job: Job[FoldResult], unit: Unit, folds: int) -> list[FoldResult]:
    """Return the finished folds of a setting, set and step."""
    found = [job.get(unit._replace(fold=fold).key) for fold in range(folds)]
    kept = [one for one in found if one is not None]
    if len(kept) < folds:
        raise StorageError(f"{job.folder} has {len(kept)} of {folds} folds of {unit.key}", RESUME)
    return kept
