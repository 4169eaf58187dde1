"""Categories for products without one, with a confidence for every level of the path."""

from diptych.commerce.category_to_image.filling.calibration import Calibration, calibrate
from diptych.commerce.category_to_image.filling.candidates import candidate_nodes
from diptych.commerce.category_to_image.filling.fill import Filled, Filler
from diptych.commerce.category_to_image.filling.reliability import (
    LevelReliability,
    Reliability,
    reliability_of,
)

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
