"""Few-shot adaptation: a linear map per side of any dual encoder, learned from a few pairs in seconds."""

from diptych.training.adaptation.adapt import adapt_linear
from diptych.training.adaptation.fit import Fitted, fit_linear
from diptych.training.adaptation.options import AdaptationOptions
from diptych.training.adaptation.pairs import Pairs, draw_pairs

__all__ = ["AdaptationOptions", "Fitted", "Pairs", "adapt_linear", "draw_pairs", "fit_linear"]
