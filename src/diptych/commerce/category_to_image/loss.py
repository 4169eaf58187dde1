"""The loss of thesis ch. 7 over a batch of category–product pairs, and the tree-aware one of its future work."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import UsageError
from diptych.objectives.declaration import Tempered, checked_temperature

Duplicates = Literal["negatives", "masked"]  # what other pairs of the same category are to a pair


def pair_losses(
    scores: Tensor,
    temperature: float | Tensor = 1.0,
    same: Tensor | None = None,
    *,
    duplicates: Duplicates = "negatives",
    margins: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (β,) ℓ(p→c) of Eq. 7.8 and (β,) ℓ(c→p) of Eq. 7.7.

    Args:
        scores: (β, β) cosines of category j and product k; pairs are on the diagonal.
        temperature: τ.
        same: (β, β) booleans: whether pairs j and k are of one category; for ``masked``.
        margins: (β, β) of :func:`tree_margins`, added to the scores.
    """
    checked_temperature(temperature)
    if scores.dim() != 2 or scores.shape[0] != scores.shape[1]:
        raise UsageError(f"scores of shape {tuple(scores.shape)}", "give one row and one column per pair")
    if duplicates not in ("negatives", "masked"):
        raise UsageError(f"duplicates {duplicates!r}", "'negatives' or 'masked'")
    logits = (scores if margins is None else scores + margins) / temperature
    if duplicates == "masked":
        if same is None:
            raise UsageError("duplicates are masked, but same does not say which they are", "give same")
        own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
        logits = logits.masked_fill(same & ~own, -math.inf)
    to_category, to_product = (rows.logsumexp(dim=1) - rows.diagonal() for rows in (logits.T, logits))
    return to_category, to_product


def category_product_loss(
    categories: Tensor,
    products: Tensor,
    temperature: float | Tensor = 1.0,
    balance: float = 0.5,
    same: Tensor | None = None,
    *,
    duplicates: Duplicates = "negatives",
    margins: Tensor | None = None,
) -> Tensor:
    """Return Eq. 7.9, a scalar; ``same``, ``duplicates`` and ``margins`` as :func:`pair_losses` takes them.

    Args:
        categories: (β, d) rows c of any length but 0; their cosines are the scores.
        products: (β, d) rows p; p_j is a product of c_j.
        temperature: τ.
        balance: λ in [0, 1], the weight of product→category.
    """
    if categories.dim() != 2 or categories.shape != products.shape:
        raise UsageError(
            f"categories are {tuple(categories.shape)}, products {tuple(products.shape)}",
            "give (pairs, width) rows of both",
        )
    if not 0 <= balance <= 1:
        raise UsageError(f"balance {balance}", "give λ between 0 and 1")
    scores = normalize(categories, dim=1) @ normalize(products, dim=1).T
    losses = pair_losses(scores, temperature, same, duplicates=duplicates, margins=margins)
    return _balanced(losses, balance)


def _balanced(losses: tuple[Tensor, Tensor], balance: float) -> Tensor:
    to_category, to_product = losses
    return (balance * to_category + (1 - balance) * to_product).mean()


class CategoryProductLoss(Tempered):
    """Eq. 7.9 over cosines, with its hyper-parameters and, where it is learned, the temperature."""

    def __init__(
        self,
        temperature: float = 1.0,
        learn_temperature: bool = False,
        balance: float = 0.5,
        duplicates: Duplicates = "negatives",
    ) -> None:
        super().__init__(temperature, learn_temperature)
        self.balance = balance
        self.duplicates: Duplicates = duplicates

    def forward(self, scores: Tensor, same: Tensor | None = None, margins: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Return the loss of (β, β) cosines of categories and products, a scalar."""
        losses = pair_losses(scores, self.temperature, same, duplicates=self.duplicates, margins=margins)
        return _balanced(losses, self.balance)


def greatest_distance(tree: CategoryTree, nodes: np.ndarray) -> int:
    """Return the most edges there could be between two of ``nodes``: twice the depth of the deepest."""
    return int(2 * tree.depth[nodes].max(initial=1))


def tree_margins(
    tree: CategoryTree, nodes: np.ndarray, strength: float, greatest: int | None = None
) -> np.ndarray:
    """(β, β) float32 margins m·D(j, k) of pairs whose categories are the (β,) ``nodes``."""
    if not strength >= 0:
        raise UsageError(f"strength {strength} of the tree-aware loss", "give 0 or more, such as 0.1")
    distances = tree.distance(nodes[:, None], nodes[None, :])
    margins: np.ndarray = strength * distances / (greatest or greatest_distance(tree, nodes))
    return margins.astype(np.float32)
