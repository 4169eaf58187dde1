"""A shop's product feed, as Google Merchant Center and its like take it: ``id``, ``title`` and more in CSV, TSV or XML.

A product may have several ``product_type``: in columns or elements of that name, or in one field, parted by commas; all
are kept. ``google_product_category`` is a path, or the id of one, which a taxonomy's file turns into a path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.data.captions import check_shares
from diptych.data.collection import Collection
from diptych.data.feed_rows import feed_columns, feed_rows, is_xml, is_xml_feed, paths_in, values_in
from diptych.data.lines import plain_column
from diptych.data.product_gathering import ProductGathering, check_missing, picture_folder, short_text
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.taxonomy import SEPARATOR, read_taxonomy

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
