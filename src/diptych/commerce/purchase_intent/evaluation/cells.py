"""What one model predicted for the test part of one fold: the unit that is kept, and that a kill cannot halve."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from diptych.core.arrays import read_arrays, write_arrays

CELLS = "cells"


def step_text(step: int) -> str:
    """How a step is written in names of files and in tables."""
    return "whole" if step < 0 else str(step)


class Unit(NamedTuple):
    """One fold of one setting, feature set and step: its features are fitted once, for all models."""

    setting: str
    feature_set: str
    step: int
    fold: int

    def folder(self, root: Path) -> Path:
        """Where its files are."""
        return root / CELLS / f"{self.setting}-{self.feature_set}-{step_text(self.step)}"

    def file(self, root: Path, model: str) -> Path:
        """The scores of a model."""
        return self.folder(root) / f"fold-{self.fold:02d}-{model}.npz"

    def importance_file(self, root: Path) -> Path:
        """The importance of features."""
        return self.folder(root) / f"importance-{self.fold:02d}.npz"


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores of a fold's test part.

    Attributes:
        rows: (m,) int64 numbers of the sessions in the table, rising.
        scores: (m,) float64 as the model gives them.
        calibrated: (m,) float64 probabilities; NaN where they could not be calibrated or nobody asked.
        threshold: of calibrated probabilities, chosen inside the training part; NaN likewise.
        weighting: how classes were weighed.
        output: whether scores are probabilities or decisions.
        constant: why the model is a constant; empty where it is not.
        uncalibrated: why there are no probabilities; empty where there are, or nobody asked.
        warnings: what the fit complained of.
    """

    rows: np.ndarray
    scores: np.ndarray
    calibrated: np.ndarray
    threshold: float
    weighting: str
    output: str
    constant: str = ""
    uncalibrated: str = ""
    warnings: tuple[str, ...] = ()

    def save(self, file: Path) -> None:
        """Write it, wholly or not at all."""
        write_arrays(
            file,
            rows=self.rows,
            scores=self.scores,
            calibrated=self.calibrated,
            threshold=np.array(self.threshold),
            weighting=np.array(self.weighting),
            output=np.array(self.output),
            constant=np.array(self.constant),
            uncalibrated=np.array(self.uncalibrated),
            warnings=np.array(self.warnings, dtype=np.str_),
        )

    @classmethod
    def open(cls, file: Path) -> FoldScores:
        """Read what :meth:`save` wrote."""
        texts = ("weighting", "output", "constant", "uncalibrated")
        names = ("rows", "scores", "calibrated", "threshold", "warnings", *texts)
        rows, scores, calibrated, threshold, warnings, *said = read_arrays(file, names)
        weighting, output, constant, uncalibrated = (str(text) for text in said)
        complaints = tuple(str(one) for one in warnings)
        return cls(
            rows, scores, calibrated, float(threshold), weighting, output, constant, uncalibrated, complaints
        )


@dataclass(frozen=True, eq=False)
class FoldImportance:
    """What features are worth to the model that tells it, in one fold.

    Attributes:
        features: f names.
        dynamic: (f,) bool, whether a feature may change while a session runs.
        impurity: (f,) shares of all decrease of impurity, adding up to 1; NaN where the model has none.
        drops: (f, repeats) average precision lost when the feature's values of test sessions are permuted.
    """

    features: tuple[str, ...]
    dynamic: np.ndarray
    impurity: np.ndarray
    drops: np.ndarray

    def save(self, file: Path) -> None:
        """Write it, wholly or not at all."""
        names = np.array(self.features, dtype=np.str_)
        write_arrays(file, features=names, dynamic=self.dynamic, impurity=self.impurity, drops=self.drops)

    @classmethod
    def open(cls, file: Path) -> FoldImportance:
        """Read what :meth:`save` wrote."""
        features, dynamic, impurity, drops = read_arrays(file, ("features", "dynamic", "impurity", "drops"))
        return cls(tuple(str(one) for one in features), dynamic, impurity, drops)
