"""Projections from a tower's features into the shared space."""

from __future__ import annotations

import math

from torch import Tensor, nn


def unit_rows(rows: Tensor) -> Tensor:
    """Rows divided by their length; a row shorter than 1e-12 stays (nearly) zero instead of NaN."""
    return nn.functional.normalize(rows, dim=-1, eps=1e-12)


def start_uniform(*layers: nn.Linear) -> None:
    """VSE++'s initialisation: uniform in ± sqrt(6 / (in + out)) (Glorot), bias 0."""
    for layer in layers:
        bound = math.sqrt(6.0 / (layer.in_features + layer.out_features))
        nn.init.uniform_(layer.weight, -bound, bound)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


class LinearHead(nn.Sequential):
    """One linear layer, as in VSE++. (n, features) → (n, width)."""

    def __init__(
        self, features: int, width: int, dropout: float = 0.0, bias: bool = True, batch_norm: bool = False
    ) -> None:
        linear = nn.Linear(features, width, bias=bias)
        start_uniform(linear)
        super().__init__(nn.Dropout(dropout), linear)
        if batch_norm:
            self.append(nn.BatchNorm1d(width))


class MLPHead(nn.Sequential):
    """Two linear layers with a ReLU between. (n, features) → (n, width).

    Arguments as for :class:`LinearHead`; ``bias`` is of both layers, ``batch_norm`` of the last.
    Without bias it is the head of Bleeker et al. 2022, who need the batch norm for a triplet loss.
    """

    def __init__(
        self,
        features: int,
        width: int,
        hidden: int,
        dropout: float = 0.0,
        bias: bool = True,
        batch_norm: bool = False,
    ) -> None:
        first, second = nn.Linear(features, hidden, bias=bias), nn.Linear(hidden, width, bias=bias)
        start_uniform(first, second)
        super().__init__(nn.Dropout(dropout), first, nn.ReLU(), nn.Dropout(dropout), second)
        if batch_norm:
            self.append(nn.BatchNorm1d(width))


def make_head(
    features: int,
    width: int,
    hidden: int | None,
    dropout: float = 0.0,
    bias: bool = True,
    batch_norm: bool = False,
) -> nn.Module:
    """A linear head, or an MLP head when ``hidden`` is a number."""
    if hidden is None:
        return LinearHead(features, width, dropout, bias, batch_norm)
    return MLPHead(features, width, hidden, dropout, bias, batch_norm)
