"""A shop's product feed, as Google Merchant Center and its like take it: ``id``, ``title`` and more in CSV, TSV or XML.

A product may have several ``product_type``: in columns or elements of that name, or in one field, parted by commas; all
are kept. ``google_product_category`` is a path, or the id of one, which a taxonomy's file turns into a path.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat

from diptych.commerce.taxonomy import read_taxonomy
from diptych.commerce.taxonomy.tree import SEPARATOR
from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.reading import beginning_of, file_errors, open_bytes
from diptych.data.captions import check_shares
from diptych.data.collection import Collection
from diptych.data.lines import DELIMITERS, DelimitedTable, plain_column
from diptych.data.products import split_path
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.readers.gathering import ProductGathering, check_missing, picture_folder, short_text

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


_ATTRIBUTES = ("brand", "color", "colour", "size", "material", "pattern", "gender", "age_group")
_COLUMNS = {"product_type": "product_type", "google": "google_product_category"}
_OWN = {"id", "title", "attributes", "picture_address", "category_path", "category_paths", "product"}
_ENDINGS = (".csv", ".tsv", ".txt", ".xml")
_TELLING = {"link", "image_link", "product_type", "google_product_category"}
_FIRST = 1000
_CANDIDATES = 20  # a folder of more such files is no shop's feed, and none of them is opened


def _looks_so(file: Path) -> bool:
    if not file.is_file() or not file.name.lower().removesuffix(".gz").endswith(_ENDINGS):
        return False
    if is_xml(file):
        return is_xml_feed(file)
    columns = feed_columns(file)
    return {"id", "title"} <= columns and bool(columns & _TELLING)


def _feeds(folder: Path) -> list[Path]:
    named = (file for file in folder.iterdir() if file.name.lower().removesuffix(".gz").endswith(_ENDINGS))
    candidates = list(islice(named, _CANDIDATES + 1))
    return sorted(filter(_looks_so, candidates)) if len(candidates) <= _CANDIDATES else []


def _file(path: Path) -> Path:
    if path.is_file():
        return path
    found = _feeds(path) if path.is_dir() else []
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise DataError(f"one product feed expected in {path}, found: {names}", "name it with --data")
    return found[0]


def _details(values: Sequence[str]) -> dict[str, list[str]]:
    """``section:name:value`` of each detail, the section left out."""
    found: dict[str, list[str]] = {}
    for value in values:
        for one in values_in(value):
            parts = [short_text(part) for part in one.split(":")]
            name, said = (
                (parts[0], parts[1:]) if len(parts) == 2 else (parts[1], parts[2:]) if parts[2:] else ("", [])
            )
            if name:
                found.setdefault(name, []).append(":".join(said))
    return found


def _record(values: Mapping[str, Sequence[str]], keep: Sequence[str]) -> dict[str, Any]:
    attributes = {name: [short_text(one) for one in values[name]] for name in _ATTRIBUTES if name in values}
    for name, said in _details(values.get("product_detail", ())).items():
        attributes.setdefault(name, []).extend(said)
    more = [one for field in values.get("additional_image_link", ()) for one in values_in(field)]
    return {
        "title": short_text(values.get("title", [""])[0]),
        "attributes": attributes,
        "picture_address": next(iter(values.get("image_link", ())), ""),
        "further_picture_addresses": tuple(more),
        **{name: short_text(values[name][0]) for name in keep if name in values},
    }


class _Places:
    """From what a row says of its category to paths."""

    def __init__(self, kind: str, separator: str, taxonomy: Path | str | None, counts: Counter[str]) -> None:
        self._column, self._separator, self._counts = _COLUMNS[kind], separator, counts
        self._paths: dict[str, tuple[str, ...]] | None = None
        if taxonomy is not None:
            self._paths = {code: path for path, code in read_taxonomy(taxonomy).tree.codes.items()}
            if not self._paths:
                raise DataError(f"{taxonomy} has no ids", "give the file of the taxonomy with ids")

    def of(self, values: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
        """Return the paths of a row, each once."""
        found: dict[tuple[str, ...], None] = {}
        for text in values.get(self._column, ()):
            if self._column == _COLUMNS["google"]:
                found |= dict.fromkeys(self._google(text))
            else:
                found |= dict.fromkeys(paths_in(text, self._separator))
        return tuple(found)

    def _google(self, text: str) -> list[tuple[str, ...]]:
        if not text.isdigit():
            return paths_in(text)[:1]
        if self._paths is None:
            self._counts[
                "category ids without a path: name the taxonomy with --reader-option taxonomy=FILE"
            ] += 1
        elif text in self._paths:
            return [self._paths[text]]
        else:
            self._counts["category ids that the taxonomy does not have"] += 1
        return []


def read_feed(
    path: Path | str,
    images: Path | str | None = None,
    categories: Literal["product_type", "google"] | None = None,
    taxonomy: Path | str | None = None,
    separator: str = SEPARATOR,
    keep: str = "",
    missing: Literal["none", "error", "skip"] = "none",
    duplicates: Literal["error", "first", "merge"] = "error",
    validation: float = 0.15,
    test: float = 0.15,
    delimiter: str | None = None,
    quotes: bool = True,
    encoding: str = "utf-8",
    skip_bad_lines: bool = False,
) -> Collection:
    """Read a product feed as products with a title, attributes and category paths.

    Args:
        duplicates: a product's id in a second row is an error, the row is left out, or its category paths join the
            first's.
    """
    if categories not in (None, *_COLUMNS):
        raise UsageError(f"categories is {categories!r}", f"one of {', '.join(_COLUMNS)}")
    if not separator.strip():
        raise UsageError(f"separator is {separator!r}", "what stands between two names, e.g. ' > ' or '/'")
    check_missing(missing)
    check_shares(validation, test)
    path = Path(path)
    file = _file(path)
    if not is_xml(file) and "id" not in (columns := feed_columns(file)):
        raise UsageError(f"{file} has no column id", f"its columns: {', '.join(sorted(columns)) or 'none'}")
    gathering = ProductGathering(duplicates)
    how: dict[str, Any] = {
        "encoding": str(encoding),
        "delimiter": delimiter,
        "quotes": quotes,
        "skip_bad_lines": skip_bad_lines,
    }
    if categories is None:
        first = islice(feed_rows(file, Counter(), **how), _FIRST)
        categories = "product_type" if any("product_type" in values for _, values in first) else "google"
    kept = [plain_column(one) for one in str(keep).split(",") if one.strip()]
    if set(kept) & _OWN:
        raise UsageError(
            f"keep is {keep!r}", f"other columns than {', '.join(sorted(_OWN))}, which records have"
        )
    places = _Places(categories, separator, taxonomy, gathering.counts)
    for where, values in track(feed_rows(file, gathering.counts, **how), "reading products", unit="products"):
        record = _record(values, kept) | {"category_paths": places.of(values)}
        group = short_text(next(iter(values.get("item_group_id", ())), ""))
        gathering.add(" ".join(next(iter(values.get("id", ())), "").split()), record, where, group)
    return gathering.collection(
        Path(file.name.removesuffix(".gz")).stem,
        picture_folder(images, file.parent),
        missing=missing,
        validation=validation,
        test=test,
        notes=(f"{len(gathering):,} products; categories are of the column {_COLUMNS[categories]}",),
    )


def _recognises(path: Path) -> bool:
    return bool(_feeds(path)) if path.is_dir() else _looks_so(path)


READERS.add(
    Reader(
        "feed",
        "a shop's product feed (CSV, TSV, RSS or Atom): id, title, image_link, product_type, brand, color, …",
        _recognises,
        read_feed,
        {
            "images": "folder of pictures (default: images/ beside the feed)",
            "categories": "product_type or google (default: product types, where there are any)",
            "taxonomy": "file with the paths of category ids",
            "separator": "between the names of a product type (default: ' > ')",
            "keep": "further columns that records keep, e.g. price,link (default: none)",
            "missing": "none, error or skip: products without a picture (default: none, kept without one)",
            "duplicates": "error, first or merge: an id in a second row (default: error)",
            "validation": "share of products in val (default: 0.15)",
            "test": "share of products in test (default: 0.15)",
            "delimiter": "comma, tab, semicolon or bar (recognised)",
            "quotes": "whether fields may stand in double quotes (default: true)",
            "encoding": "of a table (default: utf-8)",
            "skip_bad_lines": "leave out and count rows with more or fewer fields instead of failing",
        },
    )
)
