"""A known table of whole sessions: its columns, what is to be predicted, and what gives it away."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import TextIO

from diptych.commerce.purchase_intent.features.column_features import ColumnKind
from diptych.core.errors import DataError
from diptych.core.registry import Registry


@dataclass(frozen=True)
class SessionTable:
    """One format.

    Attributes:
        name: e.g. ``uci-shoppers``.
        description: one line.
        label: the column that says whether something was bought: true or false.
        columns: name → ``number``, or ``text`` for categories; in order, without the label.
        leaking: columns that know the outcome, and why; they are left out unless they are asked for.
        notes: what a reader of results has to know.
    """

    name: str
    description: str
    label: str
    columns: Mapping[str, ColumnKind]
    leaking: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def recognises(self, header: list[str]) -> bool:
        """Whether a file with this first line is of the format: it has all columns, in whatever order."""
        return {self.label, *self.columns} <= set(header)


SESSION_TABLES: Registry[SessionTable] = Registry(
    "table of sessions", "diptych.commerce.purchase_intent.features.whole.formats"
)
"""All formats; each is declared in a file of its own."""


@contextmanager
def open_table(file: Path) -> Iterator[TextIO]:
    """The text of a CSV file, packed with gzip or not."""
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rt", encoding="utf-8-sig", newline="") as text:
            yield text
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file} cannot be read: {error}", "give a CSV file in UTF-8") from None


def read_header(file: Path) -> list[str]:
    """Names of columns, in order."""
    with open_table(file) as text:
        return [name.strip() for name in next(csv.reader(text), [])]


def recognise_session_table(file: Path) -> SessionTable:
    """The format of a file, by its header."""
    header = read_header(file)
    for known in SESSION_TABLES:
        if known.recognises(header):
            return known
    shown = shorten(", ".join(header), 120, placeholder=" …")
    raise DataError(
        f"{file} is no known table of whole sessions (columns: {shown or 'none'})",
        f"known: {', '.join(SESSION_TABLES.names())}; a log of events is imported first: diptych intent ingest",
    )
