"""Declarations of index engines, and their registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.options import parameter
from diptych.core.registry import Registry
from diptych.data.source import OutOption, SplitOption
from diptych.encoders.embeddings import Embeddings, SparseEmbeddings

if TYPE_CHECKING:
    from diptych.index.contract import Index

OptionValue = int | float | str | bool

# What an index is built of: dense rows or bags of weighted terms.
AnyEmbeddings = Embeddings | SparseEmbeddings

# (n, width) rows: a float32 array for dense engines, a ``scipy.sparse.csr_array`` for sparse ones.
Vectors = Any

# The metadata of one item.
Record = Mapping[str, Any]

# What every index knows: ``encoder``, ``width``, ``options`` and ``about``, as its constructor takes them.
Known = dict[str, Any]


class IndexOptions(SplitOption, OutOption):
    """Options of indexing."""

    engine: str | None = parameter(
        None,
        "How it is searched; exact for dense embeddings, inverted for sparse ones.",
        names="diptych.index:ENGINES",
    )
    option: list[str] = parameter([], "KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")
    of: Literal["images", "texts"] = parameter("images", "What is found.")


@dataclass(frozen=True)
class Option:
    """One choice an engine offers; its type is its default's."""

    name: str  # the keyword of ``build``, and of ``search`` where ``per_search``
    default: OptionValue
    meaning: str  # one line, as help texts print it
    minimum: float | None = None  # the smallest number allowed
    per_search: bool = False  # whether ``search`` takes it too, for that search only
    choices: tuple[str, ...] = ()  # the words that it can be

    def check(self, value: Any) -> Any:
        """Return ``value`` if it is one this option can have."""
        if self.choices and value not in self.choices:
            raise UnknownNameError(self.name, value, self.choices)
        expected = type(self.default)
        if expected is float and type(value) is int:
            value = float(value)
        wrong = "" if type(value) is expected else f"not of type {expected.__name__}"
        if not wrong and self.minimum is not None and not value >= self.minimum:
            wrong = f"below {self.minimum}"
        if wrong:
            fix = f"{self.name}: {self.meaning} (default {self.default!r})"
            raise UsageError(f"index option {self.name}={value!r} is {wrong}", fix)
        return value


@dataclass(frozen=True)
class Engine:
    """A way of searching, declared."""

    name: str  # the word for it in calls, command lines and saved headers
    description: str  # one line of what it is and when to choose it
    index: type[Index]
    approximate: bool  # whether hits can be missed; such an engine reports its recall when it is built
    options: tuple[Option, ...] = ()
    vectors: str = "dense"  # or "sparse": what ``build``, ``add`` and ``search`` take
    can_add: bool = True  # whether items can be added after the build
    can_delete: bool = True
    filters: bool = False  # whether ``build`` takes ``records``, items' metadata, and ``search`` a ``where``
    two_stages: bool = False  # whether ``search`` takes ``first``, the vectors of its first stage

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return what ``search`` takes besides options."""
        return ("where",) * self.filters + ("first",) * self.two_stages

    def resolve(self, given: Mapping[str, Any]) -> dict[str, OptionValue]:
        """Every option's value: the given ones checked, the others at their default."""
        return {option.name: option.default for option in self.options} | self._checked(given, self.options)

    def resolve_search(self, stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, OptionValue]:
        """The values one search runs with: the stored ones, and those ``given`` to it on top."""
        offered = tuple(option for option in self.options if option.per_search)
        return {option.name: stored[option.name] for option in offered} | self._checked(given, offered)

    def _checked(self, given: Mapping[str, Any], offered: tuple[Option, ...]) -> dict[str, OptionValue]:
        known = {option.name: option for option in offered}
        for name in given:
            if name not in known:
                raise UnknownNameError(f"option of index engine {self.name}", name, known)
        return {name: known[name].check(value) for name, value in given.items()}


ENGINES: Registry[Engine] = Registry("index engine", "diptych.index.engines")
