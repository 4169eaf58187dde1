"""Ways of telling training from test sessions, by name."""

from diptych.commerce.purchase_intent.splits.declaration import SPLITS, Fold, Split, SplitInput

__all__ = ["SPLITS", "Fold", "Split", "SplitInput"]
