"""Evaluation: a folder with every prediction, the protocol that made them, and the numbers.

::

    EVALUATION/
      intent_evaluation.json  what was evaluated and how
      units/…                 the scores of every fold
      results.npz             the numbers; written last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from diptych.commerce.purchase_intent.evaluation.shown import (
    evaluation_blocks,
    evaluation_tables,
    left_out_lines,
    step_text,
)
from diptych.commerce.purchase_intent.models import MODELS
from diptych.core.artifact import Artifact, encode
from diptych.core.chart import Chart
from diptych.core.context import RESUME
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.reading import opening
from diptych.core.table import Table

RESULTS = "results.npz"
_EVALUATE = "diptych intent evaluate FEATURES --out EVALUATION"


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

    @property
    def place(self) -> dict[str, Any]:
        """Its columns of a cell."""
        return {"setting": self.setting, "set": self.feature_set, "step": self.step}


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores of sessions of a table: of a fold's test part, or of all folds together."""

    rows: np.ndarray  # (m,) int64 numbers of the sessions, rising
    scores: np.ndarray  # (m,) float64 as the model gives them
    calibrated: np.ndarray  # (m,) float64 probabilities; NaN where there are none
    thresholds: np.ndarray  # (m,) of calibrated probabilities, chosen inside the training part; NaN likewise
    fold: np.ndarray  # (m,) int64
    constant: str = ""  # why the model is a constant; empty where it is not
    uncalibrated: str = ""  # why there are no probabilities; empty where there are, or none were to be fitted
    warnings: tuple[str, ...] = ()  # of the fit

    @property
    def remarks(self) -> list[str]:
        """What went not as it should."""
        reasons = {"the model is a constant": self.constant, "not calibrated": self.uncalibrated}
        return [*(f"{what}: {why}" for what, why in reasons.items() if why), *self.warnings]

    @classmethod
    def joined(cls, parts: Sequence[FoldScores]) -> FoldScores:
        """Return all folds, in the order of sessions."""
        order = np.argsort(np.concatenate([one.rows for one in parts]), kind="stable")
        names = ("rows", "scores", "calibrated", "thresholds", "fold")
        return cls(*[np.concatenate([getattr(one, name) for one in parts])[order] for name in names])  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class FoldResult(Artifact, kind="intent_fold", version=3):
    """The unit that is kept: what every model predicts for the test part of one fold."""

    scores: dict[str, FoldScores]
    importance: list[dict[str, Any]]  # per feature: name, impurity, and average precision lost by permutation


@dataclass(frozen=True)
class Protocol(Artifact, kind="intent_evaluation", version=2, recreate=_EVALUATE):
    """The grid of an evaluation, and how it is evaluated."""

    features: str  # fingerprint of the table
    models: tuple[str, ...]  # models, settings, sets, steps: what the grid is made of
    settings: tuple[str, ...]
    sets: tuple[str, ...]
    steps: tuple[int, ...]
    split: str
    folds: int
    balanced: bool  # whether classes weigh the same
    inner: bool  # whether thresholds and probabilities are fitted on an inner part of every training part
    importance: bool
    seed: int  # of splits, models and permutations
    scikit_learn: str  # its version
    about: dict[str, Any] = field(default_factory=dict, compare=False)  # the table, split, models, notes

    @property
    def key(self) -> str:
        """A short name of all of it."""
        return fingerprint({name: value for name, value in encode(self, {}).items() if name != "about"})

    @property
    def importance_model(self) -> str:
        """The model whose importances are computed: the first that has impurities, else the first; empty for none."""
        if not self.importance:
            return ""
        return next((name for name in self.models if MODELS.get(name).has_impurity), self.models[0])

    def line(self) -> str:
        """Return one line, to be printed with every number."""
        folds = "one fold" if self.folds == 1 else f"{self.folds} folds"
        weights = "classes weighed equally where a model can" if self.balanced else "classes not weighed"
        inner = (
            "threshold and calibration from inside the training part" if self.inner else "nothing calibrated"
        )
        how = f"split {self.split}, {folds}; {weights}; {inner}"
        return f"{how}; seed {self.seed}; scikit-learn {self.scikit_learn}"


@dataclass(frozen=True, eq=False)
class Evaluation(Artifact, kind="intent_results", version=2, recreate=_EVALUATE):
    """A finished evaluation: its folder, its protocol and its numbers."""

    protocol: Protocol
    intervals: dict[str, Any]  # samples, confidence and seed
    cells: list[dict[str, Any]]  # one per setting, set, step and model
    gains: list[dict[str, Any]]  # one per setting, step, model and measure: extended less baseline
    importance: list[dict[str, Any]]  # one per setting, set, step and feature
    left_out: list[dict[str, Any]]  # settings and steps that could not be evaluated, each with its reason
    remarks: list[str]  # what went not as it should, counted over the grid
    folder: Path = field(init=False, default=Path(), compare=False)

    @classmethod
    @opening("evaluate again")
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Open the folder that an evaluation has written."""
        if not Protocol.is_at(path):
            return super().open(path, of)
        key = Protocol.open(path).key
        if not (Path(path) / RESULTS).is_file():
            raise StorageError(f"{path} is not finished (no {RESULTS})", RESUME)
        return super().open(Path(path) / RESULTS, key)

    @property
    def about(self) -> Mapping[str, Any]:
        """The table, the split, models and notes."""
        return self.protocol.about

    @property
    def job(self) -> Job[FoldResult]:
        """The folds."""
        return Job(self.folder, self.protocol, FoldResult, noun="folds")

    @property
    def notes(self) -> list[str]:
        """Notes for a reader of the numbers."""
        return [*self.about["notes"], *self.remarks]

    def cell(self, setting: str, feature_set: str, step: int, model: str) -> dict[str, Any]:
        """Return the numbers of one."""
        known = {(one["setting"], one["set"], one["step"], one["model"]): one for one in self.cells}
        key = (setting, feature_set, step, model)
        if key not in known:
            raise UnknownNameError("cell (setting, set, step, model)", str(key), map(str, known))
        return known[key]

    def scores(self, setting: str, feature_set: str, step: int, model: str) -> FoldScores:
        """Return what a model predicts for every test session."""
        self.cell(setting, feature_set, step, model)
        folds = folds_of(self.job, Unit(setting, feature_set, step), self.protocol.folds)
        return FoldScores.joined([one.scores[model] for one in folds])

    def tables(self) -> list[Table]:
        """Return all that was measured; what belongs to a page is folded."""
        return evaluation_tables(self)

    def charts(self) -> list[Chart]:
        """Return measures by step, what features add and are worth, and reliability."""
        return [one for part in evaluation_blocks(self).values() for one in part if isinstance(one, Chart)]

    def lines(self) -> list[str]:
        """Return what could not be evaluated, what a reader should know, and the protocol."""
        return [*left_out_lines(self.left_out), *self.notes, self.line()]

    def line(self) -> str:
        """Return the protocol in one line, to be printed with every number."""
        how = self.intervals
        samples = f"{100 * how['confidence']:g} % intervals of {how['samples']:,} resamples of persons"
        intervals = samples if how["samples"] else "no intervals"
        return "; ".join([self.about["features"]["line"], self.protocol.line(), intervals])


def folds_of(job: Job[FoldResult], unit: Unit, folds: int) -> list[FoldResult]:
    """Return the finished folds of a setting, set and step."""
    found = [job.get(unit._replace(fold=fold).key) for fold in range(folds)]
    kept = [one for one in found if one is not None]
    if len(kept) < folds:
        raise StorageError(f"{job.folder} has {len(kept)} of {folds} folds of {unit.key}", RESUME)
    return kept
