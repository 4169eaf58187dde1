"""One row for the attributes of a product: their mean (thesis Eq. 7.5), or attention, the chapter's future work.

A product has any number of attributes. Those of several products lie one after another, product i's being
``rows[start[i]:start[i + 1]]``; nothing is padded, so one product with a thousand attributes costs a thousand rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Bags(NamedTuple):
    """The attribute rows of some products.

    Attributes:
        rows: (m, d) float32, product by product.
        start: (n + 1,) int64.
    """

    rows: Tensor
    start: Tensor

    @property
    def counts(self) -> Tensor:
        """(n,) int64: attributes of each product."""
        return self.start.diff()

    @property
    def owner(self) -> Tensor:
        """(m,) int64: the product of each row."""
        return torch.repeat_interleave(self.counts)

    @classmethod
    def from_padded(cls, rows: Tensor, present: Tensor) -> Bags:
        """From (n, most, d) rows and (n, most) booleans that say which of them are there."""
        start = torch.zeros(len(rows) + 1, dtype=torch.int64, device=rows.device)
        start[1:] = present.sum(dim=1).cumsum(dim=0)
        return cls(rows[present], start)


def _weighted_sums(bags: Bags, weights: Tensor) -> Tensor:
    """(n, d): the sum of each product's rows, each times its weight."""
    sums = bags.rows.new_zeros(len(bags.start) - 1, bags.rows.shape[1])
    return sums.index_add(0, bags.owner, bags.rows * weights[:, None])


def mean_pooled(bags: Bags) -> Tensor:
    """(n, d): the mean of each product's attribute rows (Eq. 7.5); zeros for a product without attributes."""
    return _weighted_sums(bags, bags.counts.to(bags.rows.dtype).reciprocal()[bags.owner])


class AttentionPooling(nn.Module):
    """A mean whose weights are a soft-max over a product's own attributes.

    For attribute rows a_1, …, a_n of length d and a learned query u::

        h_a = Σ_i w_i·a_i,   w_i = exp(a_i·u / √d) / Σ_j exp(a_j·u / √d)

    u begins at 0, where it is the published mean; what is learned is the departure from it. With one attribute it
    is that attribute, without any it is zeros.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(width))

    def weights(self, bags: Bags) -> Tensor:
        """(m,) positive weights that sum to 1 over each product's attributes."""
        n, owner = len(bags.start) - 1, bags.owner
        logits = bags.rows @ self.query / math.sqrt(bags.rows.shape[1])
        # The largest is taken off, so that no exponential overflows; it changes no weight and has no gradient.
        highest = (
            logits.detach().new_zeros(n).scatter_reduce(0, owner, logits.detach(), "amax", include_self=False)
        )
        parts = torch.exp(logits - highest[owner])
        return parts / parts.new_zeros(n).index_add(0, owner, parts)[owner]

    def forward(self, bags: Bags) -> Tensor:
        """(n, d): one row per product; zeros for a product without attributes."""
        return _weighted_sums(bags, self.weights(bags))
