"""The loss of thesis ch. 7 over a batch of category–product pairs, and the tree-aware one of its future work."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import UsageError
from diptych.objectives.declaration import checked_temperature

Duplicates = Literal["negatives", "masked"]
"""What other pairs of the same category are to a pair."""


def pair_losses(
    scores: Tensor,
    temperature: float | Tensor = 1.0,
    same: Tensor | None = None,
    *,
    duplicates: Duplicates = "negatives",
    margins: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The losses of each pair, from cosines.

    Args:
        scores: (β, β), category j and product k; pairs are on the diagonal.
        same: (β, β) booleans: whether pairs j and k are of one category.
        margins: (β, β) non-negative, symmetric, 0 on the diagonal, added to the scores of other pairs; see
            :mod:`diptych.commerce.category_to_image.loss`.

    Returns:
        (β,) ℓ(p→c) of Eq. 7.8 and (β,) ℓ(c→p) of Eq. 7.7.
    """
    checked_temperature(temperature)
    if scores.dim() != 2 or scores.shape[0] != scores.shape[1]:
        raise UsageError(f"scores of shape {tuple(scores.shape)}", "give one row and one column per pair")
    if margins is not None:
        scores = scores + margins
    logits = scores / temperature
    if duplicates == "negatives":
        return _against_all(logits.T), _against_all(logits)
    if duplicates != "masked":
        raise UsageError(f"duplicates {duplicates!r}", "'negatives' or 'masked'")
    if same is None:
        raise UsageError("duplicates are masked, and nobody says which they are", "give same")
    own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    logits = logits.masked_fill(same & ~own, -math.inf)
    return _against_all(logits.T), _against_all(logits)


def _against_all(logits: Tensor) -> Tensor:
    """(β,) −log of the share of the diagonal in each row's sum of exponentials."""
    return logits.logsumexp(dim=1) - logits.diagonal()


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
    """Eq. 7.9, a scalar.

    Args:
        categories: (β, d) rows c of any length but 0; their cosines are the scores.
        products: (β, d) rows p; p_j is a product of c_j.
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
    to_category, to_product = pair_losses(scores, temperature, same, duplicates=duplicates, margins=margins)
    return (balance * to_category + (1 - balance) * to_product).mean()


class CategoryProductLoss(nn.Module):
    """Eq. 7.9 over cosines, with its hyper-parameters and, where it is learned, the temperature."""

    ceiling = 100.0

    def __init__(
        self,
        temperature: float = 1.0,
        learn_temperature: bool = False,
        balance: float = 0.5,
        duplicates: Duplicates = "negatives",
    ) -> None:
        super().__init__()
        checked_temperature(temperature)
        self._fixed = temperature
        self.balance = balance
        self.duplicates: Duplicates = duplicates
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature))) if learn_temperature else None

    @property
    def temperature(self) -> float | Tensor:
        """τ: a number, or the scalar tensor that is learned."""
        if self.log_scale is None:
            return self._fixed
        with torch.no_grad():  # projected after a step, for a clamp in the graph has no gradient beyond it
            self.log_scale.clamp_(max=math.log(self.ceiling))
        return torch.exp(-self.log_scale)

    def forward(self, scores: Tensor, same: Tensor | None = None, margins: Tensor | None = None) -> Tensor:
        """The loss of (β, β) cosines of categories and products, a scalar."""
        to_category, to_product = pair_losses(
            scores, self.temperature, same, duplicates=self.duplicates, margins=margins
        )
        return (self.balance * to_category + (1 - self.balance) * to_product).mean()


def greatest_distance(tree: CategoryTree, nodes: np.ndarray) -> int:
    """The most edges there could be between two of ``nodes``: twice the depth of the deepest."""
    return int(2 * tree.depth[nodes].max(initial=1))


def tree_margins(
    tree: CategoryTree, nodes: np.ndarray, strength: float, greatest: int | None = None
) -> np.ndarray:
    """(β, β) float32 margins m·D(j, k) of pairs whose categories are ``nodes``.

    Args:
        nodes: (β,) the category of each pair.
    """
    if not strength >= 0:
        raise UsageError(f"strength {strength} of the tree-aware loss", "give 0 or more, such as 0.1")
    greatest = greatest_distance(tree, nodes) if greatest is None else greatest
    distances = tree.distance(nodes[:, None], nodes[None, :])
    margins: np.ndarray = (strength * distances / greatest).astype(np.float32)
    return margins
