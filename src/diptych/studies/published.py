"""The papers' numbers as data: every printed cell with what it was measured on, and references to printed rows.

One TOML file per paper in ``papers/``, see docs/studies.md; ``sd`` are printed deviations, ``variance`` variances.

``PAPER:TABLE:ROW`` refers to a row, with ``@EVALUATION`` where it was printed for several: for example
``reproducibility:table-2.1:Repr. X-VLM, Flickr30k`` or ``d2s:table-3.1:COTS (5.3M)@coco-blip``.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from diptych.core.errors import StorageError, UnknownNameError, UsageError
from diptych.data.known import known_by_name
from diptych.evaluation.printed import Printed, Target, as_target, cell_parts
from diptych.metrics.measuring import Measure, measure
from diptych.studies.verdict import Measured

_FOLDER = resources.files("diptych.studies") / "papers"
_ABSENT = ("-", "?")
_CHOSEN = {"first": "the first of each image", "random": "one of each image at random"}
_OF_CELLS = ("spread", "runs", "tolerance", "rounding")  # keys of a table that its cells have
_EXAMPLE = "reproducibility:table-2.1:Repr. X-VLM, COCO"


@dataclass(frozen=True)
class Paper:
    """Who printed it."""

    key: str  # the file's name, the first part of its studies' names
    title: str
    authors: str
    venue: str
    notes: tuple[str, ...] = ()  # on all of its tables


@dataclass(frozen=True)
class EvaluatedOn(Measured):
    """What a printed number was measured on."""

    key: str = ""  # of the paper's file
    encoder: str = ""  # whose embeddings were measured, where a table has several
    by: str = ""  # who measured, where a table quotes others' numbers too
    readings: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # counts that a paper leaves open

    def counts(self, name: str) -> tuple[int, ...]:
        """Return how many there are, by every reading of the paper."""
        return self.readings.get(name) or super().counts(name)

    def describe(self) -> str:
        """Return one line."""
        more = "" if self.positives == "own" else f", positives {self.positives}"
        more += f", rows of {self.encoder}" if self.encoder else ""
        more += "" if self.chosen == "all" else f", {_CHOSEN[self.chosen]}"
        more += f", {self.number('reranked')} candidates re-ranked" if self.reranked else ""
        more += f" (unranked: {self.unranked})" if self.unranked else ""
        extent = f"{self.extent}, " if self.extent else ""
        return f"{self.dataset} {self.split}: {extent}{self.protocol}{more}"


@dataclass(frozen=True)
class Cell:
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
        """Return whether a value is on the side that a printed bound says; False without one."""
        return {"": False, "<": value < self.value, ">": value > self.value}[self.bound]

    @property
    def sd(self) -> float | None:
        """The standard deviation; where a variance is printed, its root."""
        is_variance = self.printed_spread is not None and self.spread == "variance"
        return math.sqrt(self.printed_spread or 0.0) if is_variance else self.printed_spread

    @property
    def seed_sd(self) -> float | None:
        """The standard deviation over seeds; None where none is known."""
        return None if self.spread == "batches" else self.sd


@dataclass(frozen=True)
class PublishedRow:
    """One printed row."""

    row: str  # its number or words in the table
    config: str | None  # the study's row that is trained for it; None for a row quoted from elsewhere
    label: str  # what stands in its first columns
    on: EvaluatedOn
    cells: dict[str, Cell]  # by column
    where: str = ""  # paper, table and row
    each: tuple[dict[str, float], ...] = ()  # single runs by column, where they are printed


@dataclass(frozen=True)
class PublishedTable:
    """One printed table."""

    paper: Paper
    name: str
    title: str  # the caption in few words
    page: int | None  # None where the text at hand has none
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    notes: tuple[str, ...] = ()  # cells that cannot be read, conventions
    inconsistent: tuple[tuple[str, str, str], ...] = ()  # row, column, what does not add up
    spread: str = "none"  # as of its cells

    def of(self, config: str, key: str) -> PublishedRow | None:
        """Return the row printed for a study's row on ``key``, the first where there are several."""
        return next((row for row in self.rows if row.config == config and row.on.key == key), None)

    @property
    def evaluated_on(self) -> list[EvaluatedOn]:
        """What its rows were measured on, in order of first appearance."""
        return list({row.on.key: row.on for row in self.rows}.values())


def published_papers() -> list[str]:
    """Return the papers whose numbers are here."""
    names = (file.name for file in _FOLDER.iterdir())
    return sorted(
        name.removesuffix(".toml") for name in names if name.endswith(".toml") and not name.startswith("_")
    )


@cache
def document(paper: str) -> dict[str, Any]:
    """Read a paper's file."""
    if paper not in (*published_papers(), "_recipes"):
        raise UnknownNameError("published paper", paper, published_papers())
    return tomllib.loads((_FOLDER / f"{paper}.toml").read_text(encoding="utf-8"))


def published_tables(paper: str) -> list[str]:
    """Return the names of a paper's tables, in order."""
    return [table["name"] for table in document(paper)["tables"]]


@cache
def published_table(paper: str, name: str) -> PublishedTable:
    """Return a table of a paper."""
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
        paper=Paper(paper, **whole["paper"] | {"notes": tuple(whole["paper"].get("notes", ()))}),
        name=name,
        title=table["title"],
        page=table.get("page"),
        columns=tuple(table["columns"]),
        rows=tuple(row for given in table["rows"] for row in _rows(paper, table, given, evaluations)),
        notes=tuple(table.get("notes", ())),
        inconsistent=tuple((one["row"], one["column"], one["note"]) for one in table.get("inconsistent", ())),
        spread=table.get("spread", "none"),
    )


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
            cells[column] = Cell(f"{row} {column}", number, bound, spread, **of_cells)
    each = tuple(dict(zip(columns, run, strict=True)) for run in given.get("each", ()))
    for key in [given["on"]] if isinstance(given["on"], str) else given["on"]:
        yield PublishedRow(
            row, given.get("config"), given.get("label", ""), evaluations[key], cells, where, each
        )


# References --------------------------------------------------------------------------------------


def published_row(reference: str) -> PublishedRow:
    """Return the row that a reference names; upper and lower case are the same."""
    paper, name, row = [*(part.strip() for part in reference.split(":", 2)), "", ""][:3]
    papers = published_papers()
    fix = f"PAPER:TABLE:ROW, e.g. {_EXAMPLE}; papers: {', '.join(papers)}"
    paper = _known("published paper", paper, papers, f"{reference!r} names no paper", fix)
    names = published_tables(paper)
    fix = f"PAPER:TABLE:ROW; tables of {paper}: {', '.join(names)}"
    name = _known(f"table of {paper}", name, names, f"{reference!r} names no table", fix)
    listed, rows = {}, published_table(paper, name).rows
    for one in rows:
        label = f" ({one.label})" if one.label and one.label != one.row else ""
        listed[one.row] = one.row + label + ("" if retrieval_cells(one) else " [no measure of retrieval]")
    key = ""
    if "@" in row and row.casefold() not in map(str.casefold, listed):
        row, key = (part.strip() for part in row.rsplit("@", 1))
    fix = f"rows of {paper}:{name}: {'; '.join(listed.values())}"
    row = _known(f"row of {paper} {name}", row, list(listed), f"{reference!r} names no row", fix)
    found = {one.on.key: one for one in rows if one.row == row}
    first, *others = found
    missing = f"{paper} {name} has row {row!r} for {len(found)} evaluations: {', '.join(found)}"
    fix = f"name one, e.g. {paper}:{name}:{row}@{first}"
    key = key if key or others else first
    return found[_known(f"evaluation of {paper} {name}, row {row},", key, list(found), missing, fix)]


def _known(kind: str, given: str, known: Sequence[str], missing: str, fix: str) -> str:
    """Return the known name that a given one is, but for upper and lower case."""
    if not given:
        raise UsageError(missing, fix)
    found = [name for name in known if name.casefold() == given.casefold()]
    if not found:
        has_comma = any("," in name for name in known)
        raise UnknownNameError(kind, given, [f"“{name}”" for name in known] if has_comma else known)
    return found[0]


def retrieval_cells(row: PublishedRow) -> dict[str, Cell]:
    """Return the cells of a row that are measures of retrieval, by column."""
    found = {}
    for column, cell in row.cells.items():
        try:
            cell_parts(column)
        except UsageError:
            continue
        if not cell.bound:
            found[column] = cell
    return found


def target_of(row: PublishedRow) -> tuple[Target, tuple[str, ...]]:
    """Return the row's cells that are measures of retrieval, and the columns that are left out.

    A table prints its recalls with the same decimals, and a file drops zeros at the end: all recalls have
    those of the recall with the most, one at least, and so on for every other measure. Precisions that a table
    prints as fractions of 1 beside recalls in per cent are given in per cent, as everything else.
    """
    values = {column: cell.value for column, cell in retrieval_cells(row).items()}
    if not values:
        raise UsageError(
            f"row {row.row!r} prints no measure of retrieval: {', '.join(row.cells) or 'nothing'}",
            "choose another row",
        )
    kinds = {column: cell_parts(column)[1] for column in values}
    recall = max((values[column] for column, kind in kinds.items() if kind.startswith("R@")), default=0.0)
    cells = dict(as_target(values).cells)
    for column, kind in kinds.items():
        number, member = cells[column], None if kind == "rsum" else measure(kind)
        if kind == "rsum" or kind.startswith("R@"):
            cells[column] = Printed(number.value, max(1, number.decimals))
        elif isinstance(member, Measure) and member.kind == "share" and number.value <= 1 < recall:
            cells[column] = Printed(round(100 * number.value, 6), max(0, number.decimals - 2))
    runs = next(iter(row.cells.values())).runs
    return Target(cells, row.where, runs), tuple(column for column in row.cells if column not in values)


def published_target(reference: str, decimals: int | None) -> tuple[Target, EvaluatedOn, list[str]]:
    """Return the cells of the row that a reference names, what they were measured on, and lines about both."""
    row = published_row(reference)
    target, left_out = target_of(row)
    lines = [f"printed: {target.label}; {row.on.describe()}"]
    lines += [f"left out, no measures of retrieval: {', '.join(left_out)}"] if left_out else []
    return as_target(target, decimals), row.on, lines


def other_data(on: EvaluatedOn, given: Mapping[str, tuple[Mapping[str, Any], int]]) -> tuple[str, ...]:
    """Return warnings where the data at hand, metadata and images by name, are not those of the printed numbers."""
    printed = f"{on.dataset} {on.split} ({on.images:,} images)"
    others = {
        name: f"{metadata['dataset']} {metadata['split']} ({images:,} images)"
        for name, (metadata, images) in given.items()
        if _dataset(str(metadata["dataset"])) != _dataset(on.dataset)
    }
    listed = "; ".join(others.values())
    if len(others) == len(given):
        return (
            f"OTHER DATA: printed of {printed}, computed from {listed}; what follows says which protocols would give "
            "such numbers on these data, not why they were printed of those",
        )
    if others:
        return (f"OTHER DATA: printed of {printed}; {', '.join(others)} is {listed}",)
    if not any(images == on.images for _, images in given.values()):
        sizes = ", ".join(f"{images:,} ({name})" for name, (_, images) in given.items())
        return (f"Printed of {on.images:,} images; given are {sizes}: recall falls as a gallery grows",)
    return ()


def _dataset(name: str) -> str:
    known = known_by_name(name)
    return name.casefold() if known is None else known.name.casefold()
