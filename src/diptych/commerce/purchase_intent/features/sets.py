"""Which features there are in a setting, a feature set and at a step: thesis Table 6.7."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.core.errors import UnknownNameError, UsageError

SETTINGS = ("anonymous", "identified")
FEATURE_SETS = ("baseline", "extended")

TABLE_6_7 = (
    "dwell-mean",
    "dwell-deviation",
    "page-sequence-score",
    "pages",
    "channel",
    "start-hour",
    "week-day",
    "device",
    "device-rate",
    "orders",
    "days-since-purchase",
    "sessions",
    "devices",
    "device-sequence-score",
    "switch-probability",
)
"""Names in the order of the printed rows."""


def optional_features() -> list[Feature]:
    """Those that are in no set unless they are asked for."""
    return [feature for feature in FEATURES if not feature.default]


def features_of(setting: str, feature_set: str, step: int, also: Sequence[str] = ()) -> list[Feature]:
    """The features of one cell."""
    if setting not in SETTINGS:
        raise UnknownNameError("setting", setting, SETTINGS)
    if feature_set not in FEATURE_SETS:
        raise UnknownNameError("feature set", feature_set, FEATURE_SETS)
    names = [*TABLE_6_7, *(name for name in FEATURES.names() if name not in TABLE_6_7)]
    for name in also:
        if FEATURES.get(name).default:
            raise UsageError(f"the feature {name} is in the extended set anyway", "leave it out")

    def is_in(feature: Feature) -> bool:
        if step == 0 and feature.dynamic:
            return False
        if setting == "anonymous" and feature.group == "history":
            return False
        if feature_set == "baseline":
            return feature.baseline
        return feature.default or feature.name in also

    return [feature for feature in map(FEATURES.get, names) if is_in(feature)]
