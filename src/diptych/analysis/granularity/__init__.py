"""Granularity: how much captions say and how specifically, by features that are counted (thesis section 5.3)."""

from diptych.analysis.granularity.compare import compare_granularity
from diptych.analysis.granularity.features import FEATURES, Feature, Unmeasured, choose_features
from diptych.analysis.granularity.measure import check_language, granularity
from diptych.analysis.granularity.result import Granularity, GranularityComparison

__all__ = [
    "FEATURES",
    "Feature",
    "Granularity",
    "GranularityComparison",
    "Unmeasured",
    "check_language",
    "choose_features",
    "compare_granularity",
    "granularity",
]
