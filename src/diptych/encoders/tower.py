"""What every tower ends with, and how a recipe chooses between kinds of tower.

base output → [projection] → unit length → [absolute values]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pydantic import Field
from pydantic_core import PydanticCustomError
from torch import Tensor, nn

from diptych.core.options import Options


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


class ProjectionConfig(Options):
    """A non-linear projection on top of both towers, each with its own weights.

    Linear(base, hidden) → ReLU → Linear(hidden, width). The towers below are then those of a model
    of width ``base`` without projection, so that a trained one's weights fit (ConVSE's warm start).

    Attributes:
        base: d of the towers' own output.
        hidden: width of the hidden layer.
        bias: whether the second layer has one, as in the published code; the first has none.

    Source: Jain and Verma, Contrastive Learning of Visual-Semantic Embeddings, 2021, IV-A2.
    """

    base: int = Field(1024, ge=2)
    hidden: int = Field(2048, ge=1)
    bias: bool = True


class Tower(nn.Module):
    """Base of all towers: ``projection`` and the way to unit rows.

    Attributes:
        base: d of what the tower's own layers have to give.
    """

    def __init__(self, width: int, projection: ProjectionConfig | None, absolute: bool) -> None:
        super().__init__()
        self.absolute = absolute
        self.base = width
        self.projection: nn.Module = nn.Identity()
        if projection is not None:
            self.base = projection.base
            first = nn.Linear(projection.base, projection.hidden, bias=False)
            second = nn.Linear(projection.hidden, width, bias=projection.bias)
            start_uniform(first, second)
            self.projection = nn.Sequential(first, nn.ReLU(), second)

    def finish(self, rows: Tensor) -> Tensor:
        """(n, base) → (n, width) unit rows, without signs where ``absolute``."""
        rows = unit_rows(self.projection(rows))
        return rows.abs() if self.absolute else rows


def choose_kind(*kinds: type[Options]) -> Callable[[Any], Any]:
    """A validator that reads a table by its key ``kind``, the first kind when the key is missing.

    Other than pydantic's tagged unions it keeps the tag out of the places that errors name.
    """
    known = {str(kind.model_fields["kind"].default): kind for kind in kinds}

    def chosen(value: Any) -> Any:
        if isinstance(value, kinds):
            return value
        name = value.get("kind", next(iter(known))) if isinstance(value, dict) else next(iter(known))
        if not isinstance(name, str) or name not in known:
            raise PydanticCustomError(
                "unknown_kind",
                "unknown kind {name}, known: {known}",
                {"name": repr(name), "known": ", ".join(known)},
            )
        return known[name].model_validate(value)

    return chosen
