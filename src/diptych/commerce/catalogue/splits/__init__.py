"""Ways of telling training from test products, by name, and which categories a training has seen."""

from diptych.commerce.catalogue.splits.assign import assign_splits
from diptych.commerce.catalogue.splits.declaration import SPLITS, SplitKind, SplitOptions
from diptych.commerce.catalogue.splits.seen import seen_nodes

__all__ = ["SPLITS", "SplitKind", "SplitOptions", "assign_splits", "seen_nodes"]
