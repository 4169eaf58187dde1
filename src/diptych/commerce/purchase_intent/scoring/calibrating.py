"""From a model's scores to probabilities: Platt's sigmoid, or steps where there is enough to see their height."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.calibration import Platt, fit_platt
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.extras import require

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

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`from_dict` is the way back."""
        return {
            "method": "platt" if self.steps is None else "isotonic",
            "platt": self.platt.to_dict(),
            "steps": None if self.steps is None else [list(one) for one in self.steps],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Calibration:
        """From what :meth:`to_dict` gave."""
        steps, platt = values["steps"], values["platt"]
        numbers = np.array(
            [platt["slope"], platt["intercept"], *(steps[0] + steps[1] if steps else ())], np.float64
        )
        if not np.isfinite(numbers).all() or (steps and not 0 < len(steps[0]) == len(steps[1])):
            raise StorageError(f"a calibration by {values['method']} is damaged", "train the scorer again")
        return cls(Platt(**platt), None if steps is None else (tuple(steps[0]), tuple(steps[1])))


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
