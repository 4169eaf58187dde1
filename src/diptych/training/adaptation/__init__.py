"""Few-shot adaptation: a linear map per side of any dual encoder, learned from a few pairs in seconds."""

from diptych.training.adaptation.adapt import Pairs, adapt_linear, draw_pairs
from diptych.training.adaptation.fit import AdaptationOptions, Fitted, fit_linear

__all__ = ["AdaptationOptions", "Fitted", "Pairs", "adapt_linear", "draw_pairs", "fit_linear"]
