"""Studies: the tables and figures of papers, as their files in ``papers/`` declare them.

docs/explanation/studies.md, "Adding a study", describes such a file. ``each = { v = [...] }`` makes one row or claim
of every combination; ``{v}`` in its texts is the value.
"""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, reduce
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.registry import Registry
from diptych.studies.claims import Claim, combinations
from diptych.studies.evidence import Evidence, members
from diptych.studies.published import (
    EvaluatedOn,
    Paper,
    PublishedRow,
    PublishedTable,
    document,
    printed_by,
    printed_evidence,
    published_papers,
    published_table,
)

# Ends the name of a value that was counted as the paper counts, where that is not the right way.
PUBLISHED = "|published"
SettingName = Literal["published", "paper", "data", "quick"]
AS_PAPER: tuple[SettingName, ...] = ("published", "paper")  # settings whose numbers can get a verdict

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One thing whose numbers a table holds."""

    name: str  # of its folder; --rows takes it, and the paper's numbers
    label: str
    kind: str = "recipe"  # a name of diptych.studies.sources.SOURCES
    options: Mapping[str, Any] = field(default_factory=dict)  # dotted keys of its recipe, head, search …
    without: tuple[str, ...] = ()  # keys of its recipe that it does not have
    recipe: str = "model"  # which of a setting's recipes
    base: str = ""  # a row that it starts from, made once, with seed 0
    targets: str = ""  # a row, made with seed 0, whose text side makes its latent targets
    given: str = ""  # the key by which a user may give it: --set KEY=…
    regions: bool = False  # takes region features instead of images
    extra: str = ""  # why it is run although the paper does not print it
    home: str = ""  # the study in whose folder it is made: the first of the paper that has it


@dataclass(frozen=True)
class Setting:
    """The way in which all rows of a study are made and measured."""

    description: str = ""
    time: str = ""  # of all of it: a few words, and after a semicolon on what, and of what
    memory: str = ""  # of a GPU; empty where none is used
    recipes: Mapping[str, str] = field(default_factory=dict)  # a row's recipe → one of the paper's file
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # kind of row → dotted options
    # Pattern of ROW or ROW@DATASET → dotted keys and values that only this setting needs.
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)  # pattern of rows → why they cannot be run
    seeds: tuple[int, ...] = (0,)
    rows: tuple[str, ...] = ()  # run without --rows; all when empty
    # Recipes that start from a pretrained encoder: --set fine_tune=ENCODER, or their base where it has a recipe.
    fine_tunes: tuple[str, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)  # key of a row that may be given → an encoder
    collections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # name → data section
    measure: Mapping[str, Any] = field(default_factory=dict)  # what --set measure.KEY changes
    generated: Mapping[str, Any] | None = None  # options of the log or products that are generated
    deviations: tuple[str, ...] = ()  # what is not as the paper says it

    @property
    def duration(self) -> str:
        return self.time.partition(";")[0]

    def changes_of(self, row: str, dataset: str = "") -> dict[str, Any]:
        names = row, f"{row}@{dataset.lower()}"
        of_row = [values for pattern, values in self.changes.items() if fnmatch.filter(names, pattern)]
        return {key: value for values in of_row for key, value in values.items()}

    def why_not(self, row: str) -> str:
        return next((why for pattern, why in self.left_out.items() if fnmatch.fnmatchcase(row, pattern)), "")


@dataclass(frozen=True)
class Column:
    """One measured column."""

    name: str  # as published tables and measurements call it, e.g. i2t R@1
    decimals: int = 1
    short: str = ""  # printed in narrow tables
    logarithmic: bool = False  # on charts


@dataclass(frozen=True)
class Study:
    """One table or figure of a paper."""

    name: str  # PAPER.TABLE
    asks: str
    topic: str  # the question in a few words, for lists
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    published: tuple[PublishedTable, ...]  # its own table, then those whose rows its claims need too
    claims: tuple[Claim, ...]
    settings: Mapping[SettingName, Setting]
    measure: Mapping[str, Any]  # kind and options of diptych.studies.results.MEASURES
    bases: tuple[Row, ...] = ()  # rows that are made only because others start from them
    notes: tuple[str, ...] = ()  # where it differs from the paper, or the paper from its code
    further: str = ""  # MODULE:NAME of further tables and charts of the evidence
    figures: Mapping[str, Any] = field(default_factory=dict)  # what the file declares of them
    measured_by: tuple[str, ...] = ()  # keys of --set measure.KEY
    paths: tuple[str, ...] = ()  # further keys of --set whose values can be files or folders
    # Measured on several collections: evidence has a column ``COLLECTION COLUMN`` for each, and printed numbers
    # are distinguished by who measured them.
    several: bool = False
    of: Literal["collections", "log", "catalogue", "nothing"] = "collections"  # what it is run on
    ours: bool = False  # in no paper

    @property
    def description(self) -> str:
        return self.asks

    @property
    def paper(self) -> Paper:
        return self.published[0].paper

    @property
    def all_rows(self) -> tuple[Row, ...]:
        return *self.rows, *self.bases

    def row(self, name: str) -> Row:
        found = {row.name: row for row in self.all_rows}
        if name not in found:
            raise UnknownNameError(f"row of {self.name}", name, [row.name for row in self.rows])
        return found[name]

    def setting(self, name: SettingName) -> Setting:
        if name not in self.settings:
            raise UnknownNameError(f"setting of {self.name}", name, self.settings)
        return self.settings[name]

    def resolve(self, names: Sequence[str] | None) -> list[Row]:
        """Return rows by their names or the paper's numbers, in the table's order; all when not given."""
        if not names:
            return list(self.rows)
        known = {row.name: row.name for row in self.rows}
        for table in self.published:  # its own numbers go before another table's
            known = {one.row: one.config for one in table.rows if one.config in known} | known
        for name in names:
            if name not in known:
                raise UnknownNameError(f"row of {self.name}", name, known)
        chosen = {known[name] for name in names}
        return [row for row in self.rows if row.name in chosen]

    def row_folder(self, row: Row, folder: Path) -> Path:
        """Return where the runs of a row are: in the study's folder, or in its home, a folder next to that."""
        if row.home not in ("", self.name):
            base = folder if folder.name not in ("", "..") else folder.resolve()
            folder = base.parent / row.home
        return folder / "rows" / row.name

    def printed(self, row: str, key: str) -> PublishedRow | None:
        return next((found for table in self.published if (found := table.of(row, key)) is not None), None)

    def printed_on(self, dataset: str | None = None) -> list[EvaluatedOn]:
        """Return what its own table was measured on, of several collections all its tables; or on one dataset."""
        tables = self.published if self.several else self.published[:1]
        on = [one for table in tables for one in table.evaluated_on]
        return [one for one in on if dataset is None or one.dataset == dataset.lower()]

    def printed_evidence(self) -> dict[str, Evidence]:
        tables, own = self.published, [on for on in self.printed_on() if on.positives == "own"]
        if self.several:
            found = {on.by: printed_by(tables, on.by) for on in own}
            return {by: replace(one, sources=found) for by, one in found.items()}
        found, every = {}, [on for table in tables for on in table.evaluated_on]
        for on in every:  # with what is printed of the dataset's other splits
            others = [one.key for one in every if one.dataset == on.dataset and one.split != on.split]
            found[on.key] = printed_evidence(tables, on.key, *others)
        return {on.key: replace(found[on.key], sources=found) for on in own}


_VARIABLE = re.compile(r"\{(\w+)(?:\.(\w+))?\}")
_CLAIM = {"check": "checks", "in": "columns"}
_OF_CLAIMS = ("on", "about", "where", "in", "each", "measured")


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


def _declared(kind: type[T], given: Mapping[str, Any]) -> T:
    """Return a dataclass of what TOML says: lists are tuples, and one value may stand for a list of one."""
    types = {one.name: str(one.type) for one in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in types:
            raise UnknownNameError(f"key of a {kind.__name__.lower()} of a study", key, sorted(types))
        is_single = types[key].startswith("tuple") and not isinstance(value, list)
        values[key] = (value,) if is_single else tuple(value) if isinstance(value, list) else value
    return kind(**values)


class PaperFile:
    """A paper's file, and the studies that it declares."""

    def __init__(self, paper: str) -> None:
        self.paper, self.file = paper, document(paper)
        self.lists: dict[str, list[Any]] = self.file.get("lists", {})
        defaults = self.file.get("defaults", {})
        studies = {name: {**defaults, **given} for name, given in self.file.get("studies", {}).items()}
        self.rows: dict[str, Row] = {}
        for name, options in self.file.get("rows", {}).items():
            given = {"name": name, **options}
            for values in combinations(given.pop("each", {}), self.lists):
                declared = _declared(Row, _filled(given, values))
                self.rows[declared.name] = declared
        for study, given in studies.items():
            for row in (*self._rows(given["rows"]), *self._rows(given.get("bases", []))):
                if not row.home and row.kind != "log":  # counts of a log are kept by each study
                    self.rows[row.name] = replace(row, home=f"{paper}.{study}")
        self.studies = [self._study(name, given) for name, given in studies.items()]

    def _rows(self, patterns: Sequence[str]) -> list[Row]:
        """Return rows by their names, patterns and lists, in the order in which they are named."""
        found: dict[str, Row] = {}
        for pattern in (one for text in patterns for one in members(text, self.lists)):
            matching = [name for name in self.rows if fnmatch.fnmatchcase(name, pattern)]
            if not matching:
                raise StorageError(f"{self.paper}: no row is called {pattern}")
            found |= {name: self.rows[name] for name in matching}
        return list(found.values())

    def _setting(self, name: str, changes: Mapping[str, Any]) -> Setting:
        """Return a setting with what it inherits, and what a study changes of it."""
        given, like = dict(changes), changes.get("like", name)
        while like:
            values = self.file.get("settings", {}).get(like, {})
            given, like = _merged(values, given), values.get("like")
        given = {key: value for key, value in given.items() if key != "like" and value is not False}
        if "rows" in given:
            given["rows"] = [row.name for row in self._rows(given["rows"])]
        return _declared(Setting, given)

    def _claim(self, name: str, given: Any, shared: Mapping[str, Any]) -> Claim:
        options = {_CLAIM.get(key, key): value for key, value in {**shared, **_joined(given)}.items()}
        return _declared(Claim, {"name": name, "lists": self.lists, **options})

    def _study(self, name: str, given: Mapping[str, Any]) -> Study:
        shared = {key: given[key] for key in _OF_CLAIMS if key in given}
        changes, measure, notes = given.get("settings", {}), given["measure"], self.file.get("notes", {})
        printed = given.get("columns") or published_table(self.paper, name).columns
        columns = [{"name": one} if isinstance(one, str) else one for one in printed]
        tables = [one.rpartition(":") for one in given.get("published", [name])]
        declared = {
            "name": f"{self.paper}.{name}",
            "rows": self._rows(given["rows"]),
            "bases": self._rows(given.get("bases", [])),
            "columns": [
                Column(**{"decimals": given.get("decimals", 1), **column, "name": one})
                for column in columns
                for one in members(column["name"], self.lists)
            ],
            "published": [published_table(paper or self.paper, table) for paper, _, table in tables],
            "claims": [self._claim(key, one, shared) for key, one in given.get("claims", {}).items()],
            "settings": {
                key: self._setting(key, changes.get(key, {}))
                for key in self.file.get("settings", {})
                if key in get_args(SettingName) and changes.get(key) is not False
            },
            "figures": self.file.get("figures", {}).get(name, {}),
            "measure": {"kind": measure} if isinstance(measure, str) else measure,
            "notes": [notes.get(note.removeprefix("$"), note) for note in given.get("notes", [])],
        }
        rest = {key: value for key, value in given.items() if key not in (*_OF_CLAIMS, "decimals")}
        return _declared(Study, {**rest, **declared})


@cache
def recipe_values(study_paper: str, name: str) -> dict[str, Any]:
    """Return a recipe of a paper's file as TOML would have it, with what it inherits."""
    elsewhere, _, own = name.rpartition(":")
    paper = elsewhere or study_paper
    recipes = document(paper).get("recipes", {})
    if own not in recipes:
        raise UnknownNameError(f"recipe of {paper}", own, recipes)
    given = dict(recipes[own])
    like, without = given.pop("like", None), given.pop("without", [])
    inherited = {} if like is None else recipe_values(paper, like)
    return _merged({key: value for key, value in inherited.items() if key not in without}, given)


def _merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return two tables as one: of a key that both have, tables are merged and everything else is the second's."""
    found = dict(before)
    for key, value in after.items():
        both = isinstance(found.get(key), Mapping) and isinstance(value, Mapping)
        found[key] = _merged(found[key], value) if both else value
    return found


def _joined(given: Any) -> dict[str, Any]:
    """Return a claim that may be a list of tables, ``[{ text = … }, { check = … }]``: TOML breaks no single one."""
    return reduce(_merged, given) if isinstance(given, list) else given


def __getattr__(name: str) -> Any:
    """Load ``STUDIES``, all studies paper by paper, on first use."""
    if name != "STUDIES":
        raise AttributeError(name)
    found: Registry[Study] = Registry("study", __name__)  # it holds them itself
    for paper in published_papers():
        for study in PaperFile(paper).studies:
            found.add(study)
    globals()[name] = found
    return found
