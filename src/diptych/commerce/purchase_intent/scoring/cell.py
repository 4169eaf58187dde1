"""One setting and step of a scorer: features, model, calibration and threshold, fitted and measured apart.

::

    models/SETTING/step-K/
      cell.json        base rate, calibration, threshold, features' parameters, what was measured
      arrays.npz       (b, columns) feature values of some training sessions, for effects; no identifiers
      model/           the classifier
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.calibration import Platt, fit_platt, log_odds
from diptych.commerce.purchase_intent.features.fitting import FittedFeatures
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.commerce.purchase_intent.models.fitted import FittedModel
from diptych.commerce.purchase_intent.scoring.score import Reason, Score, reason_of, value_in_words
from diptych.core.artifact import Artifact
from diptych.core.errors import UnknownNameError
from diptych.core.extras import require
from diptych.core.files import safe_name

CALIBRATIONS = {
    "platt": "a sigmoid of two parameters",
    "isotonic": "steps that never fall; the sigmoid where there are too few sessions for them",
}
FEWEST_FOR_STEPS = 1000
"""Sessions of either class that steps are fitted on at least."""


@dataclass(frozen=True)
class Calibration:
    """What became of x, the log-odds or decisions of a model, on sessions that it was not fitted on.

    Attributes:
        platt: the sigmoid; it also is the scale on which features have effects, whatever gives the probability.
        steps: (x, probability) between which probabilities are interpolated; None: the sigmoid gives them.
    """

    platt: Platt
    steps: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """(n,) in (0, 1)."""
        return self.platt.probabilities(x) if self.steps is None else np.interp(x, *self.steps)

    def log_odds(self, x: np.ndarray) -> np.ndarray:
        """(n,) of the sigmoid."""
        return self.platt.slope * x + self.platt.intercept


def fit_calibration(method: str, x: np.ndarray, labels: np.ndarray) -> tuple[Calibration, str]:
    """Fit a calibration; gives it, and what has to be said about it.

    Args:
        x: (n,) log-odds or decisions of sessions that the model was not fitted on.
        labels: (n,) bool.
    """
    if method not in CALIBRATIONS:
        raise UnknownNameError("calibration", method, CALIBRATIONS)
    platt = fit_platt(x, labels)
    said = "" if platt.slope > 0 else "the model's order is none, or the wrong one, on the calibration part"
    if method == "platt":
        return Calibration(platt), said
    fewest = int(min(labels.sum(), (~labels).sum()))
    if fewest < FEWEST_FOR_STEPS:
        few = f"the sigmoid, for steps need {FEWEST_FOR_STEPS:,} sessions of either class and there are {fewest:,}"
        return Calibration(platt), "; ".join(one for one in (few, said) if one)
    require("sklearn", "commerce", "isotonic calibration")
    from sklearn.isotonic import IsotonicRegression

    nearest = 1 / (len(labels) + 2)  # nothing that was seen is certain
    fitted = IsotonicRegression(y_min=nearest, y_max=1 - nearest).fit(x, labels.astype(np.float64))
    knots = (tuple(map(float, fitted.X_thresholds_)), tuple(map(float, fitted.y_thresholds_)))
    return Calibration(platt, knots), said


# What each feature does to one session's log-odds, whatever the model; ours.
#
# The feature's columns are replaced by those of background sessions, one after the other, and everything else stays:
#
#     effect_j = f(x) − mean over b of f(x with column group j of background session b)
#
# with f the calibrated log-odds. Of a model that adds up its features this is its share of the sum: of a logistic
# regression, coefficient × (value − mean of the background), times the slope of the calibration. Of others it says
# what this feature alone changes; what two do only together counts for both of them. It is an account of the model,
# not of causes.


@dataclass(frozen=True, eq=False)
class Replaced:
    """A session, and the same session with one feature after the other of somebody else.

    Attributes:
        rows: (1 + f·b, columns) the session, then for each of f features b rows.
        features: the f whose values differ anywhere in the background.
        constant: all others: they have no effect.
    """

    rows: np.ndarray
    features: tuple[str, ...]
    constant: tuple[str, ...]

    def effects(self, log_odds: np.ndarray) -> dict[str, float]:
        """Feature → effect, exactly 0 of constant ones."""
        means = log_odds[1:].reshape(len(self.features), -1).mean(axis=1) if self.features else ()
        found = {name: float(log_odds[0] - mean) for name, mean in zip(self.features, means, strict=True)}
        return {**found, **dict.fromkeys(self.constant, 0.0)}


def replaced(row: np.ndarray, background: np.ndarray, owners: Sequence[str]) -> Replaced:
    """Make the rows, so that one call of a model is enough.

    Args:
        row: (columns,) of the session.
        background: (b, columns) of background sessions.
    """
    names = np.array(owners)
    rows, features, constant = [row[None]], [], []
    for name in dict.fromkeys(owners):
        columns = np.flatnonzero(names == name)
        others = background[:, columns]
        if np.array_equal(others, np.broadcast_to(row[columns], others.shape), equal_nan=True):
            constant.append(name)
            continue
        changed = np.tile(row, (len(background), 1))
        changed[:, columns] = others
        rows.append(changed)
        features.append(name)
    return Replaced(np.concatenate(rows), tuple(features), tuple(constant))


def cell_folder(root: Path, setting: str, step: int) -> Path:
    """Return where a scorer keeps one cell."""
    return root / "models" / safe_name(setting) / ("whole" if step < 0 else f"step-{step}")


@dataclass(frozen=True, eq=False)
class Cell(Artifact, kind="cell", recreate="diptych intent train FEATURES --out SCORER", files=["model"]):
    """What scores the sessions of one setting at one step.

    Attributes:
        setting: anonymous, identified or all.
        step: pages that are open, -1 for whole sessions.
        features: fitted on the first part.
        model: fitted on the first part.
        calibration: fitted on the second part.
        threshold: probability with the best F1 on the second part.
        base_rate: share of purchases in both.
        background: (b, columns) feature values of some sessions of the first part.
        typical: feature → its typical value in words.
        about: sessions, purchases, notes, and what was measured on the third part.
    """

    setting: str
    step: int
    features: FittedFeatures
    model: FittedModel
    calibration: Calibration
    threshold: float
    base_rate: float
    background: np.ndarray
    typical: dict[str, str]
    about: dict[str, Any]

    def write_files(self, folder: Path) -> None:
        """Write the classifier."""
        self.model.save(folder / "model")

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        """Read the classifier."""
        return {"model": FittedModel.open(folder / "model")}

    def probabilities(self, view: SessionsView) -> np.ndarray:
        """(n,) calibrated, of a view cut at the step."""
        return self.calibration.probabilities(self._x(self.features.matrix(view)))

    def score(self, view: SessionsView, reasons: int, notes: tuple[str, ...] = ()) -> Score:
        """The score of one session."""
        row = self.features.matrix(view)[0]
        if reasons:
            x, found = self._with_effects(row)
        else:
            x, found = self._x(row[None]), {}
        return Score(
            p=float(self.calibration.probabilities(x[:1])[0]),
            step=self.step,
            setting=self.setting,
            base_rate=self.base_rate,
            threshold=self.threshold,
            reasons=self._reasons(view, row, found, reasons),
            notes=notes,
        )

    def effects(self, row: np.ndarray) -> dict[str, float]:
        """Feature → effect in calibrated log-odds, of (columns,) feature values."""
        return self._with_effects(row)[1]

    def _with_effects(self, row: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        """What is calibrated, the session's first, and the effects: of one call of the model."""
        variants = replaced(row, self.background, self.features.owners)
        x = self._x(variants.rows)
        return x, variants.effects(self.calibration.log_odds(x))

    def _x(self, matrix: np.ndarray) -> np.ndarray:
        return log_odds(self.model.scores(matrix), self.model.model)

    def _reasons(
        self, view: SessionsView, row: np.ndarray, found: Mapping[str, float], most: int
    ) -> tuple[Reason, ...]:
        owners = np.array(self.features.owners)
        features = {feature.name: feature for feature in self.features.features}
        greatest = sorted((name for name in found if found[name]), key=lambda name: -abs(found[name]))[:most]
        return tuple(
            reason_of(
                features[name],
                value_in_words(features[name], view, row[owners == name]),
                self.typical[name],
                found[name],
            )
            for name in greatest
        )
