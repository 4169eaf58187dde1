"""Declarations of perturbations: name, what is changed, what it needs, and whether meaning stays.

Adding one is one function in a file of :mod:`diptych.analysis.perturbations.kinds`, decorated with :func:`registering`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from PIL.Image import Image

from diptych.analysis.perturbations.caption import Caption
from diptych.core.draws import Draws
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.options import Options, parse_values
from diptych.core.reading import read_toml
from diptych.core.registry import Registry
from diptych.core.table import Table
from diptych.metrics.ground_truth import Direction

DECLARED: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_name("declared.toml"))
GROUPS: Mapping[str, str] = DECLARED.pop("groups")  # the kinds of change
_CHANGES_MEANING = ("word order", "meaning")
_FIELDS = ("group", "description", "source", "suite", "needs")


class NoOptions(Options):
    """Options of a perturbation; this one has none."""


@dataclass(frozen=True)
class Perturbation:
    direction: ClassVar[Direction]  # of the queries that it changes

    name: str  # as it is requested and printed
    description: str  # one line of what it changes
    group: str  # one of GROUPS
    source: str  # where its definition comes from
    # Whether the changed item still describes what it described. Where it does, a good model does not care; where it
    # does not, a good model prefers the original.
    keeps_meaning: bool
    options: type[Options] = NoOptions  # the model of its options; their defaults are what is run
    version: int = 1  # raised when its output changes, so that finished stress runs are recomputed

    def __post_init__(self) -> None:
        if self.group not in GROUPS:
            raise UnknownNameError("group of perturbations", self.group, GROUPS)


@dataclass(frozen=True)
class TextPerturbation(Perturbation):
    """A change of a caption.

    ``apply`` goes from a caption, its draws and the options to the changed text; it raises ``Unchanged`` where
    there is nothing to change. A text equal to the caption counts as unchanged too.
    """

    direction: ClassVar[Direction] = "t2i"

    apply: Callable[[Caption, Draws, Any], str] = field(kw_only=True, repr=False)
    needs: frozenset[str] = frozenset()  # "tags" and "wordnet", where it looks at them
    # the same as the published code did it, from a caption, the seed and the options; None where nothing was published
    published: Callable[[Caption, int, Any], str] | None = field(default=None, repr=False)
    suite: bool = False  # whether it is among the thesis's thirteen


@dataclass(frozen=True)
class PicturePerturbation(Perturbation):
    """A change of an image: from an upright RGB image, its draws and the options to the changed one, RGB."""

    direction: ClassVar[Direction] = "i2t"

    apply: Callable[[Image, Draws, Any], Image] = field(kw_only=True, repr=False)


PERTURBATIONS: Registry[Perturbation] = Registry(
    "perturbation", "diptych.analysis.perturbations.kinds", "diptych.perturbations"
)
F = TypeVar("F", bound=Callable[..., Any])


def registering(
    kind: type[TextPerturbation] | type[PicturePerturbation], name: str, **declared: Any
) -> Callable[[F], F]:
    """Register the decorated function; what ``declared.toml`` has of its name need not be given."""
    given = {key: value for key, value in DECLARED.get(name, {}).items() if key in _FIELDS} | declared
    given.setdefault("keeps_meaning", given["group"] not in _CHANGES_MEANING)
    if "needs" in given:
        given["needs"] = frozenset(given["needs"])

    def add(apply: F) -> F:
        PERTURBATIONS.add(kind(name, apply=apply, **given))
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
        raise UsageError("no perturbation was requested", "for example all, thesis, typos")
    return [one for one in every if one.name in chosen]


def perturbation_tables() -> list[Table]:
    columns, tables = ("perturbation", "what it changes", "meaning stays", "options"), []
    for group, what in GROUPS.items():
        rows = []
        for one in (one for one in PERTURBATIONS if one.group == group):
            values = {key: field.default for key, field in one.options.model_fields.items()}
            given = [
                f"{key}={f'{value:.4g}' if isinstance(value, float) else value}"
                for key, value in values.items()
            ]
            rows.append((one.name, one.description, "yes" if one.keeps_meaning else "no", " ".join(given)))
        tables += [Table.of(f"{group}: {what}", "", columns, rows)] if rows else []
    return tables


def options_of(perturbation: Perturbation, given: Mapping[str, Any] | None = None) -> Options:
    return perturbation.options.read(dict(given or {}), perturbation.name)


def options_by_name(given: Iterable[str]) -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = {}
    for text, value in parse_values(given, "--set").items():
        name, _, key = text.partition(".")
        if not key:
            fix = "e.g. --set character-swap.edits=2"
            raise UsageError(f"--set {text}={value} is not NAME.KEY=VALUE", fix)
        options.setdefault(name, {})[key] = value
    return options
