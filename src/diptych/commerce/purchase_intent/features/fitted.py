"""Features with their parameters: fitted on training sessions, applied to any, kept as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.column_features import ColumnFeature, column_feature
from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature, FittedFeature
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.core.errors import StorageError, UsageError

_FORMAT = 1


@dataclass(frozen=True)
class FittedFeatures:
    """Several features of one view, side by side.

    Attributes:
        features: in the order of their columns.
        parts: each with its parameters.
    """

    features: tuple[Feature, ...]
    parts: tuple[FittedFeature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def owners(self) -> tuple[str, ...]:
        """The feature that each column belongs to."""
        pairs = zip(self.features, self.parts, strict=True)
        return tuple(feature.name for feature, part in pairs for _ in part.names)

    def matrix(self, view: SessionsView) -> np.ndarray:
        """(n, columns) float64 of a view that is cut at the step; NaN where there is no value."""
        matrix = np.empty((len(view), len(self.names)))
        at = 0
        for part in self.parts:
            width = len(part.names)
            matrix[:, at : at + width] = part.values(view)
            at += width
        return matrix

    def to_dict(self) -> dict[str, Any]:
        """All that :meth:`from_dict` needs, JSON-able."""
        described = []
        for feature, part in zip(self.features, self.parts, strict=True):
            kind = {"column": feature.kind} if isinstance(feature, ColumnFeature) else {}
            described.append({"name": feature.name, **kind, "fitted": part.to_dict()})
        return {"format": _FORMAT, "features": described}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FittedFeatures:
        """The features that ``to_dict`` described."""
        found = values.get("format") if isinstance(values, dict) else None
        if found != _FORMAT:
            raise StorageError(
                f"fitted features are of format {found}, this version reads {_FORMAT}",
                "fit them again",
            )
        features, parts = [], []
        for described in values["features"]:
            name, kind = described["name"], described.get("column")
            feature = FEATURES.get(name) if kind is None else column_feature(name, kind)
            features.append(feature)
            parts.append(feature.load(described["fitted"]))
        return cls(tuple(features), tuple(parts))


def fit_features(features: Sequence[Feature], view: SessionsView) -> FittedFeatures:
    """Fit features on training sessions alone."""
    if view.labels is None:
        raise UsageError("features are fitted on sessions whose outcome is known", "give a view with labels")
    for feature in features:
        for name in feature.columns:
            if name not in view.columns:
                raise UsageError(
                    f"the feature {feature.name} needs the column {name!r}, which these sessions do not have",
                    f"there are: {', '.join(view.columns) or 'none'}",
                )
    return FittedFeatures(tuple(features), tuple(feature.fit(view) for feature in features))
