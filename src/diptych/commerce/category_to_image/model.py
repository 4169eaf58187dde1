"""The model of thesis ch. 7: pooled attributes, two projection heads over rows of frozen encoders (Eq. 7.1–7.6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, normalize

from diptych.commerce.category_to_image.features.rows import MODALITIES, Modality
from diptych.core.errors import MismatchError


class Bags(NamedTuple):
    """The attribute rows of some products."""

    rows: Tensor  # (m, d) float32, product by product
    start: Tensor  # (n + 1,) int64

    @property
    def counts(self) -> Tensor:
        """(n,) int64: attributes of each product."""
        return self.start.diff()

    @property
    def owner(self) -> Tensor:
        """(m,) int64: the product of each row."""
        return torch.repeat_interleave(self.counts)


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


# ProjectionHead: an MLP of two hidden layers with GELU and layer norm (thesis ch. 7, section 7.4.2).
#
# ::
#
#     before:  x → first → first_norm → GELU → second → second_norm → GELU → output
#     after:   x → first → GELU → first_norm → second → GELU → second_norm → output
#
# The chapter names the parts and not their order; ``before`` is ours. GELU is the exact one, x·Φ(x).


Normalise = Literal["before", "after"]
"""Where a hidden layer has its layer norm: before the GELU or after it."""

Keep = Callable[[int, int], Tensor]
"""Dropout of a hidden layer: (rows, width) to multipliers, 0 for what is dropped and 1/(1 − share) for the rest."""


class ProjectionHead(nn.Module):
    """g of Eq. 7.2 and 7.6; its parameters are ``first``, ``first_norm``, ``second``, ``second_norm``, ``output``."""

    def __init__(self, inputs: int, hidden: int, width: int, normalise: Normalise = "before") -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.first_norm = nn.LayerNorm(hidden)
        self.second = nn.Linear(hidden, hidden)
        self.second_norm = nn.LayerNorm(hidden)
        self.output = nn.Linear(hidden, width)
        self.normalise = normalise

    def forward(self, rows: Tensor, keep: Keep | None = None, shift: Tensor | None = None) -> Tensor:
        """(n, inputs) rows to (n, width) rows, not of unit length.

        Args:
            shift: (n, hidden) added to what ``first`` gives.
        """
        for layer, norm in ((self.first, self.first_norm), (self.second, self.second_norm)):
            rows = layer(rows)
            if shift is not None and layer is self.first:
                rows = rows + shift
            rows = gelu(norm(rows)) if self.normalise == "before" else norm(gelu(rows))
            if keep is not None:
                rows = rows * keep(*rows.shape)
        projected: Tensor = self.output(rows)
        return projected


Rows = Tensor | Bags
"""Of one modality: (n, d) rows; for attributes also all of them, which the model pools."""


class CategoryProductModel(nn.Module):
    """Rows of categories and products to unit rows of one space, for any subset of {image, title, attributes}.

    A product that lacks a modality has a learned row in its place, zeros before training; one that lacks all of
    them has all those rows, so it still ranks.

    Attributes:
        product_head: g_p of Eq. 7.6.
        category_head: g_c of Eq. 7.2.
        missing: per modality, the row of a product without it.
        attention: the pooling of attributes, where it is attention; None for the mean.
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
        self.category_width = category_width
        self.width = width
        self.product_head = ProjectionHead(sum(self.widths.values()), hidden, width, normalise)
        self.category_head = ProjectionHead(category_width, hidden, width, normalise)
        self.missing = nn.ParameterDict(
            {one: nn.Parameter(torch.zeros(self.widths[one])) for one in self.modalities}
        )
        attends = attributes == "attention" and "attributes" in self.modalities
        self.attention = AttentionPooling(self.widths["attributes"]) if attends else None

    def joined(
        self, rows: Mapping[Modality, Rows], present: Mapping[Modality, Tensor] | None = None
    ) -> Tensor:
        """(n, sum of widths): h_p of Eq. 7.6, a product's rows one after another: image, title, attributes.

        Args:
            present: (n,) booleans of modalities that some product lacks; where nothing is said all have it, but
                for attributes given as :class:`Bags`, where a product without any lacks them.
        """
        parts = []
        for one, (given, there) in self._given(rows, present).items():
            parts.append(given if there is None else torch.where(there[:, None], given, self.missing[one]))
        return torch.cat(parts, dim=1)

    def products(
        self,
        rows: Mapping[Modality, Rows],
        present: Mapping[Modality, Tensor] | None = None,
        keep: Keep | None = None,
    ) -> Tensor:
        """(n, width) unit rows p of products, g_p of :meth:`joined`, whose arguments it takes.

        The rows of what is missing enter as numbers, and their gradient comes by a term that is 0: through them
        autograd would compute a gradient for every number of every encoder's row, a fifth of all arithmetic.
        """
        all_given = self._given(rows, present)
        parts, absent = [], []
        for one, (given, there) in all_given.items():
            if there is None:
                parts.append(given)
                absent.append(torch.zeros(len(given), dtype=given.dtype, device=given.device))
            else:
                parts.append(torch.where(there[:, None], given, self.missing[one].detach()))
                absent.append((~there).to(given.dtype))
        shift = None
        if torch.is_grad_enabled() and any(there is not None for _, there in all_given.values()):
            of_missing = torch.block_diag(*(self.missing[one][None] for one in self.modalities))  # type: ignore[no-untyped-call]
            through = torch.stack(absent, dim=1) @ linear(of_missing, self.product_head.first.weight.detach())
            shift = through - through.detach()
        return normalize(self.product_head(torch.cat(parts, dim=1), keep, shift), dim=1)

    def _given(
        self, rows: Mapping[Modality, Rows], present: Mapping[Modality, Tensor] | None
    ) -> dict[Modality, tuple[Tensor, Tensor | None]]:
        """Per modality one row per product, and which products have it; None for all."""
        made: dict[Modality, tuple[Tensor, Tensor | None]] = {}
        for one in self.modalities:
            given = rows.get(one)
            if given is None:
                known = ", ".join(self.modalities)
                raise MismatchError(f"no {one} rows for a model of {known}", f"give {one} rows")
            there = None if present is None else present.get(one)
            if isinstance(given, Bags):
                there = given.counts > 0 if there is None else there
                given = mean_pooled(given) if self.attention is None else self.attention(given)
            if given.shape[1] != self.widths[one]:
                raise MismatchError(
                    f"{one} rows are {given.shape[1]} wide, the model takes {self.widths[one]}",
                    "give rows of the encoder that the model was trained with",
                )
            made[one] = given, there
        return made

    def categories(self, rows: Tensor, keep: Keep | None = None) -> Tensor:
        """(q, width) unit rows c of categories, from (q, category_width) rows."""
        return normalize(self.category_head(rows, keep), dim=1)

    def forward(
        self,
        rows: Mapping[Modality, Rows],
        categories: Tensor,
        present: Mapping[Modality, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Unit rows p of products and c of categories."""
        return self.products(rows, present), self.categories(categories)
