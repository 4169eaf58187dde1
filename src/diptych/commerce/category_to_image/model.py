"""The model of thesis ch. 7 over frozen embeddings (Eq. 7.1–7.9): pooled attributes, two projection heads, the loss."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, normalize

from diptych.commerce.category_to_image.features import MODALITIES, Modality
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import UsageError
from diptych.objectives.declaration import Tempered, checked_temperature

Normalise = Literal["before", "after"]  # a hidden layer's layer norm: before the GELU or after it


class Bags(NamedTuple):
    """The attribute embeddings of some products, product by product, that the model pools itself."""

    rows: Tensor  # (m, d) float32
    start: Tensor  # (n + 1,) int64: product i has rows[start[i]:start[i + 1]]


class AttentionPooling(nn.Module):
    """A mean weighted by w_i ∝ exp(a_i·u / √d) over a product's attributes; at u = 0 the published mean (Eq. 7.5)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query: nn.Parameter = nn.Parameter(torch.zeros(width))

    def forward(self, bags: Bags) -> Tensor:
        rows, begins, places = bags.rows, bags.start[:-1], torch.arange(len(bags.rows))
        logits = (rows @ self.query / math.sqrt(rows.shape[1]))[:, None]
        # The largest is subtracted, so that no exponential overflows; it changes no weight and has no gradient.
        most = embedding_bag(places, logits.detach(), begins, mode="max")
        weights = torch.exp(logits - most.repeat_interleave(bags.start.diff(), dim=0))
        weighted = torch.cat([rows, torch.ones_like(logits)], dim=1)  # the last column is the sum of weights
        sums = embedding_bag(places, weighted, begins, mode="sum", per_sample_weights=weights[:, 0])
        return sums[:, :-1] / sums[:, -1:].clamp_min(torch.finfo(sums.dtype).tiny)


class ProjectionHead(nn.Module):
    """g of Eq. 7.2 and 7.6: two hidden layers with exact GELU and layer norm, whose order ``before`` is ours."""

    def __init__(
        self, inputs: int, hidden: int, width: int, normalise: Normalise = "before", dropout: float = 0.0
    ) -> None:
        super().__init__()

        def activation() -> list[nn.Module]:
            both = nn.LayerNorm(hidden), nn.GELU()
            return [*(both if normalise == "before" else both[::-1]), nn.Dropout(dropout)]

        self.first: nn.Linear = nn.Linear(inputs, hidden)
        second, output = nn.Linear(hidden, hidden), nn.Linear(hidden, width)
        self.rest: nn.Sequential = nn.Sequential(*activation(), second, *activation(), output)

    def forward(self, rows: Tensor, shift: Tensor | float = 0.0) -> Tensor:
        """(n, inputs) to (n, width), not of unit length; ``shift`` (n, hidden) is added after ``first``."""
        projected: Tensor = self.rest(self.first(rows) + shift)
        return projected


class CategoryProductModel(nn.Module):
    """Embeddings of categories and products to unit rows of one space, for any subset of the modalities.

    Where a product lacks a modality its row is zeros, and a learned vector per modality, ``missing``, zeros before
    training, is added to the first hidden layer.
    """

    def __init__(
        self,
        widths: Mapping[Modality, int],
        category_width: int,
        *,
        hidden: int = 512,
        width: int = 256,
        normalise: Normalise = "before",
        attributes: Literal["mean", "attention"] = "mean",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.modalities: tuple[Modality, ...] = tuple(one for one in MODALITIES if one in widths)
        self.width, inputs = width, sum(widths.values())
        self.product_head: ProjectionHead = ProjectionHead(inputs, hidden, width, normalise, dropout)
        self.category_head: ProjectionHead = ProjectionHead(category_width, hidden, width, normalise, dropout)
        self.missing: nn.Parameter = nn.Parameter(torch.zeros(len(self.modalities), hidden))
        attends = attributes == "attention" and "attributes" in self.modalities
        self.attention: AttentionPooling | None = AttentionPooling(widths["attributes"]) if attends else None

    def products(
        self, rows: Mapping[Modality, Tensor | Bags], present: Mapping[Modality, Tensor] | None = None
    ) -> Tensor:
        """(n, width) unit rows p of products: g_p of their image, title and attributes end to end (Eq. 7.6).

        ``rows`` are (n, d) of every modality, of attributes their mean or :class:`Bags`; ``present``: (n,) booleans of
        modalities that some products lack.
        """
        parts, absent = [], []
        for one in self.modalities:
            given = rows[one]
            if isinstance(given, Bags):
                assert self.attention is not None, "a model of means takes means"
                given = self.attention(given)
            lacks = given.new_zeros(len(given), dtype=torch.bool)
            if present is not None and one in present:
                lacks = ~present[one]
                given = given.masked_fill(lacks[:, None], 0.0)
            parts.append(given)
            absent.append(lacks)
        shift = torch.stack(absent, dim=1).to(self.missing.dtype) @ self.missing
        return normalize(self.product_head(torch.cat(parts, dim=1), shift), dim=1)

    def categories(self, rows: Tensor) -> Tensor:
        """(q, width) unit rows c of categories, from (q, category_width) rows."""
        return normalize(self.category_head(rows), dim=1)

    def forward(
        self,
        rows: Mapping[Modality, Tensor | Bags],
        categories: Tensor,
        present: Mapping[Modality, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        return self.products(rows, present), self.categories(categories)


def pair_losses(
    scores: Tensor,  # (β, β) cosines of category j and product k; pairs are on the diagonal
    temperature: float | Tensor = 1.0,
    same: Tensor | None = None,  # (β, β) booleans: pairs of one category, masked out of each other's sums
    margins: Tensor | None = None,  # (β, β) of tree_margins, added to the scores
) -> tuple[Tensor, Tensor]:
    """Return (β,) ℓ(p→c) of Eq. 7.8 and (β,) ℓ(c→p) of Eq. 7.7."""
    checked_temperature(temperature)
    if scores.dim() != 2 or scores.shape[0] != scores.shape[1]:
        raise UsageError(f"scores of shape {tuple(scores.shape)}", "give one row and one column per pair")
    logits = (scores if margins is None else scores + margins) / temperature
    if same is not None:
        own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
        logits = logits.masked_fill(same & ~own, -math.inf)
    to_category, to_product = (rows.logsumexp(dim=1) - rows.diagonal() for rows in (logits.T, logits))
    return to_category, to_product


def category_product_loss(
    categories: Tensor, products: Tensor, temperature: float | Tensor = 1.0, balance: float = 0.5
) -> Tensor:
    """Return the loss L of Eq. 7.9 of (β, d) rows of pairs; ``balance`` is λ, the weight of product→category."""
    scores = normalize(categories, dim=1) @ normalize(products, dim=1).T
    return CategoryProductLoss(temperature, balance=balance).forward(scores)


class CategoryProductLoss(Tempered):
    """Eq. 7.9 over cosines, with its hyper-parameters and, where it is learned, the temperature."""

    def __init__(
        self, temperature: float | Tensor = 1.0, learn_temperature: bool = False, balance: float = 0.5
    ) -> None:
        super().__init__(temperature, learn_temperature)
        if not 0 <= balance <= 1:
            raise UsageError(f"balance {balance}", "give λ between 0 and 1")
        self.balance = balance

    def forward(self, scores: Tensor, same: Tensor | None = None, margins: Tensor | None = None) -> Tensor:  # type: ignore[override]
        to_category, to_product = pair_losses(scores, self.temperature, same, margins)
        return (self.balance * to_category + (1 - self.balance) * to_product).mean()


def tree_margins(
    tree: CategoryTree, nodes: np.ndarray, strength: float, greatest: int | None = None
) -> np.ndarray:
    """(β, β) float32 margins m·D(j, k) of pairs of (β,) ``nodes``; D is a share of the ``greatest`` distance."""
    distances = tree.distance(nodes[:, None], nodes[None, :])
    margins: np.ndarray = strength * distances / (greatest or greatest_distance(tree, nodes))
    return margins.astype(np.float32)


def greatest_distance(tree: CategoryTree, nodes: np.ndarray) -> int:
    """Return the most edges there could be between two of ``nodes``."""
    return int(2 * tree.depth[nodes].max(initial=1))
