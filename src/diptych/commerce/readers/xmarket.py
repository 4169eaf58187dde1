"""XMarket: products of one market of a shop, ``metadata_us_Electronics.json.gz`` and others.

A line holds a product, as JSON or as Python prints a dict, or a list of them. Pictures are not part of the dataset,
only their addresses: they are looked for in a folder where the downloader puts them.

Source: Bonab et al., Cross-Market Product Recommendation, CIKM 2021.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_lines
from diptych.data.captions import check_shares
from diptych.data.collection import Collection
from diptych.data.products import split_path
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.readers.gathering import ProductGathering, check_missing, picture_folder, short_text

MAX_DEPTH = 32
"""Lists and dicts within each other; deeper lines are refused."""

MAX_LITERAL = 1 << 20
"""Characters of a line that is not JSON: a literal takes some hundred times its length while it is read."""

# A text that does not end is taken to the end of the line: what matches nothing would be tried from each of its quotes.
_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?""")
_REST = re.compile(
    r"(?:[\s,:\[\]{}()]|(?<![\w.])-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w.])|\b(?:True|False|None)\b)*"
)
_BRACKETS = re.compile(r"[\[\]{}()]")


def _check_depth(brackets: str, where: str) -> None:
    depth = 0
    for found in _BRACKETS.finditer(brackets):
        depth += 1 if found[0] in "[{(" else -1
        if depth > MAX_DEPTH:
            raise DataError(f"{where} is nested more than {MAX_DEPTH} deep", "fetch the file again")


def parse_line(line: str, where: str) -> Any:
    """Return the value of a line: JSON, else a literal of Python's.

    A literal is texts, numbers, True, False and None in lists, tuples and dicts; names, calls and sums are refused
    before anything parses them.
    """
    bare = _TEXT.sub("0", line)
    _check_depth(bare, where)
    try:
        return json.loads(line)
    except ValueError as error:
        not_json = error
    except RecursionError:
        raise DataError(f"{where} is nested too deep", "fetch the file again") from None
    if len(line) > MAX_LITERAL:
        raise DataError(
            f"{where} is not JSON ({not_json}), and with {len(line):,} characters too long for a literal",
            "fetch the file again",
        )
    if not _REST.fullmatch(_TEXT.sub(",", line)):
        raise DataError(
            f"{where} is neither JSON ({not_json}) nor a Python literal", "one record per line is expected"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of escapes that Python does not know: they stay as they are written
            return ast.literal_eval(line.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        what = type(error).__name__
        raise DataError(
            f"{where} is neither JSON ({not_json}) nor a Python literal ({what})",
            "one record per line is expected",
        ) from None


ATTRIBUTES = {"overview": "overviewFeatures", "details": "productDetails", "features": "features"}
"""What can be a product's attributes, and the keys of the records."""

_TELLING = (
    # The rank names the category, and the others say nothing of the product.
    *("best sellers rank", "amazon best sellers rank", "bestsellers rank", "amazon bestsellers rank"),
    *("bestseller-rang", "amazon bestseller-rang", "classement des meilleures ventes d'amazon"),
    *("clasificación en los más vendidos de amazon", "posizione nella classifica bestseller di amazon"),
    *("amazon 売れ筋ランキング", "売れ筋ランキング"),
    *("customer reviews", "customer ratings", "average customer review", "durchschnittliche kundenbewertung"),
    *("kundenrezensionen", "commentaires client", "opiniones de los clientes", "recensioni clienti"),
    *("asin", "date first available", "date first listed on amazon", "im angebot von amazon.de seit"),
)
_CODE = re.compile(r"\bfunction\s*\(|\bvar \w+\s*=|\bP\.when\(")
_BLOCK = re.compile(r"\{([^{}]*)\}")
_RANK = re.compile(r"(?:^|\s)(?:#|Nr\. ?|n\. ?|nº ?|n\.º ?)[\d.,]+ (?:in|en) ", re.IGNORECASE)


def _pairs(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Name and value of each attribute in a dict, or of each text in a list, all under one name."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            for part in one if isinstance(one, list | tuple) else (one,):
                yield str(key), part
    elif isinstance(value, list | tuple):
        for one in value:
            yield name, one
    elif value:
        yield name, value


def _is_code(text: str) -> bool:
    blocks = (found[1] for found in _BLOCK.finditer(text))
    return any(":" in block or ";" in block for block in blocks) or _CODE.search(text) is not None


def attributes_in(record: Mapping[str, Any], wanted: Sequence[str]) -> tuple[dict[str, list[str]], int]:
    """Return the attributes of a product, and how many were left out as not of the product.

    Left out are ranks (they name the category that is asked for), reviews, the shop's own id and dates, style sheets
    and scripts. A value that was there under the same name counts once.
    """
    found: dict[str, list[str]] = {}
    junk = 0
    for part in wanted:
        for raw_name, raw in _pairs(record.get(ATTRIBUTES[part]), "feature"):
            name = short_text(raw_name).strip(" :")
            if isinstance(raw, Mapping | list | tuple) or _is_code(str(raw)):
                junk += 1
                continue
            value = short_text(raw).strip(" :")
            if not value or not name:
                continue
            if name.lower() in _TELLING or _RANK.search(value):
                junk += 1
            elif value not in (values := found.setdefault(name, [])):
                values.append(value)
    return found, junk


def _area(size: Any) -> float:
    try:
        height, width = size
        return float(height) * float(width)
    except (TypeError, ValueError):
        return 0.0


def largest_picture(given: Any) -> str:
    """Return the address of a product's largest picture, ``""`` where there is none."""
    if isinstance(given, str) and given.lstrip()[:1] in ("{", "["):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return ""
    if isinstance(given, str):
        given = [given]
    sizes: dict[str, float] = {}
    if isinstance(given, Mapping):
        sizes = {str(address): _area(size) for address, size in given.items()}
    elif isinstance(given, list | tuple):
        sizes = {one: 0.0 for one in given if isinstance(one, str)}
    known = {
        a.strip(): size for a, size in sizes.items() if a.strip().lower().startswith(("http://", "https://"))
    }
    return max(known, key=lambda address: known[address], default="")


def path_in(given: Any) -> tuple[str, ...]:
    """The category path of a product: a list from the root on, or one text with ``>`` or ``›`` between the names."""
    if isinstance(given, str):
        return split_path(given.replace(" › ", " > "))
    if isinstance(given, list | tuple):
        names = (short_text(name) for name in given if isinstance(name, str))
        return tuple(name for name in names if name not in ("", "›", ">"))
    return ()


_NAMES = re.compile(r"metadata_([a-z]{2})_([^.]+)\.json(?:\.gz)?")
_ATTRIBUTES = "overview,details"


def _files(path: Path) -> list[tuple[Path, str, str]]:
    """Return files of metadata with their market and category; of a file that is there both ways, the unpacked one."""
    files = [path] if path.is_file() else sorted(path.iterdir(), reverse=True)
    found = {}
    for file in files:
        given = _NAMES.fullmatch(file.name)
        if given is not None:
            found[given[1], given[2]] = file
    return [(found[key], *key) for key in sorted(found)]


def _chosen(path: Path, market: str | None, categories: str | None) -> list[tuple[Path, str, str]]:
    files = _files(path)
    if not files:
        raise DataError(f"{path} has no metadata_MARKET_CATEGORY.json.gz", "fetch the files of metadata")
    markets = sorted({one for _, one, _ in files})
    if market is None and len(markets) > 1:
        raise UsageError(
            f"{path} has {len(markets)} markets: {', '.join(markets)}",
            "the same product may be in several: choose one with --reader-option market=us",
        )
    wanted = None if categories is None else {one.strip() for one in str(categories).split(",")}
    known = {one for _, _, one in files}
    for what, given, names in (
        ("market", set() if market is None else {str(market)}, set(markets)),
        ("category", wanted or set(), known),
    ):
        if given - names:
            raise UsageError(
                f"{path} has no {what} {', '.join(sorted(given - names))}",
                f"it has {', '.join(sorted(names))}",
            )
    return [one for one in files if market in (None, one[1]) and (wanted is None or one[2] in wanted)]


def _records(file: Path, skip: bool, counts: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in read_lines(file, error=DataError):
        if not line.strip():
            continue
        where = f"{file.name}, line {number}"
        try:
            given = parse_line(line, where)
            records = given if isinstance(given, list) else [given]
            for record in records:
                if not isinstance(record, dict) or not isinstance(record.get("asin"), str):
                    raise DataError(f"{where} is no product: it has no asin", "fetch the file again")
        except DataError as error:
            if not skip:
                raise DataError(
                    error.message,
                    f"{error.fix}; or leave such lines out with --reader-option skip_bad_lines=true",
                ) from None
            counts["lines that are no products left out"] += 1
            continue
        for record in records:
            yield where, record


def read_xmarket(
    path: Path | str,
    images: Path | str | None = None,
    market: str | None = None,
    categories: str | None = None,
    attributes: str = _ATTRIBUTES,
    missing: Literal["none", "error", "skip"] = "none",
    duplicates: Literal["merge", "first", "error"] = "merge",
    validation: float = 0.15,
    test: float = 0.15,
    skip_bad_lines: bool = False,
) -> Collection:
    """Read files of metadata as products with a title, attributes and a category path."""
    wanted = (
        list(ATTRIBUTES) if attributes == "all" else [part.strip() for part in str(attributes).split(",")]
    )
    for part in wanted:
        if part not in ATTRIBUTES:
            raise UsageError(f"attributes is {part!r}", f"all, or of {', '.join(ATTRIBUTES)}")
    check_missing(missing)
    check_shares(validation, test)
    path = Path(path)
    files = _chosen(path, market, categories)
    folder = picture_folder(images, path.parent if path.is_file() else path)
    gathering = ProductGathering(duplicates)
    junk = 0
    for file, _, _ in track(files, "reading products", unit="files"):
        for where, record in _records(file, skip_bad_lines, gathering.counts):
            given, left_out = attributes_in(record, wanted)
            address = largest_picture(record.get("imgUrl"))
            junk += left_out
            gathering.add(
                record["asin"].strip(),
                {
                    "title": short_text(record.get("title")),
                    "attributes": given,
                    "category_path": path_in(record.get("categories")),
                    "picture_address": address,
                },
                where,
            )
    if junk:
        gathering.counts["values that are ranks, reviews, ids, dates or code are no attributes"] = junk
    kinds = " and ".join(ATTRIBUTES[part] for part in wanted)
    said = f"market {files[0][1]}, {len(files)} files, {len(gathering):,} products; attributes are {kinds}"
    return gathering.collection(
        f"xmarket-{files[0][1]}", folder, missing=missing, validation=validation, test=test, notes=(said,)
    )


def _recognises(path: Path) -> bool:
    names = (file.name for file in path.iterdir()) if path.is_dir() else (path.name,)
    return any(map(_NAMES.fullmatch, names))


READERS.add(
    Reader(
        "xmarket",
        "XMarket: metadata_MARKET_CATEGORY.json.gz, one file or a folder of them, pictures by address",
        _recognises,
        read_xmarket,
        {
            "images": "folder of pictures (default: images/ beside the files)",
            "market": "two letters, where a folder has several",
            "categories": "names of files to read, separated by commas (default: all)",
            "attributes": f"of overview, details and features, or all (default: {_ATTRIBUTES})",
            "missing": "none, error or skip: products without a picture (default: none, kept without one)",
            "duplicates": "merge, first or error: a product that is listed again (default: merge)",
            "validation": "share of products in val (default: 0.15)",
            "test": "share of products in test (default: 0.15)",
            "skip_bad_lines": "leave out and count lines that hold no product instead of failing",
        },
    )
)
