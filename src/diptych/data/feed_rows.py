"""Rows of a merchant feed, whatever file it is in: column → its values, by the names of Google Merchant Center."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.delimited import DELIMITERS, DelimitedTable, plain_column
from diptych.data.feed_xml import feed_items
from diptych.data.json_files import beginning_of
from diptych.data.products import split_path
from diptych.data.taxonomy.tree import SEPARATOR

__all__ = ["FeedRow", "feed_columns", "feed_rows", "is_xml", "is_xml_feed", "paths_in", "values_in"]

FeedRow = tuple[str, dict[str, list[str]]]
"""Where a row is, and its values."""

_START = 1 << 16
_FEED = re.compile(r"<(?:\w+:)?(?:rss|feed|rdf)\b", re.IGNORECASE)


def _start(file: Path) -> str:
    return beginning_of(file, _START).lstrip("\ufeff \t\r\n")


def is_xml(file: Path) -> bool:
    """Whether the feed is in XML: whether it begins so, or its name ends so."""
    return _start(file).startswith("<") or file.name.lower().removesuffix(".gz").endswith(".xml")


def is_xml_feed(file: Path) -> bool:
    """Whether a file begins as RSS or Atom does."""
    start = _start(file)
    return start.startswith("<") and _FEED.search(start) is not None


def feed_columns(file: Path) -> set[str]:
    """The columns of a table, by their plain names; empty where it is none. Cheap: the beginning is read."""
    header = next(iter(_start(file).splitlines()), "")
    delimiter = max(DELIMITERS.values(), key=header.count)
    return {plain_column(name.strip('" ')) for name in header.split(delimiter)} - {""}


def feed_rows(
    file: Path,
    counts: Counter[str],
    encoding: str = "utf-8",
    delimiter: str | None = None,
    quotes: bool = True,
    skip_bad_lines: bool = False,
) -> Iterator[FeedRow]:
    """The rows of a feed, one at a time.

    Args:
        file: CSV, TSV or XML (RSS, Atom), plain or gzipped.
        counts: what was left out is added to it.
        encoding: of a table's text.
        delimiter: of a table; recognised when not given.
        quotes: whether a table's fields may stand in double quotes.
        skip_bad_lines: leave out rows with more or fewer fields than columns instead of failing.

    Raises:
        DataError: the file cannot be read, or a row has more or fewer fields; the message names its line.
    """
    if is_xml(file):
        for line, item in feed_items(file):
            yield f"{file.name}, line {line}", {plain_column(name): texts for name, texts in item.items()}
        return
    table = DelimitedTable(file, encoding, delimiter, quotes)
    names = [plain_column(name) for name in table.columns]
    for line, fields in table.rows():
        if len(fields) != len(names):
            if skip_bad_lines:
                counts["lines with more or fewer fields than columns left out"] += 1
                continue
            raise DataError(
                f"{table.where(line)} has {len(fields)} fields, the header has {len(names)}",
                "correct the line, or leave such lines out with --reader-option skip_bad_lines=true",
            )
        values: dict[str, list[str]] = {}
        for name, field in zip(names, fields, strict=True):
            if name and field.strip():
                values.setdefault(name, []).append(field.strip())
        yield table.where(line), values


def values_in(text: str) -> list[str]:
    """The values of a field that may hold several: parted by commas, in double quotes where they have commas."""
    try:
        return [
            value.strip() for value in next(csv.reader([text], skipinitialspace=True), []) if value.strip()
        ]
    except csv.Error:
        return [text.strip()]


def paths_in(text: str, separator: str = SEPARATOR) -> list[tuple[str, ...]]:
    """The category paths of a field: ``"Books > Sports,Books > Business"`` are two.

    Names hold commas as well, so a comma ends a path only where no blank follows it and what follows has a separator of
    its own, or where what follows begins with the same root; or each path stands in double quotes.
    """
    if text.startswith('"'):
        parts = values_in(text)
    elif "," not in text or separator not in text:
        parts = [text]
    else:
        parts = [part for one in _at_root(text, separator) for part in _at_commas(one, separator)]
    return [path for part in parts if (path := split_path(part, separator))]


def _at_root(text: str, separator: str) -> list[str]:
    """The text parted where a comma, blanks and the first path's root stand."""
    root = text[: text.index(separator)] + separator
    parts, begin = [], 0
    at = text.find(root, 1)
    while at > 0:
        end = at
        while end > begin and text[end - 1].isspace():
            end -= 1
        if begin < end < at and text[end - 1] == ",":
            parts.append(text[begin : end - 1])
            begin = at
        at = text.find(root, at + 1)
    return [*parts, text[begin:]]


def _at_commas(text: str, separator: str) -> list[str]:
    """The text parted at commas between two paths, each with a separator of its own."""
    first, *others = text.split(",")
    parts, current, is_path = [], [first], separator in first
    for other in others:
        own = separator in other
        if own and is_path and not other[0].isspace():
            parts.append(",".join(current))
            current = [other]
        else:
            current.append(other)
            is_path = is_path or own
    return [*parts, ",".join(current)]
