"""What every tower ends with, and how a recipe chooses between kinds of tower.

base output → [projection] → unit length → [absolute values]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError
from torch import Tensor, nn

from diptych.encoders.heads import start_uniform, unit_rows


class ProjectionConfig(BaseModel):
    """A non-linear projection on top of both towers, each with its own weights.

    Linear(base, hidden) → ReLU → Linear(hidden, width). The towers below are then those of a model
    of width ``base`` without projection, so that a trained one's weights fit (ConVSE's warm start).

    Attributes:
        base: d of the towers' own output.
        hidden: width of the hidden layer.
        bias: whether the second layer has one, as in the published code; the first has none.

    Source: Jain and Verma, Contrastive Learning of Visual-Semantic Embeddings, 2021, IV-A2.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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


def choose_kind(*kinds: type[BaseModel]) -> Callable[[Any], Any]:
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
