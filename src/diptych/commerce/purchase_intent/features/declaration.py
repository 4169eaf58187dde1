"""A feature: what it is, when it is known, and how it is fitted and computed.

Some features have parameters that are learned (Markov chains, a device's conversion rate). They are fitted on
training sessions alone, inside each fold, and are small enough to be kept as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.core.registry import Registry

FeatureSetName = Literal["baseline", "extended"]
SettingName = Literal["anonymous", "identified", "all"]


class FittedFeature(Protocol):
    """A feature with its parameters."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns."""

    def values(self, view: SessionsView) -> np.ndarray:
        """(n, columns) float64 of a view that is cut at the step; NaN where there is no value."""

    def to_dict(self) -> dict[str, Any]:
        """Its parameters, JSON-able; :attr:`Feature.load` is the way back."""


@dataclass(frozen=True)
class Feature:
    """One row of thesis Table 6.7, or another column.

    Attributes:
        name: e.g. ``dwell-mean``.
        label: as the thesis prints it.
        description: the formula in one line; what the thesis leaves open is said to be ours.
        group: of the ``session`` itself, or of the visitor's ``history``.
        dynamic: whether it may change while the session runs.
        baseline: whether it is in the baseline set.
        columns: what it needs of a view's columns.
        fit: on training sessions cut at the step; labels are in the view.
        load: from what ``to_dict`` gave.
        default: whether it is in the extended set when nobody says; others have to be asked for.
    """

    name: str
    label: str
    description: str
    group: Literal["session", "history"]
    dynamic: bool
    baseline: bool
    columns: tuple[str, ...]
    fit: Callable[[SessionsView], FittedFeature]
    load: Callable[[dict[str, Any]], FittedFeature]
    default: bool = True


FEATURES: Registry[Feature] = Registry("feature", "diptych.commerce.purchase_intent.features.kinds")
"""All features; each is declared in a file of its own."""
