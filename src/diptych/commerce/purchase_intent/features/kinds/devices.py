"""The visitor's devices across sessions: how many, in what order, and how often one follows another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.categories import numbered
from diptych.commerce.purchase_intent.features.columns import EARLIER_DEVICES, LAST_DEVICES, NOTHING
from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.markov import ABSENT, MarkovRatio, fit_markov
from diptych.commerce.purchase_intent.features.plain import Plain, column_values
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.core.errors import UsageError

__all__ = ["DEVICES", "DEVICE_SEQUENCE_SCORE", "SWITCH_PROBABILITY", "FittedDeviceSequence"]

_SEQUENCE = (*reversed(EARLIER_DEVICES), "device")
"""Columns in the order of time."""


def _codes(view: SessionsView, names: tuple[str, ...]) -> np.ndarray:
    """(n, LAST_DEVICES) codes in ``names``, their number for another device."""
    n = len(names)
    place = np.array([*range(n), ABSENT, n])  # the last is for numbered's -1
    return np.stack(
        [place[numbered(view.columns[column], (*names, NOTHING))] for column in _SEQUENCE], axis=1
    )


@dataclass(frozen=True)
class FittedDeviceSequence:
    """Chains of device types.

    Attributes:
        chains: of buyers and of others.
    """

    chains: MarkovRatio

    @property
    def names(self) -> tuple[str, ...]:
        """One column."""
        return ("device-sequence-score",)

    def values(self, view: SessionsView) -> np.ndarray:
        """(n, 1); NaN where the devices are not known."""
        scores = self.chains.scores(_codes(view, self.chains.states))
        scores[np.isnan(view.columns["devices"])] = np.nan
        return scores[:, None]

    def to_dict(self) -> dict[str, Any]:
        """The chains."""
        return self.chains.to_dict()


def _fit(view: SessionsView) -> FittedDeviceSequence:
    if view.labels is None:
        raise UsageError("chains need sessions whose outcome is known", "give a view with labels")
    known = view.take(~np.isnan(view.columns["devices"]))
    assert known.labels is not None
    names = tuple(sorted(set().union(*(known.columns[column].tolist() for column in _SEQUENCE)) - {NOTHING}))
    return FittedDeviceSequence(fit_markov(_codes(known, names), known.labels, names))


def _switch_probability(view: SessionsView) -> np.ndarray:
    probability: np.ndarray = (view.columns["switches"] + 0.5) / (view.columns["pairs"] + 2)
    return probability


_DEVICES = Plain(("devices",), column_values("devices"))
_SWITCH = Plain(("switch-probability",), _switch_probability)

DEVICES = FEATURES.add(
    Feature(
        name="devices",
        label="number of devices",
        description="different device types of the visitor's sessions up to this one, this one among them",
        group="history",
        dynamic=False,
        baseline=False,
        columns=("devices",),
        fit=_DEVICES.fit,
        load=_DEVICES.load,
    )
)

DEVICE_SEQUENCE_SCORE = FEATURES.add(
    Feature(
        name="device-sequence-score",
        label="device sequence score",
        description=f"as the page sequence score, of the device types of the visitor's last {LAST_DEVICES} sessions, "
        "this one among them; chains of training sessions by how they ended (ours)",
        group="history",
        dynamic=False,
        baseline=False,
        columns=(*_SEQUENCE, "devices"),
        fit=_fit,
        load=lambda values: FittedDeviceSequence(MarkovRatio.from_dict(values)),
    )
)

SWITCH_PROBABILITY = FEATURES.add(
    Feature(
        name="switch-probability",
        label="switch probability",
        description="(switches + 0.5) / (pairs + 2) of consecutive sessions before this one, on two device types or "
        "not (ours)",
        group="history",
        dynamic=False,
        baseline=False,
        columns=("switches", "pairs"),
        fit=_SWITCH.fit,
        load=_SWITCH.load,
    )
)
