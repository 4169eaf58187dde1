"""The model of thesis ch. 7: pooled attributes and two projection heads over frozen embeddings (Eq. 7.1–7.6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, normalize

from diptych.commerce.category_to_image.features import MODALITIES, Modality
from diptych.core.errors import MismatchError


class Bags(NamedTuple):
    """The attribute embeddings of some products, product by product."""

    rows: Tensor  # (m, d) float32
    start: Tensor  # (n + 1,) int64: product i has rows[start[i]:start[i + 1]]

    @property
    def counts(self) -> Tensor:
        return self.start.diff()

    @property
    def owner(self) -> Tensor:
        """(m,) int64: the product of each row."""
        return torch.repeat_interleave(self.counts)

    def weighted_sums(self, weights: Tensor) -> Tensor:
        """(n, d): the sum of each product's rows, each times its weight."""
        sums = self.rows.new_zeros(len(self.start) - 1, self.rows.shape[1])
        return sums.index_add(0, self.owner, self.rows * weights[:, None])


def mean_pooled(bags: Bags) -> Tensor:
    """(n, d): the mean of each product's attributes (Eq. 7.5); zeros for a product without attributes."""
    return bags.weighted_sums(bags.counts.to(bags.rows.dtype).reciprocal()[bags.owner])


class AttentionPooling(nn.Module):
    """A mean whose weights are a soft-max over a product's own attributes, w_i ∝ exp(a_i·u / √d).

    The query u begins at 0, where it is the published mean. A product without attributes gets zeros.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(width))

    def weights(self, bags: Bags) -> Tensor:
        """(m,) positive weights that sum to 1 over each product's attributes."""
        n, owner = len(bags.start) - 1, bags.owner
        logits = bags.rows @ self.query / math.sqrt(bags.rows.shape[1])
        # The largest is subtracted, so that no exponential overflows; it changes no weight and has no gradient.
        fixed = logits.detach()
        highest = fixed.new_zeros(n).scatter_reduce(0, owner, fixed, "amax", include_self=False)
        parts = torch.exp(logits - highest[owner])
        return parts / parts.new_zeros(n).index_add(0, owner, parts)[owner]

    def forward(self, bags: Bags) -> Tensor:
        return bags.weighted_sums(self.weights(bags))


Normalise = Literal["before", "after"]  # a hidden layer's layer norm: before the GELU or after it
Keep = Callable[[int, int], Tensor]  # dropout: (rows, width) to multipliers, 0 for what is dropped


class ProjectionHead(nn.Module):
    """g of Eq. 7.2 and 7.6: two hidden layers with exact GELU and layer norm (section 7.4.2).

    The chapter does not give the order of its parts; ``before``, norm then GELU, is ours.
    """

    def __init__(self, inputs: int, hidden: int, width: int, normalise: Normalise = "before") -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.first_norm = nn.LayerNorm(hidden)
        self.second = nn.Linear(hidden, hidden)
        self.second_norm = nn.LayerNorm(hidden)
        self.output = nn.Linear(hidden, width)
        self.normalise = normalise

    def forward(self, rows: Tensor, keep: Keep | None = None, shift: Tensor | None = None) -> Tensor:
        """(n, inputs) to (n, width), not of unit length; ``shift`` (n, hidden) is added after ``first``."""
        rows = self.first(rows)
        rows = self._activated(rows if shift is None else rows + shift, self.first_norm, keep)
        projected: Tensor = self.output(self._activated(self.second(rows), self.second_norm, keep))
        return projected

    def _activated(self, rows: Tensor, norm: nn.LayerNorm, keep: Keep | None) -> Tensor:
        rows = gelu(norm(rows)) if self.normalise == "before" else norm(gelu(rows))
        return rows if keep is None else rows * keep(*rows.shape)


Rows = Tensor | Bags  # of one modality: (n, d), or attributes that the model pools


class CategoryProductModel(nn.Module):
    """Embeddings of categories and products to unit rows of one space, for any subset of the modalities.

    ``missing`` holds a learned row per modality, zeros before training, that replaces it where a product lacks it.
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
    ) -> None:
        super().__init__()
        self.modalities: tuple[Modality, ...] = tuple(one for one in MODALITIES if one in widths)
        self.widths = {one: widths[one] for one in self.modalities}
        self.width = width
        self.product_head = ProjectionHead(sum(self.widths.values()), hidden, width, normalise)
        self.category_head = ProjectionHead(category_width, hidden, width, normalise)
        self.missing = nn.ParameterDict(
            {one: nn.Parameter(torch.zeros(self.widths[one])) for one in self.modalities}
        )
        attends = attributes == "attention" and "attributes" in self.modalities
        self.attention = AttentionPooling(self.widths["attributes"]) if attends else None

    def products(
        self,
        rows: Mapping[Modality, Rows],
        present: Mapping[Modality, Tensor] | None = None,
        keep: Keep | None = None,
    ) -> Tensor:
        """(n, width) unit rows p of products: g_p of their image, title and attributes end to end (Eq. 7.6).

        Args:
            rows: of every modality of the model.
            present: (n,) booleans of modalities that some products lack; not given, all products have it, and of
                :class:`Bags` those that have any.
            keep: dropout.
        """
        parts, absent = [], []
        for one in self.modalities:
            given, there = self._given(one, rows.get(one), (present or {}).get(one))
            if there is not None:
                given = torch.where(there[:, None], given, self.missing[one].detach())
            parts.append(given)
            absent.append(None if there is None else ~there)
        shift = self._of_missing(absent, parts[0]) if torch.is_grad_enabled() else None
        return normalize(self.product_head(torch.cat(parts, dim=1), keep, shift), dim=1)

    def _given(self, one: Modality, given: Rows | None, there: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return one row per product, and which products have it; None for all."""
        if given is None:
            known = ", ".join(self.modalities)
            raise MismatchError(f"no {one} rows for a model of {known}", f"give {one} rows")
        if isinstance(given, Bags):
            there = given.counts > 0 if there is None else there
            given = mean_pooled(given) if self.attention is None else self.attention(given)
        if given.shape[1] != self.widths[one]:
            raise MismatchError(
                f"{one} rows are {given.shape[1]} wide, the model takes {self.widths[one]}",
                "give rows of the encoder that the model was trained with",
            )
        return given, there

    def _of_missing(self, absent: list[Tensor | None], like: Tensor) -> Tensor | None:
        """Return (n, hidden) zeros through which the missing rows get their gradient.

        Through the joined rows autograd would compute one for every number of every encoder's row, which is not used.
        """
        if all(one is None for one in absent):
            return None
        columns = [like.new_zeros(len(like)) if one is None else one.to(like.dtype) for one in absent]
        rows = torch.block_diag(*(self.missing[one][None] for one in self.modalities))  # type: ignore[no-untyped-call]
        through = torch.stack(columns, dim=1) @ linear(rows, self.product_head.first.weight.detach())
        return through - through.detach()

    def categories(self, rows: Tensor, keep: Keep | None = None) -> Tensor:
        """(q, width) unit rows c of categories, from (q, category_width) rows."""
        return normalize(self.category_head(rows, keep), dim=1)

    def forward(
        self,
        rows: Mapping[Modality, Rows],
        categories: Tensor,
        present: Mapping[Modality, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return unit rows p of products and c of categories."""
        return self.products(rows, present), self.categories(categories)
