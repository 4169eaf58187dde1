"""What a perturbation declares: its name, what it does to whom, what it needs, and whether meaning stays.

Adding one is one function in a file of :mod:`diptych.analysis.perturbations.kinds`, decorated with :func:`registering`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from diptych.analysis.perturbations.caption import Caption
from diptych.core.draws import Draws
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.options import Options, parse_values
from diptych.core.registry import Registry
from diptych.core.table import Table

if TYPE_CHECKING:
    from PIL.Image import Image


GROUPS: Mapping[str, str] = {
    "typos": "a slip of the keyboard",
    "synonyms": "another word for the same thing",
    "distraction": "a statement that says nothing",
    "word order": "the same words in another order",
    "meaning": "another meaning, close by",
    "pictures": "the same picture, worse",
}  # the kinds of change, in the order reports print them


class NoOptions(Options):
    """Options of a perturbation; this one has none."""


@dataclass(frozen=True)
class Perturbation:
    side: ClassVar[Literal["text", "image"]]

    name: str  # as it is asked for and printed
    description: str  # one line of what it changes
    group: str  # one of GROUPS
    source: str  # where its definition comes from
    # Whether the changed item still describes what it described. Where it does, a good model does not care; where it
    # does not, a good model prefers the original.
    keeps_meaning: bool
    options: type[Options] = NoOptions  # the model of its options; their defaults are what is run
    version: int = 1  # raised by whoever changes what it makes, so that finished stress runs are made again

    def __post_init__(self) -> None:
        if self.group not in GROUPS:
            raise UnknownNameError("group of perturbations", self.group, GROUPS)


@dataclass(frozen=True)
class TextPerturbation(Perturbation):
    """A change of a caption.

    ``apply`` goes from a caption, its draws and the options to the changed text; it raises ``Unchanged`` where
    there is nothing to change. A text equal to the caption counts as unchanged too.
    """

    side: ClassVar[Literal["text", "image"]] = "text"

    apply: Callable[[Caption, Draws, Any], str] = field(kw_only=True, repr=False)
    needs: frozenset[str] = frozenset()  # "tags" and "wordnet", where it looks at them
    # the same as the published code did it, from a caption, the seed and the options; None where nothing was published
    published: Callable[[Caption, int, Any], str] | None = field(default=None, repr=False)
    suite: bool = False  # whether it is among the thesis's thirteen


@dataclass(frozen=True)
class PicturePerturbation(Perturbation):
    """A change of a picture: from an upright RGB picture, its draws and the options to the changed one, RGB."""

    side: ClassVar[Literal["text", "image"]] = "image"

    apply: Callable[[Image, Draws, Any], Image] = field(kw_only=True, repr=False)


PERTURBATIONS: Registry[Perturbation] = Registry("perturbation", "diptych.analysis.perturbations.kinds")
F = TypeVar("F", bound=Callable[..., Any])


def registering(
    kind: type[TextPerturbation] | type[PicturePerturbation], **declared: Any
) -> Callable[[F], F]:
    def add(apply: F) -> F:
        PERTURBATIONS.add(kind(apply=apply, **declared))
        return apply

    return add


def choose_perturbations(names: Iterable[str]) -> list[Perturbation]:
    """Return what ``names`` (of perturbations, groups, or text, thesis, all) ask for, each once, by group."""
    order = list(GROUPS)
    every = sorted(PERTURBATIONS, key=lambda one: (order.index(one.group), one.name))
    text = [one for one in every if isinstance(one, TextPerturbation)]
    known: dict[str, list[Perturbation]] = {one.name: [one] for one in every}
    known |= {group: [one for one in every if one.group == group] for group in GROUPS}
    known |= {"all": every, "text": [*text], "thesis": [one for one in text if one.suite]}
    chosen = set()
    for name in names:
        if name not in known:
            raise UnknownNameError("perturbation", name, known)
        chosen |= {one.name for one in known[name]}
    if not chosen:
        raise UsageError("no perturbation was asked for", "for example all, thesis, typos")
    return [one for one in every if one.name in chosen]


def perturbation_tables() -> list[Table]:
    tables = []
    for group, what in GROUPS.items():
        rows = []
        for one in sorted(PERTURBATIONS, key=lambda one: one.name):
            if one.group == group:
                defaults = ((key, field.default) for key, field in one.options.model_fields.items())
                given = (f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                         for key, value in defaults)  # fmt: skip
                rows.append(
                    (one.name, one.description, "yes" if one.keeps_meaning else "no", " ".join(given))
                )
        columns = ("perturbation", "what it changes", "meaning stays", "options")
        tables += [Table.of(f"{group}: {what}", "", columns, rows)] if rows else []
    return tables


def options_of(perturbation: Perturbation, given: Mapping[str, Any] | None = None) -> Options:
    return perturbation.options.read(dict(given or {}), perturbation.name)


DEFAULT_SEVERITY = 3


class SeverityOptions(NoOptions):
    """Options of a perturbation of pictures: ``severity``, 1 (hardly to be seen) to 5, or the amount behind it.

    A subclass declares the amount as a field and names it. The severity is None where the amount is none of the
    five.
    """

    amount: ClassVar[str]
    amounts: ClassVar[tuple[float, ...]]

    severity: int | None = Field(DEFAULT_SEVERITY, ge=1, le=5, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _say_both(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        severity, amount = given.get("severity"), given.get(cls.amount)
        if amount is None:
            if severity is None:
                severity = DEFAULT_SEVERITY
            # Anything else is refused where the field is checked.
            known = type(severity) is int and 1 <= severity <= len(cls.amounts)
            return {**given, "severity": severity, cls.amount: cls.amounts[severity - 1 if known else 0]}
        stands_for = cls.amounts.index(amount) + 1 if amount in cls.amounts else None
        if severity is not None and severity != stands_for:
            raise ValueError(f"severity {severity} and {cls.amount} {amount} are two amounts: give one")
        return {**given, "severity": stands_for}


def options_by_name(given: Iterable[str]) -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = {}
    for text, value in parse_values(given, "--set").items():
        name, point, key = text.partition(".")
        if not point or not key:
            raise UsageError(
                f"--set {text}={value} is not NAME.KEY=VALUE", "e.g. --set character-swap.edits=2"
            )
        options.setdefault(name, {})[key] = value
    return options
