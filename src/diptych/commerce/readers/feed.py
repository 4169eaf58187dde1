"""A shop's product feed, as Google Merchant Center and its like take it: ``id``, ``title`` and more in CSV, TSV or XML.

A product may have several ``product_type``: in columns or elements of that name, or in one field, parted by commas; all
are kept. ``google_product_category`` is a path, or the id of one, which a taxonomy's file turns into a path.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, XMLPullParser

from diptych.commerce.taxonomy import SEPARATOR, read_taxonomy
from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.reading import beginning_of, file_errors, open_bytes
from diptych.data.collection import Collection
from diptych.data.lines import DelimitedTable, plain_column
from diptych.data.products import split_path
from diptych.data.readers.contract import choice, first_folder, listing, looks, matching, reader
from diptych.data.readers.products import Duplicates, Missing, ProductGathering, short_text

Row = tuple[str, dict[str, list[str]]]  # where a product is, and its values by plain column names

_ITEMS = ("item", "entry")
_BLOCK, _MAX_ITEM, _MAX_DEPTH = 1 << 16, 1 << 22, 32  # bytes, bytes, elements in each other
_PROLOG = re.compile(r"(?>\s|<\?.*?\?>|<!--.*?-->)*+<(?!!)", re.DOTALL)
_FEED = re.compile(r"<(?:\w+:)?(?:rss|feed|rdf)\b", re.IGNORECASE)
_TELLING = {"link", "image_link", "product_type", "google_product_category"}


def _start(file: Path) -> str:
    return beginning_of(file, _BLOCK).lstrip("\ufeff \t\r\n")


def _is_xml(file: Path) -> bool:
    return _start(file).startswith("<") or file.name.lower().removesuffix(".gz").endswith(".xml")


def _is_feed(file: Path) -> bool:
    if _is_xml(file):
        return _start(file).startswith("<") and _FEED.search(_start(file)) is not None
    header = next(iter(_start(file).splitlines()), "")
    columns = {plain_column(name.strip('" ')) for name in re.split(r"[,;\t|]", header)}
    return {"id", "title"} <= columns and bool(columns & _TELLING)


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _values(item: Element) -> dict[str, list[str]]:
    """Return the texts of an item's elements; parts, such as a detail's section, name and value, joined by colons."""
    values: dict[str, list[str]] = {}
    for one in item:
        texts = ["".join(part.itertext()).strip() for part in one] or [(one.text or "").strip()]
        value = one.get("href") if _local(one) == "link" and one.get("href") else ":".join(texts)
        if value:
            values.setdefault(plain_column(_local(one)), []).append(value)
    return values


def _xml_rows(file: Path) -> Iterator[Row]:
    """Yield the items of RSS or Atom; a document with a type or entities is refused, so nothing outside is read."""
    if not _PROLOG.match(_start(file).replace("\0", "")):
        wrong = "no element begins it, or the document declares a type or entities of its own"
        raise DataError(f"{file.name}: {wrong}", "feeds need no declaration: take it out")
    parser: XMLPullParser[Any] = XMLPullParser(("start", "end"))
    path, number, n_bytes = list[Element](), 0, 0
    with file_errors(file, DataError), open_bytes(file) as handle:
        while block := handle.read(_BLOCK):
            parser.feed(block)
            n_bytes += len(block)
            events: Any = parser.read_events()
            for event, element in events:
                if event == "start":
                    path.append(element)
                    continue
                path.pop()
                if _local(element) in _ITEMS and not any(_local(one) in _ITEMS for one in path):
                    number, n_bytes = number + 1, 0
                    yield f"{file.name}, item {number}", _values(element)
                    for above in path:
                        above.clear()
            if n_bytes > _MAX_ITEM or len(path) > _MAX_DEPTH:
                most = f"{_MAX_ITEM:,} bytes, or nested more than {_MAX_DEPTH} deep"
                raise DataError(
                    f"{file.name}: item {number + 1} is longer than {most}", "fetch the file again"
                )
        parser.close()


def _table_rows(file: Path, counts: Counter[str], encoding: str, quotes: bool, skip: bool) -> Iterator[Row]:
    table = DelimitedTable(file, encoding, quotes=quotes)
    names = [plain_column(name) for name in table.columns]
    if "id" not in names:
        raise UsageError(f"{file} has no column id", f"its columns: {', '.join(names)}")
    for line, fields in table.rows():
        if len(fields) == len(names):
            values: dict[str, list[str]] = {}
            for name, field in zip(names, fields, strict=True):
                if name and field.strip():
                    values.setdefault(name, []).append(field.strip())
            yield table.where(line), values
        elif skip:
            counts["lines with more or fewer fields than columns left out"] += 1
        else:
            wrong = f"{table.where(line)} has {len(fields)} fields, the header has {len(names)}"
            raise DataError(wrong, "correct it, or leave it out with --reader-option skip_bad_lines=true")


def _values_in(text: str) -> list[str]:
    """Return the values of a field that may hold several: parted by commas, in double quotes where they have commas."""
    try:
        fields = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        fields = [text]
    return [value.strip() for value in fields if value.strip()]


def paths_in(text: str) -> list[tuple[str, ...]]:
    """Return the category paths of a field: ``"Books > Sports,Books > Business"`` are two.

    Names hold commas as well, so a comma ends a path only where no blank follows it and what follows has a separator of
    its own, or where what follows begins with the same root; or each path stands in double quotes.
    """
    parts = [text]
    if text.startswith('"'):
        parts = _values_in(text)
    elif "," in text and SEPARATOR in text:
        root, own = re.escape(text[: text.index(SEPARATOR)] + SEPARATOR), re.escape(SEPARATOR)
        parts = []
        for one in re.split(rf",\s+(?={root})", text):
            first, *others = re.split(rf",(?=(?!\s)(?:(?!{own})[^,])*{own})", one)
            parts.append(first)
            for other in others:
                if SEPARATOR in parts[-1]:
                    parts.append(other)
                else:
                    parts[-1] += f",{other}"
    return [path for part in parts if (path := split_path(part))]


_ATTRIBUTES = ("brand", "color", "colour", "size", "material", "pattern", "gender", "age_group")
_KINDS = {"product_type": "product_type", "google": "google_product_category"}
_FILES = tuple(f"*{one}{packed}" for one in (".csv", ".tsv", ".txt", ".xml") for packed in ("", ".gz"))
_FIRST = 1000


def _record(values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    attributes = {name: [short_text(one) for one in values[name]] for name in _ATTRIBUTES if name in values}
    for detail in (one for field in values.get("product_detail", ()) for one in _values_in(field)):
        parts = ["", *map(short_text, detail.split(":", 2))][-3:]  # section:name:value, or name:value
        if len(parts) == 3 and parts[1] and parts[2]:
            attributes.setdefault(parts[1], []).append(parts[2])
    return {
        "title": short_text(values.get("title", [""])[0]),
        "attributes": attributes,
        "picture_address": next(iter(values.get("image_link", ())), ""),
    }


@reader(
    "feed",
    "a shop's product feed (CSV, TSV, RSS or Atom): id, title, image_link, product_type, brand, color, …",
    *_FILES,
    claims=looks(_is_feed),
)
def read_feed(
    path: Path | str,
    images: Path | str | None = None,
    categories: Literal["product_type", "google"] | None = None,
    taxonomy: Path | str | None = None,
    missing: Missing = "none",
    duplicates: Duplicates = "error",
    validation: float = 0.15,
    test: float = 0.15,
    quotes: bool = True,
    encoding: str = "utf-8",
    skip_bad_lines: bool = False,
) -> Collection:
    choice("categories", categories or "google", _KINDS)
    gathered = ProductGathering(missing, duplicates, validation, test)
    path = Path(path)
    found = [path] if path.is_file() else list(filter(_is_feed, matching(path, listing(path), _FILES)))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise DataError(f"one product feed expected in {path}, found: {names}", "name it with --data")
    (file,) = found

    def rows(counts: Counter[str]) -> Iterator[Row]:
        how = (str(encoding), quotes, skip_bad_lines)
        return _xml_rows(file) if _is_xml(file) else _table_rows(file, counts, *how)

    if categories is None:
        has_types = any("product_type" in values for _, values in islice(rows(Counter()), _FIRST))
        categories = "product_type" if has_types else "google"
    codes = {} if taxonomy is None else read_taxonomy(taxonomy).codes
    if taxonomy is not None and not codes:
        raise DataError(f"{taxonomy} has no ids", "give the file of the taxonomy with ids")
    path_of = {code: names for names, code in codes.items()}
    lacks = "without a path: name the taxonomy with --reader-option taxonomy=FILE"

    def paths_of(text: str) -> list[tuple[str, ...]]:
        if categories == "product_type":
            return paths_in(text)
        if not text.isdigit():
            return paths_in(text)[:1]
        why = lacks if taxonomy is None else "that the taxonomy does not have"
        gathered.counts[f"category ids {why}"] += text not in path_of
        return [path_of[text]] if text in path_of else []

    for where, values in track(rows(gathered.counts), "reading products", unit="products"):
        paths = [path for text in values.get(_KINDS[categories], ()) for path in paths_of(text)]
        name, group = (" ".join(values.get(key, [""])[0].split()) for key in ("id", "item_group_id"))
        gathered.product(name, _record(values) | {"category_paths": paths}, where, short_text(group))
    folder = first_folder(images, (), "--images") or file.parent / "images"
    note = f"{len(gathered.items):,} products; categories are of the column {_KINDS[categories]}"
    return gathered.products(Path(file.name.removesuffix(".gz")).stem, folder, [note])
