"""What each feature does to one session's log-odds, whatever the model; ours.

The feature's columns are replaced by those of background sessions, one after the other, and everything else stays:

    effect_j = f(x) − mean over b of f(x with column group j of background session b)

with f the calibrated log-odds. Of a model that adds up its features this is its share of the sum: of a logistic
regression, coefficient × (value − mean of the background), times the slope of the calibration. Of others it says
what this feature alone changes; what two do only together counts for both of them. It is an account of the model,
not of causes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Replaced", "replaced"]


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
        """Feature → effect, exactly 0 of constant ones.

        Args:
            log_odds: (1 + f·b,) of ``rows``.
        """
        means = log_odds[1:].reshape(len(self.features), -1).mean(axis=1) if self.features else ()
        found = {name: float(log_odds[0] - mean) for name, mean in zip(self.features, means, strict=True)}
        return {**found, **dict.fromkeys(self.constant, 0.0)}


def replaced(row: np.ndarray, background: np.ndarray, owners: Sequence[str]) -> Replaced:
    """Make the rows, so that one call of a model is enough.

    Args:
        row: (columns,) of the session.
        background: (b, columns) of background sessions.
        owners: the feature of each column.
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
