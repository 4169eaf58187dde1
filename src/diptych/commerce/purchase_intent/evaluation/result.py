"""Evaluation: a folder with every prediction, the protocol that made them, and the numbers.

::

    EVALUATION/
      intent_evaluation.json  what was evaluated and how
      units/…                 the predictions of every model and fold
      results.json            the numbers; written last
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart
from diptych.core.context import RESUME
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.table import Table

RESULTS = "results.json"
PREDICTION = np.dtype(
    [(name, "f8") for name in ("score", "p", "threshold")] + [("row", "i8"), ("fold", "i8")]
)
"""A test session of a table: its score, calibrated probability and the threshold of that (NaN where there is none)."""

_EVALUATE = "diptych intent evaluate FEATURES --out EVALUATION"
_MOST_REMARKS = 9


class Unit(NamedTuple):
    """A model at a setting, feature set and step."""

    setting: str
    set: str
    step: int
    model: str

    def key(self, fold: int) -> str:
        """Return the name of a fold."""
        return f"{self.setting}-{self.set}-{step_text(self.step)}-{self.model}-{fold:02d}"


@dataclass(frozen=True, eq=False)
class FoldResult(Artifact, kind="intent_fold", version=4):
    """The unit that is kept: what a model predicts for the test part of one fold."""

    predictions: np.ndarray  # (m,) of PREDICTION
    importance: np.ndarray  # (features, 1 + repeats): by impurity, then average precision lost by permutation
    remarks: tuple[str, ...]  # what went not as it should


@dataclass(frozen=True)
class Protocol(Artifact, kind="intent_evaluation", version=3, recreate=_EVALUATE):
    """The grid of an evaluation, and how it is evaluated."""

    features: str  # fingerprint of the table
    options: dict[str, Any]  # of EvaluateOptions, with what a preset stands for
    scikit_learn: str  # its version
    about: dict[str, Any] = field(default_factory=dict, compare=False)  # the table, notes for readers

    @property
    def key(self) -> str:
        """A short name of all of it."""
        return fingerprint(self.features, self.options, self.scikit_learn)

    def line(self) -> str:
        """Return one line, to be printed with every number."""
        how = self.options
        folds = "one fold" if how["folds"] == 1 else f"{how['folds']} folds"
        weights = "classes weighed equally where a model can" if how["balanced"] else "classes not weighed"
        inner = (
            "threshold and calibration from inside the training part"
            if how["inner"]
            else "nothing calibrated"
        )
        line = f"split {how['split']}, {folds}; {weights}; {inner}"
        return f"{line}; seed {how['seed']}; scikit-learn {self.scikit_learn}"


@dataclass(frozen=True, eq=False)
class Evaluation(Artifact, kind="intent_results", version=3, recreate=_EVALUATE):
    """A finished evaluation: its folder, its protocol and its numbers."""

    protocol: Protocol
    samples: int  # resamples of persons, of which intervals are
    cells: list[
        dict[str, Any]
    ]  # one per setting, set, step and model; NAME_gain: the extended set's less the baseline's
    importance: list[dict[str, Any]]  # one per setting, set, step and feature
    left_out: list[dict[str, Any]]  # settings and steps that could not be evaluated, each with its reason
    folder: Path = field(init=False, default=Path(), compare=False)

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Open the folder that an evaluation has written."""
        if Path(path).name == RESULTS:
            return super().open(path, of)
        protocol, results = Protocol.open(path), Path(path) / RESULTS
        if not results.is_file():
            raise StorageError(f"{path} is not finished (no {RESULTS})", RESUME)
        return super().open(results, protocol.key)

    @property
    def notes(self) -> list[str]:
        """Notes for a reader of the numbers; last what went not as it should, counted over the grid."""
        counts = Counter(remark for cell in self.cells for remark in cell["remarks"])
        most, n = counts.most_common(_MOST_REMARKS), len(self.cells)
        return [*self.protocol.about["notes"], *(f"{one} of {n} cells: {remark}" for remark, one in most)]

    def cell(self, *place: str | int) -> dict[str, Any]:
        """Return the numbers of a setting, set, step and model."""
        known = {tuple(one[name] for name in Unit._fields): one for one in self.cells}
        if place not in known:
            raise UnknownNameError("cell (setting, set, step, model)", str(place), map(str, known))
        return known[place]

    def predictions(self, setting: str, feature_set: str, step: int, model: str) -> np.ndarray:
        """Return what a model predicts for every test session, (m,) of :data:`PREDICTION`."""
        job, unit = Job(self.folder, self.protocol, FoldResult), Unit(setting, feature_set, step, model)
        return joined(folds_of(job, unit, self.protocol.options["folds"]))

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
        samples = (
            f"95 % intervals of {self.samples:,} resamples of persons" if self.samples else "no intervals"
        )
        return "; ".join([self.protocol.about["features"]["line"], self.protocol.line(), samples])


def folds_of(job: Job[FoldResult], unit: Unit, folds: int) -> list[FoldResult]:
    """Return the finished folds of a model at a setting, set and step."""
    kept = [one for fold in range(folds) if (one := job.get(unit.key(fold))) is not None]
    if len(kept) < folds:
        raise StorageError(f"{job.folder} has {len(kept)} of {folds} folds of {unit.key(0)[:-3]}", RESUME)
    return kept


def joined(folds: Sequence[FoldResult]) -> np.ndarray:
    """Return all folds' predictions, in the order of sessions."""
    found = np.concatenate([one.predictions for one in folds])
    return found[np.argsort(found["row"], kind="stable")]
