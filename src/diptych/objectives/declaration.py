"""What every objective is: a pure function of scores and positives, and a small class around it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from diptych.core.errors import NumericalError, RecipeError, UsageError
from diptych.core.registry import Registry

Direction = Literal["both", "i2t", "t2i"]
Reduction = Literal["mean", "sum", "none"]
Compat = Literal["none", "pairs"]


class Within(NamedTuple):
    """Scores inside each modality, for objectives that push images from images and texts from texts.

    Attributes:
        images: (n_images, n_images) scores of images with each other.
        texts: (n_texts, n_texts) scores of texts with each other.
    """

    images: Tensor
    texts: Tensor


class Objective(nn.Module):
    """A loss over one score matrix, carrying its hyper-parameters.

    Called with ``scores`` (n_images, n_texts) and ``positives``, a boolean matrix of the same shape,
    it gives a scalar. A parameter of it (a learned temperature) is trained with the model.

    Attributes:
        needs_within: whether it also wants the scores inside each modality; the loop supplies them.
        needs_negatives: whether a batch in which everything matches everything is an error.
    """

    needs_within: ClassVar[bool] = False
    needs_negatives: ClassVar[bool] = True

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        """The loss, a scalar."""
        raise NotImplementedError

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) the loss of each row as a query, before any mean or sum over queries.

        Query i's value depends on row i alone, so the gradient of their sum with respect to
        ``scores`` holds, at (i, j), the weight of candidate j in query i's gradient. With
        ``compat="pairs"`` every positive pair is a query: (pairs,) values, in the order of
        ``positives.nonzero()``.

        Args:
            scores: (queries, candidates); give the transposed matrix for texts as queries.
            positives: (queries, candidates) boolean.
            within: (queries, queries) scores among the queries, where ``needs_within``.
        """
        raise NotImplementedError

    def logged(self) -> dict[str, float]:
        """What is worth a line in the metrics besides the loss (a learned temperature)."""
        return {}


class _Given(Objective):
    """A callable of scores and positives that is no :class:`Objective`."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        """Return the callable's loss."""
        loss = self.function(scores, positives)
        if not isinstance(loss, Tensor) or loss.dim() != 0:
            found = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise UsageError(
                f"the objective {name_of(self.function)} returns {found}", "return a scalar tensor"
            )
        return loss


def as_objective(given: Callable[..., Tensor]) -> Objective:
    """Return an objective as it is, and any other callable of scores and positives as one."""
    return given if isinstance(given, Objective) else _Given(given)


def name_of(given: Callable[..., Tensor]) -> str:
    """Return what a callable is called where it was defined."""
    found = getattr(given, "__qualname__", type(given).__qualname__)
    return f"{getattr(given, '__module__', None) or type(given).__module__}.{found}"


@dataclass(frozen=True)
class ObjectiveKind:
    """An objective in the registry.

    Attributes:
        name: what a recipe calls it.
        description: one line.
        citation: where it is defined.
        build: the class; its keyword arguments are the hyper-parameters.
    """

    name: str
    description: str
    citation: str
    build: Callable[..., Objective]

    @property
    def options(self) -> dict[str, Any]:
        """Hyper-parameters and their defaults."""
        parameters = inspect.signature(self.build).parameters
        return {name: parameter.default for name, parameter in parameters.items()}

    def __call__(self, **options: Any) -> Objective:
        """Build it."""
        for name, value in options.items():
            if name not in self.options:
                known = ", ".join(f"{key}={default!r}" for key, default in self.options.items())
                raise RecipeError(f"objective {self.name!r} has no option {name!r}", f"its options: {known}")
            wanted = _wanted(value, self.options[name])
            if wanted is not None:
                raise RecipeError(
                    f"option {name!r} of objective {self.name!r} is {value!r}",
                    f"give {wanted}, such as {self.options[name]!r}",
                )
        return self.build(**options)


def _wanted(value: Any, default: Any) -> str | None:
    """What ``value`` should have been, judging by the default; None when it is that."""
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, Real) and (isinstance(value, bool) or not isinstance(value, Real)):
        return "a number"
    return None


OBJECTIVES: Registry[ObjectiveKind] = Registry("objective", "diptych.objectives")


def checked(
    scores: Tensor, positives: Tensor, compat: Compat = "none", needs_negatives: bool = True
) -> tuple[Tensor, Tensor]:
    """Scores and positives, after seeing that they make sense, and as ``compat`` wants them.

    With ``compat="pairs"`` every positive pair becomes a row and a column of its own, and all other
    pairs are negatives, those of the same image too: what published code does when it puts
    (image, caption) pairs in a batch without looking whether an image is there twice.
    """
    if scores.shape != positives.shape or scores.dim() != 2:
        raise UsageError(
            f"scores have shape {tuple(scores.shape)}, positives {tuple(positives.shape)}",
            "both are (n_images, n_texts)",
        )
    if positives.dtype != torch.bool:
        raise UsageError(f"positives are {positives.dtype}", "give a boolean matrix")
    if compat not in ("none", "pairs"):
        raise UsageError(f"compat {compat!r}", "'none', or 'pairs' as published")
    for side, dimension in (("image", 1), ("text", 0)):
        covered = positives.any(dim=dimension)
        if not bool(covered.all()):
            row = int((~covered).nonzero()[0])
            raise UsageError(f"{side} {row} of the batch has no positive", "leave it out of the batch")
    all_finite(scores, ("image", "text"))
    if needs_negatives and compat == "none" and bool(positives.all()):
        raise UsageError(
            f"a batch of {scores.shape[0]} images and {scores.shape[1]} texts without a negative",
            "a contrastive loss needs at least two images that do not share a caption",
        )
    if compat == "pairs":
        images, texts = positives.nonzero(as_tuple=True)
        scores = scores.index_select(0, images).index_select(1, texts)
        positives = torch.eye(len(images), dtype=torch.bool, device=scores.device)
        if needs_negatives and len(images) < 2:
            raise UsageError("a batch of one pair has no negative", "use a batch size of at least 2")
    return scores, positives


def all_finite(scores: Tensor, sides: tuple[str, str]) -> None:
    """See that no score is NaN or infinite; ``sides`` are the words for a row and a column."""
    # One pass: NaN and infinity survive a sum. A sum of finite numbers that overflows is looked at again.
    if bool(torch.isfinite(scores.detach().sum())):
        return
    wrong = (~torch.isfinite(scores.detach())).nonzero()
    if len(wrong):
        row, column = (int(place) for place in wrong[0])
        score = float(scores.detach()[row, column])
        raise NumericalError(
            f"the score of {sides[0]} {row} and {sides[1]} {column} of the batch is {score}",
            "the model has diverged: lower the learning rate, add warm-up or clipping, or use 32-bit precision",
        )


def in_directions(
    one_direction: Callable[[Tensor, Tensor], Tensor],
    scores: Tensor,
    positives: Tensor,
    direction: Direction,
) -> list[Tensor]:
    """``one_direction`` applied to images as queries, texts as queries, or both."""
    if direction not in ("both", "i2t", "t2i"):
        raise UsageError(f"direction {direction!r}", "one of 'both', 'i2t', 't2i'")
    losses = []
    if direction in ("both", "i2t"):
        losses.append(one_direction(scores, positives))
    if direction in ("both", "t2i"):
        losses.append(one_direction(scores.T, positives.T))
    return losses


def not_negative(name: str, value: float, example: float) -> float:
    """``value``, after seeing that it is a finite number of at least 0."""
    if not 0 <= value < float("inf"):
        raise UsageError(f"{name} {value}", f"give a {name} of at least 0, such as {example}")
    return value


def together(losses: list[Tensor], reduction: Reduction, directions: Literal["mean", "sum"]) -> Tensor:
    """Values of one or both directions as one loss."""
    if reduction == "none":
        return torch.cat(losses)
    if reduction not in ("mean", "sum"):
        raise UsageError(f"reduction {reduction!r}", "one of 'mean', 'sum', 'none'")
    reduced = torch.stack([loss.mean() if reduction == "mean" else loss.sum() for loss in losses])
    return reduced.mean() if directions == "mean" else reduced.sum()


class Directed(Objective):
    """An objective with a direction and a reduction; refuses those there are not, and a strange compat.

    Args:
        direction: ``both``, ``i2t`` or ``t2i``.
        reduction: ``mean`` or ``sum``.
        compat: one of ``compats``.

    Raises:
        UsageError: a choice there is not.
    """

    compats: tuple[str, ...] = get_args(Compat)

    def __init__(self, direction: Direction, reduction: Reduction, compat: str) -> None:
        super().__init__()
        for what, value, known in (
            ("direction", direction, get_args(Direction)),
            ("reduction", reduction, ("mean", "sum")),
            ("compat", compat, self.compats),
        ):
            if value not in known:
                raise UsageError(f"{what} {value!r}", f"one of {', '.join(map(repr, known))}")
        self.direction = direction
        self.reduction = reduction
        self.compat: Any = compat

    @property
    def choices(self) -> dict[str, Any]:
        """Return what every objective's function takes by name."""
        return {"direction": self.direction, "reduction": self.reduction, "compat": self.compat}


def checked_temperature(temperature: float | Tensor) -> float | Tensor:
    """``temperature``, after seeing that it is finite and above 0."""
    value = float(temperature.detach()) if isinstance(temperature, Tensor) else temperature
    if isinstance(temperature, Tensor) and not math.isfinite(value):
        raise NumericalError(f"the learned temperature is {value}", "lower the learning rate")
    if not (value > 0 and math.isfinite(value)):
        raise UsageError(f"temperature {value}", "give a temperature above 0, such as 0.07")
    return temperature


class Tempered(Directed):
    """An objective with a fixed or learned temperature.

    Args:
        temperature: τ, or where learning starts.
        learn_temperature: train log(1/τ) with the model.
        direction: ``both``, ``i2t`` or ``t2i``.
        reduction: ``mean`` or ``sum``.
        compat: one of ``compats``.

    Attributes:
        ceiling: the largest 1/τ a learned temperature may reach; beyond it, it is set back to it.
    """

    ceiling = 100.0  # as in CLIP

    def __init__(
        self,
        temperature: float,
        learn_temperature: bool,
        direction: Direction,
        reduction: Reduction,
        compat: str,
    ) -> None:
        super().__init__(direction, reduction, compat)
        checked_temperature(temperature)
        self._fixed = temperature
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature))) if learn_temperature else None

    @property
    def temperature(self) -> float | Tensor:
        """τ, a number or the scalar tensor that is learned."""
        if self.log_scale is None:
            return self._fixed
        # Projected, as CLIP does after every step: a clamp in the graph has no gradient above the
        # ceiling, and a scale that once went beyond it would stay there.
        with torch.no_grad():
            self.log_scale.clamp_(max=math.log(self.ceiling))
        return torch.exp(-self.log_scale)

    def logged(self) -> dict[str, float]:
        """The temperature, when it is learned."""
        temperature = self.temperature
        return {"temperature": float(temperature.detach())} if isinstance(temperature, Tensor) else {}
