"""Projections from a tower's features into the shared space."""

from __future__ import annotations

import math

from torch import Tensor, nn

__all__ = ["LinearHead", "MLPHead", "make_head", "unit_rows"]


def unit_rows(rows: Tensor) -> Tensor:
    """Rows divided by their length; a row shorter than 1e-12 stays (nearly) zero instead of NaN."""
    return nn.functional.normalize(rows, dim=-1, eps=1e-12)


def _uniform(layer: nn.Linear) -> None:
    """VSE++'s initialisation: uniform in ± sqrt(6 / (in + out)), bias 0."""
    bound = math.sqrt(6.0 / (layer.in_features + layer.out_features))
    nn.init.uniform_(layer.weight, -bound, bound)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class LinearHead(nn.Sequential):
    """One linear layer with bias, as in VSE++. (n, features) → (n, width)."""

    def __init__(self, features: int, width: int, dropout: float = 0.0) -> None:
        linear = nn.Linear(features, width)
        _uniform(linear)
        super().__init__(nn.Dropout(dropout), linear)


class MLPHead(nn.Sequential):
    """Two linear layers with a ReLU between. (n, features) → (n, width)."""

    def __init__(self, features: int, width: int, hidden: int, dropout: float = 0.0) -> None:
        first, second = nn.Linear(features, hidden), nn.Linear(hidden, width)
        _uniform(first)
        _uniform(second)
        super().__init__(nn.Dropout(dropout), first, nn.ReLU(), nn.Dropout(dropout), second)


def make_head(features: int, width: int, hidden: int | None, dropout: float = 0.0) -> nn.Module:
    """A linear head, or an MLP head when ``hidden`` is a number."""
    if hidden is None:
        return LinearHead(features, width, dropout)
    return MLPHead(features, width, hidden, dropout)
