"""What every tower ends with, and how a recipe chooses between kinds of tower.

base output → [projection] → unit length → [absolute values]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
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


def make_head(
    features: int,
    width: int,
    hidden: int | None,
    dropout: float = 0.0,
    bias: bool = True,
    batch_norm: bool = False,
) -> nn.Sequential:
    """Return one linear layer, as in VSE++, or two with a ReLU between: (n, features) → (n, width).

    ``bias`` is of all layers, ``batch_norm`` of the last. Two without bias are the head of Bleeker et al. 2022,
    who need the batch norm for a triplet loss.
    """
    sizes = [features, width] if hidden is None else [features, hidden, width]
    layers = [nn.Linear(*pair, bias=bias) for pair in pairwise(sizes)]
    start_uniform(*layers)
    head = nn.Sequential(nn.Dropout(dropout), layers[0])
    for layer in layers[1:]:
        head.extend([nn.ReLU(), nn.Dropout(dropout), layer])
    if batch_norm:
        head.append(nn.BatchNorm1d(width))
    return head


def needs_head(config: Any) -> Any:
    """Validate a text tower's configuration."""
    if config.batch_norm and config.head == "none":
        raise ValueError("batch_norm is of a head, and head is 'none'")
    return config


def text_head(config: Any, features: int, width: int, hidden: int) -> nn.Module:
    """Return the head that a text tower's configuration asks for."""
    if config.head == "none":
        return nn.Identity()
    return make_head(
        features, width, hidden if config.head == "mlp" else None, 0.0, config.bias, config.batch_norm
    )


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
