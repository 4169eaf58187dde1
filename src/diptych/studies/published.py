"""The papers' numbers as data: every printed cell with what it was measured on, and when it counts as reproduced.

The rules of verdicts are those of docs/explanation/studies.md, "Verdicts": within 5 % of the printed value
(Hendriksen et al., 2023), or within two standard deviations over seeds (Bleeker and de Rijke, 2022).
"""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from importlib.metadata import EntryPoint
from typing import Any, Literal

from diptych.core.errors import NumericalError, StorageError, UnknownNameError, UsageError
from diptych.core.registry import plug_ins
from diptych.studies.evidence import Evidence, Figure, side_by_side

Verdict = Literal[
    "reproduced", "close", "not reproduced", "other data", "other training", "not run", "not printed"
]

_FOLDER = resources.files("diptych.studies") / "papers"
_ABSENT = ("-", "?")
_CHOSEN = {"first": "the first of each image", "random": "one of each image at random"}
_OF_CELLS = ("spread", "runs", "tolerance", "rounding")  # keys of a table that its cells have
_OF_TABLE = ("name", "title", "page", "columns", "notes", "spread")
_CLOSE = 2.0  # times a cell's tolerance
_FLOAT = 1e-9  # 5 % of 42.4 is 2.12, and 2.12 apart is within it whatever floats make of it
_NAMED = ("dataset", "split", "protocol", "positives", "chosen")
_COUNTED = ("images", "products", "captions", "sessions", "categories", "reranked")
_WORDS = {"chosen": "captions", "reranked": "candidates re-ranked"}


@dataclass(frozen=True)
class Paper:
    """A paper: its authors and venue."""

    key: str  # the file's name, the first part of its studies' names
    title: str
    authors: str
    venue: str
    notes: tuple[str, ...] = ()  # on all of its tables


@dataclass(frozen=True)
class Measured:
    """The data of a measured number: a collection, a shop's log or a catalogue."""

    dataset: str
    split: str
    images: int = 0
    captions: int = 0
    protocol: str = "full"  # how the split was cut into galleries, or a log into sessions
    positives: str = "own"  # the collection's captions, or the name of further judgements (``cxc``)
    chosen: str = "all"  # captions of each image: ``all``, the ``first``, or one at ``random``
    reranked: int = 0  # candidates per query that a matching head scored again
    unranked: str = ""  # what became of the others, as :mod:`diptych.evaluation.reranking` calls it
    centric: str = ""  # what images show: ``scene``, ``object``, or nothing
    sessions: int = 0  # of a log
    products: int = 0  # of a catalogue
    categories: int = 0  # of a catalogue: queries

    def counts(self, name: str) -> tuple[int, ...]:
        return (getattr(self, name),)

    def number(self, name: str) -> str:
        """Return how many there are, as ``"25,000 or 25,010"``."""
        return " or ".join(f"{count:,}" if count else "no" for count in self.counts(name))

    @property
    def extent(self) -> str:
        """Return how much was measured; empty where nothing was."""
        kinds = (("sessions",), ("products", "categories"), ("images", "captions"))
        counted = next((names for names in kinds if any(getattr(self, name) for name in names)), ())
        return ", ".join(f"{self.number(name)} {name}" for name in counted)

    @property
    def task(self) -> str:
        """Return the task that all rows of a table have to share."""
        chosen = "" if self.chosen == "all" else f" ({self.chosen})"
        return ", ".join(part for part in (self.split, self.extent + chosen, self.protocol) if part)


@dataclass(frozen=True)
class EvaluatedOn(Measured):
    """The data and task of a printed number."""

    key: str = ""  # of the paper's file
    encoder: str = ""  # whose embeddings were measured, where a table has several
    by: str = ""  # who measured, where a table quotes others' numbers too
    readings: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # counts that a paper leaves open

    def counts(self, name: str) -> tuple[int, ...]:
        return self.readings.get(name) or super().counts(name)

    def describe(self) -> str:
        more = "" if self.positives == "own" else f", positives {self.positives}"
        more += f", rows of {self.encoder}" if self.encoder else ""
        more += "" if self.chosen == "all" else f", {_CHOSEN[self.chosen]}"
        more += f", {self.number('reranked')} candidates re-ranked" if self.reranked else ""
        more += f" (unranked: {self.unranked})" if self.unranked else ""
        extent = f"{self.extent}, " if self.extent else ""
        return f"{self.dataset} {self.split}: {extent}{self.protocol}{more}"


@dataclass(frozen=True)
class PrintedCell:
    """One printed number."""

    name: str  # row and column
    value: float  # as printed, recalls in per cent
    bound: Literal["", "<", ">"] = ""  # printed instead of a number
    printed_spread: float | None = None  # behind ±
    spread: Literal["seeds", "variance", "batches", "none"] = "none"  # what it is; the variance is over seeds
    runs: int = 1  # that the value is a mean of
    tolerance: float = 0.05  # relative distance within which it counts as reproduced
    rounding: float = 0.0  # half a unit of the last digit, where values are so small that it matters

    def within(self, value: float) -> bool:
        return {"": False, "<": value < self.value, ">": value > self.value}[self.bound]

    @property
    def sd(self) -> float | None:
        found = self.printed_spread
        return math.sqrt(found) if found is not None and self.spread == "variance" else found

    @property
    def seed_sd(self) -> float | None:
        return None if self.spread == "batches" else self.sd


@dataclass(frozen=True)
class PublishedRow:
    """One printed row."""

    row: str  # its number or words in the table
    config: str | None  # the study's row that is trained for it; None for a row quoted from elsewhere
    label: str  # what stands in its first columns
    on: EvaluatedOn
    cells: dict[str, PrintedCell]  # by column
    where: str = ""  # paper, table and row
    each: tuple[dict[str, float], ...] = ()  # single runs by column, where they are printed

    @property
    def name(self) -> str:
        return self.config or self.row


@dataclass(frozen=True)
class PublishedTable:
    """One printed table."""

    paper: Paper
    name: str
    title: str  # the caption in few words
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    page: int | None = None  # None where the text at hand has none
    notes: tuple[str, ...] = ()  # cells that cannot be read, conventions
    inconsistent: tuple[tuple[str, str, str], ...] = ()  # row, column, what does not add up
    spread: str = "none"  # as of its cells

    def of(self, config: str, key: str) -> PublishedRow | None:
        """Return the row printed for a study's row on ``key``, the first where there are several."""
        return next((row for row in self.rows if row.config == config and row.on.key == key), None)

    @property
    def evaluated_on(self) -> list[EvaluatedOn]:
        return list({row.on.key: row.on for row in self.rows}.values())


_FILES: dict[str, Any] = {
    file.name.removesuffix(".toml"): file for file in _FOLDER.iterdir() if file.name.endswith(".toml")
}


def _load(entry: EntryPoint) -> None:
    """Add a plug-in's paper, once its studies can be made: the entry point has its name, and the package its file."""
    from diptych.studies.study import PaperFile

    if entry.name in _FILES:
        raise UsageError(f"there is a paper {entry.name!r} already", "give it another name")
    _FILES[entry.name] = resources.files(entry.load()) / f"{entry.name}.toml"
    try:
        PaperFile(entry.name)
    except BaseException:
        del _FILES[entry.name]
        raise


@cache
def published_papers() -> list[str]:
    for _ in plug_ins("diptych.papers", load=_load):
        pass
    return sorted(name for name in _FILES if not name.startswith("_"))


@cache
def document(paper: str) -> dict[str, Any]:
    if paper not in _FILES and paper not in published_papers():
        raise UnknownNameError("published paper", paper, published_papers())
    return tomllib.loads(_FILES[paper].read_text(encoding="utf-8"))


def published_tables(paper: str) -> list[str]:
    return [table["name"] for table in document(paper)["tables"]]


@cache
def published_table(paper: str, name: str) -> PublishedTable:
    whole = document(paper)
    tables = {table["name"]: table for table in whole["tables"]}
    if name not in tables:
        raise UnknownNameError(f"table of {paper}", name, tables)
    table, evaluations = tables[name], {}
    for key, given in whole["evaluations"].items():
        readings = {count: tuple(values) for count, values in given.items() if isinstance(values, list)}
        first = {count: values[0] for count, values in readings.items()}
        evaluations[key] = EvaluatedOn(**given | first, key=key, readings=readings)
    return PublishedTable(
        Paper(paper, **_tuples(whole["paper"])),
        rows=tuple(row for given in table["rows"] for row in _rows(paper, table, given, evaluations)),
        inconsistent=tuple((one["row"], one["column"], one["note"]) for one in table.get("inconsistent", ())),
        **_tuples({key: table[key] for key in _OF_TABLE if key in table}),
    )


def _tuples(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}


def _rows(
    paper: str, table: dict[str, Any], given: dict[str, Any], evaluations: Mapping[str, EvaluatedOn]
) -> Iterator[PublishedRow]:
    """Yield a row of the file once for each of its evaluations."""
    row, columns, values = given["row"], table["columns"], given["values"]
    where = f"{paper} {table['name']}, row {row}"
    spreads = given.get("variance" if table.get("spread") == "variance" else "sd", [None] * len(columns))
    if len(values) != len(columns) or len(spreads) != len(columns):
        raise StorageError(f"{where}: {len(columns)} columns, {len(values)} values, {len(spreads)} spreads")
    of_cells = {key: table[key] for key in _OF_CELLS if key in table}
    cells = {}
    for column, value, spread in zip(columns, values, spreads, strict=True):
        if value not in _ABSENT:
            bound: Any = value[0] if isinstance(value, str) else ""
            number = float(str(value).removeprefix(bound))
            cells[column] = PrintedCell(f"{row} {column}", number, bound, spread, **of_cells)
    each = tuple(dict(zip(columns, run, strict=True)) for run in given.get("each", ()))
    for key in [given["on"]] if isinstance(given["on"], str) else given["on"]:
        config, label = given.get("config"), given.get("label", "")
        yield PublishedRow(row, config, label, evaluations[key], cells, where, each)


def printed_evidence(tables: Sequence[PublishedTable], *keys: str) -> Evidence:
    """Return the numbers, not bounds, that tables print for some evaluations; of a cell printed twice, the first."""
    figures: dict[str, dict[str, Figure]] = {}
    rows = [row for table in tables for row in table.rows]
    for row in [row for key in keys for row in rows if row.on.key == key]:
        columns = figures.setdefault(row.name, {})
        for column, cell in row.cells.items():
            if not cell.bound:
                columns.setdefault(column, Figure(cell.value, cell.seed_sd, cell.runs))
    return Evidence(figures, exact=True)


def printed_by(tables: Sequence[PublishedTable], by: str) -> Evidence:
    """Return what tables print as measured by ``by``, on all its collections side by side."""
    on = [one for table in tables for one in table.evaluated_on if one.by == by]
    each = {
        name: printed_evidence(tables, *(one.key for one in on if one.dataset == name))
        for name in dict.fromkeys(one.dataset for one in on)
    }
    return replace(side_by_side(each, {one.dataset: one.centric for one in on}), exact=True)


def same_evaluation(measured: Measured, printed: EvaluatedOn) -> list[str]:
    """Return what keeps two numbers from being of the same thing, one phrase each."""
    measured = replace(measured, dataset=measured.dataset.lower())
    differences = []
    for name in _NAMED:
        if (have := getattr(measured, name)) != (want := getattr(printed, name)):
            differences.append(f"{_WORDS.get(name, name)} {have}, not {want}")
    for name in _COUNTED:
        if getattr(measured, name) not in printed.counts(name):
            expected = printed.number(name) if getattr(printed, name) else "none"
            differences.append(f"{measured.number(name)} {_WORDS.get(name, name)}, not {expected}")
    if printed.unranked and measured.unranked not in ("", printed.unranked):
        differences.append(f"what is not re-ranked: {measured.unranked}, not {printed.unranked}")
    return differences


def cell_verdict(
    measured: Sequence[float], cell: PrintedCell
) -> Literal["reproduced", "close", "not reproduced"]:
    """Judge one value per seed by a printed cell of the same evaluation."""
    if not measured:
        raise UsageError("a verdict on no value", "run at least one seed")
    for value in measured:
        if not math.isfinite(value):
            raise NumericalError(f"{cell.name} was measured as {value}", "look at its run")
    figure = Figure.of(measured)
    distance, allowed = abs(figure.mean - cell.value), cell.tolerance * abs(cell.value)
    spreads = [2 * sd for sd in (figure.sd, cell.seed_sd) if sd is not None]
    if cell.within(figure.mean) or distance <= max(allowed, cell.rounding, *spreads) + _FLOAT:
        return "reproduced"
    return "close" if distance <= _CLOSE * allowed + _FLOAT else "not reproduced"
