"""The loss of thesis ch. 7 over a batch of category–product pairs, and the tree-aware one of its future work."""

from diptych.commerce.category_to_image.loss.contrastive import (
    CategoryProductLoss,
    Duplicates,
    category_product_loss,
    pair_losses,
)
from diptych.commerce.category_to_image.loss.tree_distance import tree_margins

__all__ = ["CategoryProductLoss", "Duplicates", "category_product_loss", "pair_losses", "tree_margins"]
