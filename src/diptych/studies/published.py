"""The papers' numbers as data: every printed cell with what it was measured on.

One TOML file per paper in ``papers/``; ``sd`` are printed deviations, ``variance`` printed variances. A
value ``"-"`` is not printed, ``"?"`` cannot be read for sure in the text the file was made from; neither
becomes a cell. ``"<1"`` and ``">300"`` are printed bounds. A row that is quoted beside several evaluations
has a list of them in ``on``.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from diptych.core.errors import StorageError, UnknownNameError

TOLERANCE = 0.05
"""Relative distance within which a number counts as reproduced, unless a table says otherwise."""

_ABSENT = ("-", "?")
_CHOSEN = {"first": "the first of each image", "random": "one of each image at random"}
_SEVERAL = ("captions", "reranked", "sessions", "categories")


@dataclass(frozen=True)
class Paper:
    """Who printed it.

    Attributes:
        key: the file's name, the first part of its studies' names.
        title, authors, venue: as on its first page.
        notes: what a reader of all its tables should know.
    """

    key: str
    title: str
    authors: str
    venue: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvaluatedOn:
    """What a printed number was measured on.

    Attributes:
        key: what the file calls it.
        dataset: name of the collection, or of the log.
        split: part of it.
        images: how many; 0 of a log.
        captions: how many; several where a paper leaves open which, empty of a log.
        protocol: how the part was cut into galleries, or a log into sessions.
        positives: ``own``, a collection's captions, or the name of further judgements (``cxc``).
        encoder: the encoder whose rows were measured, where a table has several; empty else.
        by: who measured, where a table quotes others' numbers beside its own; empty else.
        chosen: which captions of each image: ``all``, the ``first``, or one at ``random``.
        reranked: how many candidates per query a matching head scored again; several where a paper leaves
            open which, empty for none.
        unranked: what became of the others, as :mod:`diptych.evaluation.reranking` calls it; empty
            where so many were scored again that it makes no difference.
        centric: what the pictures show, as the paper says: ``scene``, ``object``, or nothing.
        sessions: of a log, how many; several where a paper leaves open which, empty of a collection.
        products: of a catalogue, how many in all; 0 of anything else.
        categories: of a catalogue, how many ask; several where rows are of several settings.
    """

    key: str
    dataset: str
    split: str
    images: int = 0
    captions: tuple[int, ...] = ()
    protocol: str = "full"
    positives: str = "own"
    encoder: str = ""
    by: str = ""
    chosen: str = "all"
    reranked: tuple[int, ...] = ()
    unranked: str = ""
    centric: str = ""
    sessions: tuple[int, ...] = ()
    products: int = 0
    categories: tuple[int, ...] = ()

    def describe(self) -> str:
        """One line."""
        more = "" if self.positives == "own" else f", positives {self.positives}"
        more += f", rows of {self.encoder}" if self.encoder else ""
        more += "" if self.chosen == "all" else f", {_CHOSEN[self.chosen]}"
        more += f", {' or '.join(map(str, self.reranked))} candidates re-ranked" if self.reranked else ""
        more += f" (unranked: {self.unranked})" if self.unranked else ""
        extent = extent_of(self.images, self.captions, self.sessions, self.products, self.categories)
        return f"{self.dataset} {self.split}: {extent}{self.protocol}{more}"


def extent_of(
    images: int,
    captions: Sequence[int],
    sessions: Sequence[int],
    products: int = 0,
    categories: Sequence[int] = (),
) -> str:
    """How much was measured, as the beginning of a phrase: pictures and captions, sessions of a log, products and
    categories of a catalogue, or nothing."""
    if any(sessions):
        return f"{either(sessions)} sessions, "
    if products:
        return f"{products:,} products, {either(categories)} categories, "
    return f"{images:,} images, {either(captions)} captions, " if images or any(captions) else ""


def either(counts: Sequence[int]) -> str:
    """``"25,000 or 25,010"``."""
    return " or ".join(f"{count:,}" for count in counts)


@dataclass(frozen=True)
class Cell:
    """One printed number.

    Attributes:
        paper, table, page: where it is printed; page None where the text at hand has none.
        row: the row's number or words in the table.
        column: e.g. ``i2t R@1``.
        on: what it was measured on.
        value: as printed, shares of recalls in per cent.
        sd: the standard deviation; where a variance is printed, its root.
        spread: what is printed beside it: a deviation over ``seeds`` or ``batches``, a ``variance`` over
            seeds, or ``none``.
        runs: how many runs the value is a mean of.
        tolerance: relative distance within which it counts as reproduced.
        printed_spread: the number that stands behind ±.
        rounding: half a unit of the last digit where values are so small that it matters: what would be
            printed alike counts as reproduced.
        bound: ``<`` or ``>`` where a bound is printed instead of a number; empty else.
    """

    paper: str
    table: str
    page: int | None
    row: str
    column: str
    on: EvaluatedOn
    value: float
    sd: float | None
    spread: Literal["seeds", "variance", "batches", "none"]
    runs: int
    tolerance: float
    printed_spread: float | None = None
    rounding: float = 0.0
    bound: Literal["", "<", ">"] = ""

    def within(self, value: float) -> bool:
        """Whether a value is on the side of a printed bound that it says; False without one."""
        return {"": False, "<": value < self.value, ">": value > self.value}[self.bound]

    @property
    def seed_sd(self) -> float | None:
        """The standard deviation over seeds; None where none is known."""
        return self.sd if self.spread in ("seeds", "variance") else None


@dataclass(frozen=True)
class PublishedRow:
    """One printed row.

    Attributes:
        row: its number or words in the table.
        config: the study's row that is trained for it; None for a row quoted from elsewhere.
        label: what stands in its first columns.
        on: what it was measured on.
        cells: by column.
        each: the single runs behind it, by column, where the table prints them.
    """

    row: str
    config: str | None
    label: str
    on: EvaluatedOn
    cells: dict[str, Cell]
    each: tuple[dict[str, float], ...] = ()


@dataclass(frozen=True)
class PublishedTable:
    """One printed table.

    Attributes:
        paper: who printed it.
        name: e.g. ``table-1``.
        title: its caption in few words.
        page: where, when known.
        columns: in order.
        rows: in order.
        notes: what a reader should know: cells that cannot be read, conventions.
        inconsistent: (row, column, what does not add up).
        spread: what stands behind ±, as of :class:`Cell`.
    """

    paper: Paper
    name: str
    title: str
    page: int | None
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    notes: tuple[str, ...] = ()
    inconsistent: tuple[tuple[str, str, str], ...] = ()
    spread: str = "none"

    def of(self, config: str, key: str) -> PublishedRow | None:
        """The row printed for a study's row on ``key``, the first where there are several."""
        return next((row for row in self.rows if row.config == config and row.on.key == key), None)

    @property
    def evaluated_on(self) -> list[EvaluatedOn]:
        """What its rows were measured on, in order of first appearance."""
        return list({row.on.key: row.on for row in self.rows}.values())


def published_papers() -> list[str]:
    """Papers whose numbers are here."""
    folder = resources.files("diptych.studies") / "papers"
    names = (file.name for file in folder.iterdir() if file.name.endswith(".toml"))
    return sorted(name.removesuffix(".toml") for name in names if not name.startswith("_"))


@cache
def document(paper: str) -> dict[str, Any]:
    """Read a paper's file."""
    if paper not in (*published_papers(), "_recipes"):
        raise UnknownNameError("published paper", paper, published_papers())
    file = resources.files("diptych.studies") / "papers" / f"{paper}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def published_tables(paper: str) -> list[str]:
    """Names of a paper's tables, in order."""
    return [table["name"] for table in document(paper)["tables"]]


@cache
def published_table(paper: str, name: str) -> PublishedTable:
    """A table of a paper."""
    whole = document(paper)
    tables = {table["name"]: table for table in whole["tables"]}
    if name not in tables:
        raise UnknownNameError(f"table of {paper}", name, tables)
    table = tables[name]
    evaluations = {key: _evaluation(key, values) for key, values in whole["evaluations"].items()}
    about = whole["paper"]
    source = Paper(paper, about["title"], about["authors"], about["venue"], tuple(about.get("notes", ())))
    columns = tuple(table["columns"])
    rows = []
    for given in table["rows"]:
        label = f"{paper} {name}, row {given['row']}"
        spread_kind = table.get("spread", "none")
        is_variance = spread_kind == "variance"
        values = given["values"]
        spreads = given.get("variance" if is_variance else "sd", [None] * len(columns))
        if len(values) != len(columns) or len(spreads) != len(columns):
            raise StorageError(
                f"{label}: {len(columns)} columns, {len(values)} values, {len(spreads)} spreads"
            )
        each = tuple(dict(zip(columns, run, strict=True)) for run in given.get("each", ()))
        for key in [given["on"]] if isinstance(given["on"], str) else given["on"]:
            on = evaluations[key]
            cells = {
                column: Cell(
                    paper=paper,
                    table=name,
                    page=table.get("page"),
                    row=given["row"],
                    column=column,
                    on=on,
                    value=_number(value),
                    sd=None if spread is None else math.sqrt(spread) if is_variance else float(spread),
                    spread=spread_kind,
                    runs=table.get("runs", 1),
                    tolerance=table.get("tolerance", TOLERANCE),
                    printed_spread=None if spread is None else float(spread),
                    rounding=table.get("rounding", 0.0),
                    bound=_bound(value),
                )
                for column, value, spread in zip(columns, values, spreads, strict=True)
                if value not in _ABSENT
            }
            text = given.get("label", "")
            rows.append(PublishedRow(given["row"], given.get("config"), text, on, cells, each))
    return PublishedTable(
        paper=source,
        name=name,
        title=table["title"],
        page=table.get("page"),
        columns=columns,
        rows=tuple(rows),
        notes=tuple(table.get("notes", ())),
        inconsistent=tuple((one["row"], one["column"], one["note"]) for one in table.get("inconsistent", ())),
        spread=table.get("spread", "none"),
    )


def _evaluation(key: str, given: dict[str, Any]) -> EvaluatedOn:
    values: dict[str, Any] = {
        name: tuple(value) if name in _SEVERAL else value for name, value in given.items()
    }
    return EvaluatedOn(key=key, **values)


def _number(given: float | str) -> float:
    return float(given.lstrip("<>")) if isinstance(given, str) else float(given)


def _bound(given: float | str) -> Literal["", "<", ">"]:
    if isinstance(given, str):
        return "<" if given.startswith("<") else ">"
    return ""
