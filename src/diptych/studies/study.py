"""Studies: the tables and figures of papers, as their files in ``papers/`` declare them.

A paper's file holds what it prints (:mod:`diptych.studies.published`), and what is run::

    [lists]                          names for ``$name`` in rows, columns and formulas
    [notes]                          notes that several studies share, by name
    [recipes.NAME]                   a recipe, ``like`` another one ``without`` some keys, and what is changed
    [settings.NAME]                  how all rows are trained and measured
    [rows.NAME]                      one thing that is trained, given or counted
    [defaults]                       what all studies of the file have
    [studies.NAME]                   which rows are measured how, and held against which printed tables; ``on``,
                                     ``about``, ``where``, ``in`` and ``each`` are those of its claims
    [studies.NAME.claims.NAME]       what the text says the numbers show

``each = { v = [...] }`` makes one row or claim of every combination; ``{v}`` in its texts is the value. Settings are

``published``
    what the authors ran, by their code, where that is not what the paper says;
``paper``
    the paper's own backbone, schedule and batches, for its own data;
``data``
    the same comparison with a schedule for any other data and a processor;
``quick``
    the same on generated data, in minutes.
"""

from __future__ import annotations

import fnmatch
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal

from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.registry import Registry
from diptych.studies.claims import Claim, combinations
from diptych.studies.formulas import members
from diptych.studies.published import (
    Paper,
    PublishedRow,
    PublishedTable,
    document,
    published_papers,
    published_table,
)

PUBLISHED = "|published"
"""Ends the name of a value that was counted as the paper counts, where that is not the right way."""

SettingName = Literal["published", "paper", "data", "quick"]
AS_PAPER: tuple[SettingName, ...] = ("published", "paper")
"""Settings whose numbers can get a verdict."""


@dataclass(frozen=True)
class Row:
    """One thing whose numbers a table holds.

    Attributes:
        name: of its folder, and what ``--rows`` calls it besides the paper's numbers.
        label: what reports call it.
        kind: how it is made: a name of :data:`diptych.studies.sources.SOURCES`.
        options: what sets it apart: dotted keys of its recipe, head, search or adaptation.
        without: keys of its recipe that it does not have.
        recipe: which of a setting's recipes it is trained by.
        base: another row that it starts from, made once, with seed 0.
        targets: another row, made with seed 0, whose text side makes its latent targets.
        given: the key by which a user may give it instead of having it trained (``--set KEY=…``).
        regions: whether it takes region features instead of pictures.
        extra: why it is there although the paper does not print it.
        home: the study in whose folder it is made: the first of the paper that has it.
    """

    name: str
    label: str
    kind: str = "recipe"
    options: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    recipe: str = "model"
    base: str | None = None
    targets: str = ""
    given: str = ""
    regions: bool = False
    extra: str = ""
    home: str = ""


@dataclass(frozen=True)
class Setting:
    """How all rows of a study are made and measured.

    Attributes:
        description: one line.
        time: how long all of it takes: a few words, and after a semicolon on what, and of what.
        memory: of a GPU that it needs; empty where none is used.
        recipes: a row's ``recipe`` → a recipe of the paper's file.
        options: kind of row → dotted options of all of its kind.
        changes: pattern of rows' names, or of ``ROW@DATASET`` → dotted keys and values that only this setting
            needs.
        left_out: pattern of rows' names → why they cannot be run like this.
        seeds: run when nobody says which.
        rows: run when nobody says which; all when empty.
        fine_tunes: recipes whose rows start from a pretrained encoder that a user may give
            (``--set fine_tune=ENCODER``); where the setting has no recipe for their base, must give.
        given: what is taken for a row that a user may give and has not given: its key → an encoder.
        collections: what is measured on when nobody says: a name → a recipe's data section.
        measure: how it is measured when nobody says (``--set measure.KEY=VALUE``).
        generated: options of the log or the products that are generated when nobody gives any.
        deviations: what is not as the paper says it, for ``published``.
    """

    description: str = ""
    time: str = ""
    memory: str = ""
    recipes: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    rows: tuple[str, ...] = ()
    fine_tunes: tuple[str, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    collections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    measure: Mapping[str, Any] = field(default_factory=dict)
    generated: Mapping[str, Any] | None = None
    deviations: tuple[str, ...] = ()

    @property
    def duration(self) -> str:
        """How long all of it takes, in a few words."""
        return self.time.partition(";")[0]

    def changes_of(self, row: str, dataset: str = "") -> dict[str, Any]:
        """Return what it changes of a row, on any data and on a dataset."""
        found: dict[str, Any] = {}
        for pattern, values in self.changes.items():
            if any(fnmatch.fnmatchcase(name, pattern) for name in (row, f"{row}@{dataset.lower()}")):
                found |= values
        return found

    def why_not(self, row: str) -> str | None:
        """Return why a row cannot be run like this; None where it can."""
        return next(
            (why for pattern, why in self.left_out.items() if fnmatch.fnmatchcase(row, pattern)), None
        )


@dataclass(frozen=True)
class Column:
    """One measured column.

    Attributes:
        name: as published tables and measurements call it, e.g. ``i2t R@1``.
        decimals: digits after the point.
        short: what narrow tables print.
        logarithmic: whether a chart of it needs a logarithmic axis.
    """

    name: str
    decimals: int = 1
    short: str = ""
    logarithmic: bool = False


@dataclass(frozen=True)
class Study:
    """One table or figure of a paper.

    Attributes:
        name: ``paper.table``.
        asks: what it asks, in one line.
        topic: the same in a few words, for lists.
        rows: what is measured, in the order of the table.
        bases: rows that are made only because others start from them.
        columns: what is measured of them.
        published: the printed table first, then tables whose rows its claims need too.
        claims: what the paper's text says the numbers show.
        settings: how it is run.
        recipes: of the paper, by name, without what is inherited.
        measure: ``KIND`` and options of :data:`diptych.studies.sources.MEASURES`.
        notes: where the study knowingly differs from the paper, or the paper from its code.
        further: ``MODULE:NAME`` of what makes tables and charts of the evidence besides.
        measured_by: what a user may set about measuring (``--set measure.KEY=VALUE``).
        paths: keys of ``--set`` whose values can be files or folders, besides those of recipes and given rows.
        several: whether its rows are measured on several collections side by side: evidence then has a
            column ``COLLECTION COLUMN`` for each, and the paper's numbers are told apart by who measured.
        of: what it is run on: ``collections``, a shop's ``log`` or ``catalogue``, or ``nothing``.
        ours: whether it is not in any paper.
    """

    name: str
    asks: str
    topic: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    published: tuple[PublishedTable, ...]
    claims: tuple[Claim, ...]
    settings: Mapping[SettingName, Setting]
    recipes: Mapping[str, Mapping[str, Any]]
    measure: Mapping[str, Any]
    bases: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    further: str = ""
    measured_by: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    several: bool = False
    of: Literal["collections", "log", "catalogue", "nothing"] = "collections"
    ours: bool = False

    @property
    def description(self) -> str:
        """For the registry: what it asks."""
        return self.asks

    @property
    def paper(self) -> Paper:
        """Who printed it."""
        return self.published[0].paper

    def row(self, name: str) -> Row:
        """Return a row or base by its name."""
        for row in (*self.rows, *self.bases):
            if row.name == name:
                return row
        raise UnknownNameError(f"row of {self.name}", name, [row.name for row in self.rows])

    def setting(self, name: SettingName) -> Setting:
        """Return a setting by its name."""
        if name not in self.settings:
            raise UnknownNameError(f"setting of {self.name}", name, self.settings)
        return self.settings[name]

    def resolve(self, names: Sequence[str] | None) -> list[Row]:
        """Return rows by their names or the paper's numbers, in the table's order; all when not given."""
        if not names:
            return list(self.rows)
        # The study's own table last: its numbers go before another's.
        tables = reversed(self.published)
        numbers = {row.row: row.config for table in tables for row in table.rows if row.config is not None}
        own = {row.name for row in self.rows}
        wanted = set()
        for name in names:
            config = name if name in own else numbers.get(name)
            if config not in own:
                known = [*own, *(number for number, config in numbers.items() if config in own)]
                raise UnknownNameError(f"row of {self.name}", name, known)
            wanted.add(config)
        return [row for row in self.rows if row.name in wanted]

    def printed(self, row: str, key: str) -> PublishedRow | None:
        """Return what the paper prints for a row on ``key``; the study's own table goes first."""
        found = (table.of(row, key) for table in self.published)
        return next((one for one in found if one is not None), None)

    def printed_keys(self, dataset: str | None = None) -> list[str]:
        """Return what the study's own table was measured on, of several collections all its tables; of one dataset
        where given."""
        tables = self.published if self.several else self.published[:1]
        on = [one for table in tables for one in table.evaluated_on]
        return [one.key for one in on if dataset is None or one.dataset == dataset.lower()]


# From a paper's file -----------------------------------------------------------------------------

_VARIABLE = re.compile(r"\{(\w+)(?:\.(\w+))?\}")
_CLAIM = {"check": "checks", "in": "columns"}


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return a value with ``{name}`` filled in; a text that is nothing else is the value itself."""
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole is None:
            return value.format(**values)
        return getattr(values[whole[1]], whole[2]) if whole[2] else values[whole[1]]
    if isinstance(value, Mapping):
        return {_filled(key, values): _filled(one, values) for key, one in value.items()}
    return [_filled(one, values) for one in value] if isinstance(value, list) else value


def _tuples(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a dataclass from TOML, whose lists are tuples here."""
    known = {one.name for one in fields(kind)}
    for key in given:
        if key not in known:
            raise UnknownNameError(f"key of a {kind.__name__.lower()} of a study", key, sorted(known))
    return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}


class _File:
    """A paper's file, read."""

    def __init__(self, paper: str) -> None:
        self.paper, self.whole = paper, document(paper)
        self.lists: dict[str, list[Any]] = self.whole.get("lists", {})
        own = self.whole.get("studies", {})
        self.rows = {
            row.name: row
            for name, given in self.whole.get("rows", {}).items()
            for row in self._row(name, given)
        }
        homes: dict[str, str] = {}
        for study, values in own.items():
            given = {**self.whole.get("defaults", {}), **values}
            for row in (*self._names(given.get("rows", [])), *self._names(given.get("bases", []))):
                homes.setdefault(row, f"{paper}.{study}")
        self.rows = {  # counts of a log are kept by each study
            name: replace(row, home="" if row.kind == "log" else homes.get(name, ""))
            for name, row in self.rows.items()
        }
        self.studies = [self._study(name, given) for name, given in own.items()]

    def _row(self, name: str, given: Mapping[str, Any]) -> Iterator[Row]:
        for values in combinations(given.get("each", {}), self.lists):
            own = _filled({key: value for key, value in given.items() if key != "each"}, values)
            named: dict[str, Any] = {"name": _filled(name, values), **own}
            yield Row(**_tuples(Row, {**named, "base": named.get("base") or None}))

    def _names(self, patterns: Sequence[str]) -> list[str]:
        """Return rows by their names, patterns and lists, in the order in which they are asked for."""
        found: dict[str, None] = {}
        for pattern in (one for text in patterns for one in members(text, self.lists)):
            there = [name for name in self.rows if fnmatch.fnmatchcase(name, pattern)]
            if not there:
                raise StorageError(f"{self.paper}: no row is called {pattern}")
            found |= dict.fromkeys(there)
        return list(found)

    def _setting(self, name: str, own: Mapping[str, Any]) -> Setting:
        """Return a setting with what it inherits, and what a study changes of it."""
        given, like = dict(own), own.get("like", name)
        while like:
            values = self.whole.get("settings", {}).get(like, {})
            given, like = _merged(values, given), values.get("like")
        given = {key: value for key, value in given.items() if key != "like" and value is not False}
        if "rows" in given:
            given["rows"] = self._names(given["rows"])
        return Setting(**_tuples(Setting, given))

    def _columns(self, given: Sequence[Any], decimals: int) -> Iterator[Column]:
        for one in given:
            about = {"name": one} if isinstance(one, str) else one
            for name in members(about["name"], self.lists):
                yield Column(**{"decimals": decimals, **about, "name": name})

    def _claim(self, name: str, given: Mapping[str, Any]) -> Claim:
        about: dict[str, Any] = {_CLAIM.get(key, key): value for key, value in given.items()}
        for key in ("checks", "columns"):
            if isinstance(about.get(key), str | Mapping):
                about[key] = [about[key]]
        return Claim(**_tuples(Claim, {"name": name, "lists": self.lists, **about}))

    def _study(self, name: str, given: Mapping[str, Any]) -> Study:
        about = {**self.whole.get("defaults", {}), **given}
        own = about.pop("settings", {})
        of_claims = {key: about.pop(key) for key in ("on", "about", "where", "in", "each") if key in about}
        known = [
            key for key in self.whole.get("settings", {}) if key in ("published", "paper", "data", "quick")
        ]
        shared = self.whole.get("notes", {})
        tables = about.pop("published", [name])
        measure, decimals = about.pop("measure"), about.pop("decimals", 1)
        return Study(
            **_tuples(Study, about)
            | {
                "name": f"{self.paper}.{name}",
                "rows": tuple(self.rows[row] for row in self._names(about["rows"])),
                "bases": tuple(self.rows[row] for row in self._names(about.get("bases", []))),
                "columns": tuple(self._columns(about["columns"], decimals)),
                "published": tuple(published_table(*self._table(table)) for table in tables),
                "claims": tuple(
                    self._claim(name, {**of_claims, **claim})
                    for name, claim in about.get("claims", {}).items()
                ),
                "settings": {
                    key: self._setting(key, own.get(key, {})) for key in known if own.get(key) is not False
                },
                "recipes": self.whole.get("recipes", {}),
                "measure": {"kind": measure} if isinstance(measure, str) else measure,
                "notes": tuple(shared.get(note.removeprefix("$"), note) for note in about.get("notes", [])),
            }
        )

    def _table(self, name: str) -> tuple[str, str]:
        paper, colon, table = name.rpartition(":")
        return (paper, table) if colon else (self.paper, table)


@cache
def recipe_values(study_paper: str, name: str) -> dict[str, Any]:
    """Return a recipe of a paper's file as TOML would have it, with what it inherits."""
    paper, _, own = name.rpartition(":")
    recipes = document(paper or study_paper).get("recipes", {})
    if own not in recipes:
        raise UnknownNameError(f"recipe of {paper or study_paper}", own, recipes)
    given = dict(recipes[own])
    like, without = given.pop("like", None), given.pop("without", [])
    before = {} if like is None else recipe_values(paper or study_paper, like)
    return _merged({key: value for key, value in before.items() if key not in without}, given)


def _merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return two tables as one: of a key that both have, tables are merged and everything else is the second's."""
    found = dict(before)
    for key, value in after.items():
        both = isinstance(found.get(key), Mapping) and isinstance(value, Mapping)
        found[key] = _merged(found[key], value) if both else value
    return found


def _load() -> Registry[Study]:
    found: Registry[Study] = Registry("study", __name__)  # it holds them itself
    for paper in published_papers():
        for study in _File(paper).studies:
            found.add(study)
    return found


def __getattr__(name: str) -> Any:
    """Load ``STUDIES``, all studies paper by paper, when it is first asked for."""
    if name != "STUDIES":
        raise AttributeError(name)
    globals()[name] = _load()
    return globals()[name]


def named_function(name: str) -> Any:
    """Return what ``MODULE:NAME`` is."""
    module, _, own = name.partition(":")
    return getattr(importlib.import_module(module), own)
