"""Categories for products without one, with a confidence for every level of the path."""

from diptych.commerce.category_to_image.filling.calibration import (
    Calibration,
    LevelReliability,
    Reliability,
    calibrate,
    reliability_of,
)
from diptych.commerce.category_to_image.filling.fill import Filled, Filler, candidate_nodes

__all__ = [
    "Calibration",
    "Filled",
    "Filler",
    "LevelReliability",
    "Reliability",
    "calibrate",
    "candidate_nodes",
    "reliability_of",
]
