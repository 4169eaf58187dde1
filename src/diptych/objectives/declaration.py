"""The contract of objectives: a pure function of scores and positives, and a small class around it."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from types import CodeType, FunctionType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypedDict, TypeVar, Unpack, get_args

import numpy as np
import torch
from torch import Tensor, nn

from diptych.core.errors import NumericalError, RecipeError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.registry import Registry

Direction = Literal["both", "i2t", "t2i"]
Reduction = Literal["mean", "sum", "none"]
Compat = Literal["none", "pairs", "positive-sign"]


class Within(NamedTuple):
    """Scores inside each modality, for objectives that push images from images and texts from texts."""

    images: Tensor  # (n_images, n_images) scores of images with each other
    texts: Tensor  # (n_texts, n_texts) scores of texts with each other


class Objective(nn.Module):
    """A loss over one score matrix, carrying its hyper-parameters.

    Called with ``scores`` (n_images, n_texts) and ``positives``, a boolean matrix of the same shape,
    it gives a scalar. A parameter of it (a learned temperature) is trained with the model.
    """

    # whether it also wants the scores inside each modality; the loop supplies them
    needs_within: ClassVar[bool] = False
    # whether a batch in which everything matches everything is an error
    needs_negatives: ClassVar[bool] = True

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        """The loss, a scalar."""
        raise NotImplementedError

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) the loss of each row as a query, before any mean or sum over queries.

        Query i's value depends only on row i, so the gradient of their sum with respect to
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
        """Return what the metrics record besides the loss (a learned temperature)."""
        return {}

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Remember what it is made with; a copy is made with nothing, and gets what the original has."""
        made, signature = super().__new__(cls), inspect.signature(cls.__init__)
        _, *given = signature.bind_partial(made, *args, **options).arguments.items()
        values: dict[str, Any] = {}
        for key, one in given:
            values |= one if signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD else {key: one}
        made.__dict__["made_with"] = values
        return made

    def extra_repr(self) -> str:
        """Return what it was made with, as it prints."""
        return ", ".join(f"{key}={one!r}" for key, one in self.__dict__["made_with"].items())


class _Given(Objective):
    """A callable of scores and positives that is no :class:`Objective`."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        loss = self.function(scores, positives)
        if not isinstance(loss, Tensor) or loss.dim() != 0:
            found = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise UsageError(
                f"the objective {name_of(self.function)} returns {found}", "return a scalar tensor"
            )
        return loss

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        raise UsageError(
            f"{name_of(self.function)} gives one number for a batch, and one per query is needed",
            "make it an Objective with per_query, or name a loss",
        )


def as_objective(given: Callable[..., Tensor]) -> Objective:
    """Return an objective as it is, and any other callable of scores and positives as one."""
    return given if isinstance(given, Objective) else _Given(given)


def declared_as(given: Any) -> dict[str, Any] | None:
    """Return the name and options by which a recipe makes the same loss; None where none does, as after learning."""
    for kind in OBJECTIVES:
        if type(given) is kind.build:
            numbers = {key: one.item() for key, one in given.made_with.items() if isinstance(one, np.generic)}
            options = given.made_with | numbers
            plain = all(isinstance(one, bool | int | float | str) for one in options.values())
            return {"name": kind.name, **options} if plain and _same(given, kind.build(**options)) else None
    return None


def _same(one: Any, other: Any) -> bool:
    """Return whether two objectives, or attributes of them, are equal, on whatever device and in whatever mode."""
    if isinstance(one, nn.Module) and type(one) is type(other):
        return _same(vars(one) | {"training": True}, vars(other) | {"training": True})
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        trained = one.requires_grad == other.requires_grad
        return trained and np.array_equal(one.detach().cpu(), other.detach().cpu())
    return np.array_equal(one, other)


def name_of(given: Callable[..., Tensor]) -> str:
    """Return what a callable is called where it was defined; a lambda, which has no name, by what it computes."""
    found = getattr(given, "__qualname__", type(given).__qualname__)
    if isinstance(given, FunctionType) and given.__name__ == "<lambda>":
        found += f".{fingerprint(_computed(given.__code__))[:8]}"
    return f"{getattr(given, '__module__', None) or type(given).__module__}.{found}"


def _computed(code: CodeType) -> list[Any]:
    constants = [_computed(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return [code.co_code.hex(), code.co_names, constants]


@dataclass(frozen=True)
class ObjectiveKind:
    """An objective in the registry."""

    name: str  # what a recipe calls it
    description: str
    citation: str
    build: Callable[..., Objective]  # the class; its keyword arguments are the hyper-parameters

    @property
    def options(self) -> dict[str, Any]:
        parameters = inspect.signature(self.build).parameters.values()
        named = {one.name: one.default for one in parameters if one.kind is not one.VAR_KEYWORD}
        return named if len(named) == len(parameters) else named | defaults_of(self.build)

    def __call__(self, **options: Any) -> Objective:
        for name, value in options.items():
            if name not in self.options:
                known = ", ".join(f"{key}={default!r}" for key, default in self.options.items())
                raise RecipeError(f"objective {self.name!r} has no option {name!r}", f"its options: {known}")
            expected = _expected(value, self.options[name])
            if expected is not None:
                raise RecipeError(
                    f"option {name!r} of objective {self.name!r} is {value!r}",
                    f"give {expected}, such as {self.options[name]!r}",
                )
        if options.get("reduction") == "none":
            raise UsageError("reduction 'none' gives no scalar", "one of 'mean', 'sum'")
        return self.build(**options)


def _expected(value: Any, default: Any) -> str | None:
    """Return what ``value`` should have been, judging by the default; None when it is that."""
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, Real) and (isinstance(value, bool) or not isinstance(value, Real)):
        return "a number"
    return None


OBJECTIVES: Registry[ObjectiveKind] = Registry("objective", "diptych.objectives", "diptych.losses")

SomeObjective = TypeVar("SomeObjective", bound=type[Objective])


def declared(name: str, description: str, citation: str) -> Callable[[SomeObjective], SomeObjective]:
    """Register the decorated class; what a recipe calls it, one line of what it is, and where it is defined."""

    def registered(build: SomeObjective) -> SomeObjective:
        OBJECTIVES.add(ObjectiveKind(name, description, citation, build))
        return build

    return registered


def checked(
    scores: Tensor, positives: Tensor, compat: Compat = "none", needs_negatives: bool = True
) -> tuple[Tensor, Tensor]:
    """Return scores and positives, after seeing that they make sense, and as ``compat`` wants them.

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
    for side, dimension in (("image", 1), ("text", 0)):
        covered = positives.any(dim=dimension)
        if not bool(covered.all()):
            row = int((~covered).nonzero()[0])
            raise UsageError(f"{side} {row} of the batch has no positive", "leave it out of the batch")
    all_finite(scores, ("image", "text"))
    if needs_negatives and compat != "pairs" and bool(positives.all()):
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


def not_negative(name: str, value: float, example: float) -> float:
    if not 0 <= value < float("inf"):
        raise UsageError(f"{name} {value}", f"give a {name} of at least 0, such as {example}")
    return value


def reduced(losses: list[Tensor], reduction: Reduction, combined: Literal["mean", "sum"]) -> Tensor:
    if reduction == "none":
        return torch.cat(losses)
    each = torch.stack([loss.mean() if reduction == "mean" else loss.sum() for loss in losses])
    return each.mean() if combined == "mean" else each.sum()


class LossOptions(TypedDict, total=False):
    """The options that every loss of :mod:`diptych.objectives` takes by name."""

    direction: Direction  # images as queries, texts as queries, or "both" (default)
    reduction: Reduction  # over the queries of each direction; "none": a value per query, image queries first
    compat: Compat  # "pairs" treats other captions of an image as negatives, as published


def defaults_of(build: Any) -> dict[str, Any]:
    return {name: getattr(build, name) for name in LossOptions.__annotations__}


# From (queries, candidates) scores and positives to one value per query, or per pair.
OneWay = Callable[[Tensor, Tensor], Tensor]


class Directed(Objective):
    """An objective with a direction and a reduction: a loss of rows as queries, combined over both directions."""

    direction: Direction = "both"
    reduction: Reduction = "mean"
    compat: Compat = "none"
    compats: ClassVar[tuple[str, ...]] = ("none", "pairs")
    # how both directions make one loss: "first": each holds every pair, so that i2t is both
    combined: ClassVar[Literal["mean", "sum", "first"]] = "mean"

    def __init__(self, **choices: Unpack[LossOptions]) -> None:
        super().__init__()
        known = (get_args(Direction), get_args(Reduction), self.compats)
        for (name, default), values in zip(defaults_of(type(self)).items(), known, strict=True):
            value = choices.pop(name, default)  # type: ignore[misc]
            if value not in values:
                raise UsageError(f"{name} {value!r}", f"one of {', '.join(map(repr, values))}")
            setattr(self, name, value)
        if choices:
            raise UsageError(f"{type(self).__name__} has no option {next(iter(choices))!r}")

    def one_way(self, scores: Tensor) -> tuple[Tensor, OneWay]:
        """Return what the loss is of, such as scores over τ, and the loss of one direction of it."""
        raise NotImplementedError

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        scores, positives = checked(scores, positives, self.compat, self.needs_negatives)
        scores, loss = self.one_way(scores)
        losses = []
        if self.direction in ("both", "i2t"):
            losses.append(loss(scores, positives))
        if self.direction == "t2i" or (self.direction == "both" and self.combined != "first"):
            losses.append(loss(scores.T, positives.T))
        return reduced(losses, self.reduction, "sum" if self.combined == "sum" else "mean")

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """Return (queries,) losses; of several positives of a query the mean, where the loss is not a sum."""
        scores, positives = checked(scores, positives, self.compat, self.needs_negatives)
        scores, loss = self.one_way(scores)
        return loss(scores, positives)


def checked_number(name: str, value: float | Tensor, example: float, positive: bool) -> float | Tensor:
    """Return ``value``, after seeing that it is finite and, if ``positive``, above 0."""
    number = float(value.detach()) if isinstance(value, Tensor) else value
    if isinstance(value, Tensor) and not math.isfinite(number):
        raise NumericalError(f"the learned {name} is {number}", "lower the learning rate")
    if not math.isfinite(number) or (positive and number <= 0):
        kind = f"{name} above 0" if positive else f"finite {name}"
        raise UsageError(f"{name} {number}", f"give a {kind}, such as {example:g}")
    return value


def checked_temperature(temperature: float | Tensor) -> float | Tensor:
    return checked_number("temperature", temperature, 0.07, positive=True)


class Tempered(Directed):
    """An objective of scores over a temperature τ, fixed or learned as log(1/τ) from ``temperature`` on.

    ``ceiling`` is the largest 1/τ a learned temperature may reach; beyond it, it is set back to it.
    """

    ceiling: ClassVar[float] = 100.0  # as in CLIP

    def __init__(
        self,
        temperature: float | Tensor = 0.07,
        learn_temperature: bool = False,
        **choices: Unpack[LossOptions],
    ) -> None:
        super().__init__(**choices)
        self._fixed = checked_temperature(temperature)
        start = torch.tensor(-math.log(temperature)) if learn_temperature else None
        self.log_scale: nn.Parameter | None = None if start is None else nn.Parameter(start)

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

    def one_way(self, scores: Tensor) -> tuple[Tensor, OneWay]:
        temperature = checked_temperature(self.temperature)
        return scores / temperature, self.of_logits(temperature)

    def of_logits(self, temperature: float | Tensor) -> OneWay:
        """Return the loss of one direction of scores over τ."""
        raise NotImplementedError

    def logged(self) -> dict[str, float]:
        temperature = self.temperature
        return {"temperature": float(temperature.detach())} if isinstance(temperature, Tensor) else {}
