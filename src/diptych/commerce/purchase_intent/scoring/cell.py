"""One setting and step of a scorer: features, model, calibration and threshold; and what it answers, and why.

::

    models/SETTING/step-K/
      cell.json        base rate, calibration, threshold, features' parameters, what was measured
      arrays.npz       (b, columns) feature values of some training sessions, for effects; no identifiers
      model/           the classifier
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import Platt, fit_platt, log_odds
from diptych.commerce.purchase_intent.features.fitting import Feature, FittedFeatures
from diptych.commerce.purchase_intent.features.view import NOTHING, SessionsView
from diptych.commerce.purchase_intent.models import FittedModel
from diptych.core.artifact import Artifact
from diptych.core.errors import UnknownNameError
from diptych.core.extras import require
from diptych.core.files import safe_name


@dataclass(frozen=True)
class Reason:
    """What one feature does to the odds of a purchase in this session.

    Attributes:
        feature: its name.
        label: as people call it.
        value: in this session, as text.
        typical: its middle or most frequent value among sessions that the scorer was trained on, as text.
        effect: log-odds of this session less the mean of what they were with the feature's values of training
            sessions in place of its own.
        text: all of it in plain words.
    """

    feature: str
    label: str
    value: str
    typical: str
    effect: float
    text: str

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "feature": self.feature,
            "value": self.value,
            "typical": self.typical,
            "effect": self.effect,
            "text": self.text,
        }


@dataclass(frozen=True)
class Score:
    """The probability that a session ends in a purchase, as far as it is known.

    Attributes:
        p: calibrated probability; 1 of a session in which something was bought already.
        step: how many pages it rests on, -1 of a whole session.
        setting: anonymous, identified or all.
        base_rate: share of purchases among the sessions that the scorer of this setting and step learned from.
        threshold: from which probability on it is taken for a purchase, chosen for the best F1.
        reasons: features with the greatest effects, greatest first.
        notes: what was odd, or assumed, each a sentence.
        bought: whether something was bought already: nothing is left to predict.
    """

    p: float
    step: int
    setting: str
    base_rate: float
    threshold: float
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    bought: bool = False

    @property
    def lift(self) -> float:
        """How many times as likely as of any such session."""
        return self.p / self.base_rate

    @property
    def is_likely(self) -> bool:
        """Whether it is taken for a purchase."""
        return self.p >= self.threshold

    def line(self) -> str:
        """One line for people."""
        after = "of the whole session" if self.step < 0 else f"after {self.step} page{'s' * (self.step != 1)}"
        p = "< 0.001" if 0 < self.p < 0.0005 else f"= {self.p:.3f}"
        return (
            f"p {p} {after}, {self.setting}: {self.lift:.2g} × the base rate of {self.base_rate:.3f}, "
            f"{'above' if self.is_likely else 'below'} the threshold of {self.threshold:.3f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "p": self.p,
            "step": self.step,
            "setting": self.setting,
            "base_rate": self.base_rate,
            "lift": self.lift,
            "threshold": self.threshold,
            "likely": self.is_likely,
            "bought": self.bought,
            "reasons": [reason.to_dict() for reason in self.reasons],
            "notes": list(self.notes),
        }


_WEEK_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_AROUND = ("start_hour", "start_dow")
"""Numbers that go around: their middle means nothing, their most frequent value does."""

_MOST = 1000.0

_LONGEST = 60
"""Characters of a text that are shown."""


def value_in_words(feature: Feature, view: SessionsView, columns: np.ndarray) -> str:
    """A feature's value in a view of one session.

    Args:
        columns: (columns,) the feature's own in the matrix.
    """
    raw = _raw(feature, view, columns[None])
    if raw is None:
        return ", ".join(f"{value:.4g}" for value in columns)
    return _in_words(feature, raw.tolist()[0])


def typical_value(feature: Feature, view: SessionsView, columns: np.ndarray) -> str:
    """The middle of a number, the most frequent of anything else, among the sessions of a view.

    Args:
        columns: (n, columns) the feature's own in the matrix.
    """
    raw = _raw(feature, view, columns)
    if raw is None:
        return "–"
    if raw.dtype == object or (len(feature.columns) == 1 and feature.columns[0] in _AROUND):
        counts = Counter(raw.tolist())
        return _in_words(feature, min(counts, key=lambda value: (-counts[value], value)))
    there = raw[~np.isnan(raw)]
    # None is typical where most have none.
    return _in_words(feature, float(np.median(there)) if 2 * len(there) > len(raw) else math.nan)


def reason_of(feature: Feature, value: str, typical: str, effect: float) -> Reason:
    """The reason, with its sentence: ``number of orders: 3, typically 0; raises the odds 2.4×``."""
    factor = math.exp(min(abs(effect), 2 * math.log(_MOST)))
    times = f"more than {_MOST:.0f}×" if factor > _MOST else f"{factor:.3g}×"
    usual = "as is typical" if value == typical else f"typically {typical}"
    does = "raises the odds" if effect > 0 else "lowers the odds"
    return Reason(
        feature=feature.name,
        label=feature.label,
        value=value,
        typical=typical,
        effect=effect,
        text=f"{feature.label}: {value}, {usual}; {does} {times}",
    )


def _raw(feature: Feature, view: SessionsView, columns: np.ndarray) -> np.ndarray | None:
    """(n,) what people would call the value: its one column of the matrix, or that of the view it is made of."""
    if columns.shape[1] == 1:
        return columns[:, 0]
    return view.columns[feature.columns[0]] if feature.columns else None


def _in_words(feature: Feature, value: float | str) -> str:
    if isinstance(value, str):
        return "none" if value == NOTHING else value[:_LONGEST] + "…" * (len(value) > _LONGEST)
    if math.isnan(value):
        return "none"
    if feature.columns == ("start_dow",):
        return _WEEK_DAYS[int(value)]
    if feature.columns == ("start_hour",):
        return f"{int(value)} h"
    return f"{value:.4g}"


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
    """A session, and the same session with one feature after the other of somebody else."""

    rows: np.ndarray  # (1 + f·b, columns) the session, then for each of f features b rows
    features: tuple[str, ...]  # the f whose values differ anywhere in the background
    constant: tuple[str, ...]  # all others: they have no effect

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
    """What scores the sessions of one setting at one step."""

    setting: str  # anonymous, identified or all
    step: int  # pages that are open, -1 for whole sessions
    features: FittedFeatures  # fitted on the first part
    model: FittedModel  # fitted on the first part
    calibration: Calibration  # fitted on the second part
    threshold: float  # probability with the best F1 on the second part
    base_rate: float  # share of purchases in both
    background: np.ndarray  # (b, columns) feature values of some sessions of the first part
    typical: dict[str, str]  # feature → its typical value in words
    about: dict[str, Any]  # sessions, purchases, notes, and what was measured on the third part

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
