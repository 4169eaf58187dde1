"""Rows of a merchant feed, whatever file it is in: column → its values, by the names of Google Merchant Center."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from diptych.core.errors import DataError
from diptych.core.reading import beginning_of, file_errors, open_bytes
from diptych.data.lines import DELIMITERS, DelimitedTable, plain_column
from diptych.data.products import split_path
from diptych.data.taxonomy.tree import SEPARATOR

# XML feeds, RSS or Atom, item by item; a document that declares anything of its own is refused.
#
# Without a document type there are no entities but XML's five, so nothing expands and nothing outside is read.

_ITEMS = ("item", "entry")
_BLOCK = 1 << 16
_MAX_ITEM = 1 << 22
"""Characters of an item; longer ones (4 Mi) are refused."""
_MAX_DEPTH = 32


class _Items:
    """What the parser has found so far: whole items, and the one that it is in."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.done: list[tuple[int, dict[str, list[str]]]] = []
        self._way: list[str] = []
        self._item: dict[str, list[str]] | None = None
        self._line = self._size = 0
        self._texts: list[str] = []
        self._parts: list[str] = []

    @property
    def where(self) -> str:
        return f"{self.name}, line {self.parser.CurrentLineNumber}"

    def _refuse(self, *_: object) -> None:
        raise DataError(
            f"{self.where}: the document declares a type or entities of its own, which feeds do not need",
            "a declaration may unpack to anything or read other files: take it out",
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        self._way.append(name)
        if len(self._way) > _MAX_DEPTH:
            raise DataError(f"{self.where}: elements are nested more than {_MAX_DEPTH} deep", "it is no feed")
        if name in _ITEMS and self._item is None:
            self._item, self._line, self._size = {}, self.parser.CurrentLineNumber, 0
        elif self._item is not None:
            self._texts = []
            if self._depth == 1:
                self._parts = []
            self._grow(len(name) + sum(map(len, attributes.values())))
            if name == "link" and attributes.get("href"):
                self._item.setdefault("link", []).append(attributes["href"])

    @property
    def _depth(self) -> int:
        """Return how far below the item."""
        place = next(place for place, name in enumerate(self._way) if name in _ITEMS)
        return len(self._way) - 1 - place

    def _text(self, text: str) -> None:
        if self._item is not None:
            self._grow(len(text))
            self._texts.append(text)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > _MAX_ITEM:
            raise DataError(
                f"{self.name}: the item of line {self._line} is longer than {_MAX_ITEM:,} characters",
                "fetch the file again",
            )

    def _end(self, tag: str) -> None:
        if self._item is not None:
            depth, name = self._depth, self._way[-1]
            if depth == 0:
                self.done.append((self._line, self._item))
                self._item = None
            elif depth == 2:  # what has parts, such as a detail's section, name and value
                self._parts.append("".join(self._texts).strip())
            elif depth == 1:
                value = ":".join(self._parts) if self._parts else "".join(self._texts)
                if value.strip():
                    self._item.setdefault(name, []).append(value.strip())
            self._texts = []
        self._way.pop()


def feed_items(file: Path) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """Yield the line in which an item begins, and its elements: name without namespace → their texts."""
    items, given = _Items(file.name), 0
    try:
        with file_errors(file, DataError), open_bytes(file) as handle:
            while block := handle.read(_BLOCK):
                items.parser.Parse(block, False)
                given += len(block)
                if given - items.parser.CurrentByteIndex > _MAX_ITEM + _BLOCK:  # a tag or comment without end
                    raise DataError(f"{items.where} goes on without end", "fetch the file again")
                yield from items.done
                items.done.clear()
            items.parser.Parse(b"", True)
            yield from items.done
    except expat.ExpatError as error:
        raise DataError(
            f"{items.where} is no XML: {expat.ErrorString(error.code)}", "fetch the file again"
        ) from None


FeedRow = tuple[str, dict[str, list[str]]]
"""Where a row is, and its values."""

_START = 1 << 16
_FEED = re.compile(r"<(?:\w+:)?(?:rss|feed|rdf)\b", re.IGNORECASE)


def _start(file: Path) -> str:
    return beginning_of(file, _START).lstrip("\ufeff \t\r\n")


def is_xml(file: Path) -> bool:
    """Return whether the feed is in XML: whether it begins so, or its name ends so."""
    return _start(file).startswith("<") or file.name.lower().removesuffix(".gz").endswith(".xml")


def is_xml_feed(file: Path) -> bool:
    """Return whether a file begins as RSS or Atom does."""
    start = _start(file)
    return start.startswith("<") and _FEED.search(start) is not None


def feed_columns(file: Path) -> set[str]:
    """Return the columns of a table, by their plain names; empty where it is none. Cheap: the beginning is read."""
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
    """Yield the rows of a feed, one at a time.

    Args:
        file: CSV, TSV or XML (RSS, Atom), plain or gzipped.
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
    """Return the values of a field that may hold several: parted by commas, in double quotes where they have commas."""
    try:
        return [
            value.strip() for value in next(csv.reader([text], skipinitialspace=True), []) if value.strip()
        ]
    except csv.Error:
        return [text.strip()]


def paths_in(text: str, separator: str = SEPARATOR) -> list[tuple[str, ...]]:
    """Return the category paths of a field: ``"Books > Sports,Books > Business"`` are two.

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
    """Return the text parted where a comma, blanks and the first path's root stand."""
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
    """Return the text parted at commas between two paths, each with a separator of its own."""
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
