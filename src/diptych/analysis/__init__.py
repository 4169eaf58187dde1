"""What a trained encoder and its objective really do."""

from diptych.analysis.cocos import Weights, cocos_over, count, gradient_weights
from diptych.analysis.cocos_report import COUNTS, CocosProtocol, CocosReport, Counts, Spread, WeightHistogram

__all__ = [
    "COUNTS",
    "CocosProtocol",
    "CocosReport",
    "Counts",
    "Spread",
    "WeightHistogram",
    "Weights",
    "cocos_over",
    "count",
    "gradient_weights",
]
