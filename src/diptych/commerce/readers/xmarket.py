"""XMarket: products of one market of a shop, ``metadata_us_Electronics.json.gz`` and others.

A line holds a product, as JSON or as Python prints a dict, or a list of them. Images are not part of the dataset,
only their addresses: they are looked for in a folder where the downloader puts them.

Source: Bonab et al., Cross-Market Product Recommendation, CIKM 2021.
"""

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_lines, read_toml
from diptych.data.collection import Collection
from diptych.data.products import split_path
from diptych.data.readers.contract import choice, first_folder, listing, matching, reader
from diptych.data.readers.products import Duplicates, Missing, ProductGathering, short_text

MAX_LITERAL = 1 << 20  # characters of a line that is not JSON: a literal takes some hundred times its length


_FIX = "fetch the file again, or leave such lines out with --reader-option skip_bad_lines=true"


def parse_line(line: str, where: str) -> Any:
    """Return the value of a line: JSON, else a literal of Python's, of which nothing is evaluated."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        pass
    try:
        if len(line) > MAX_LITERAL:
            raise ValueError(f"{len(line):,} characters are too long for a literal")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know: they stay as written
            return ast.literal_eval(line.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        wrong = f"{where} is neither JSON nor a Python literal ({type(error).__name__}: {error})"
        raise DataError(wrong[:300], _FIX) from None


ATTRIBUTES = {"overview": "overviewFeatures", "details": "productDetails", "features": "features"}
"""Choices of what becomes a product's attributes, and the keys of the records."""

_LEFT_OUT = read_toml(Path(__file__).with_name("xmarket.toml"))["left_out"]
_CODE = re.compile(r"\bfunction\s*\(|\bvar \w+\s*=|\bP\.when\(|\{[^{}:;]*[:;][^{}]*\}")
_RANK = re.compile(r"(?:^|\s)(?:#|Nr\. ?|n\. ?|nº ?|n\.º ?)[\d.,]+ (?:in|en) ", re.IGNORECASE)


def _attributes(
    record: Mapping[str, Any], parts: Sequence[str], counts: Counter[str]
) -> dict[str, list[str]]:
    """Return the attributes of a product without those that name its category, reviews, ids, dates, and code."""
    found: dict[str, list[str]] = {}
    for part in parts:
        given = record.get(ATTRIBUTES[part]) or {}
        for key, values in given.items() if isinstance(given, Mapping) else [("feature", given)]:
            name = short_text(key).strip(" :")
            for raw in values if isinstance(values, list | tuple) else (values,):
                is_code = isinstance(raw, Mapping | list | tuple) or _CODE.search(str(raw)) is not None
                value = "" if is_code else short_text(raw).strip(" :")
                if is_code or (value and name and (name.lower() in _LEFT_OUT or _RANK.search(value))):
                    counts["values that are ranks, reviews, ids, dates or code are no attributes"] += 1
                elif value and name and value not in found.setdefault(name, []):
                    found[name].append(value)
    return found


def _largest_picture(given: Any) -> str:
    """Return the address of a product's largest image: a text, a list, or a dict to heights and widths, or its JSON."""
    with suppress(TypeError, ValueError, RecursionError):
        given = json.loads(given)
    sizes = given if isinstance(given, Mapping) else {}
    addresses = given if isinstance(given, Mapping | list | tuple) else [given]

    def area(address: str) -> float:
        try:
            height, width = sizes[address]
            return float(height) * float(width)
        except (LookupError, TypeError, ValueError):
            return 0.0

    texts = (one for one in addresses if isinstance(one, str))
    known = [one for one in texts if one.strip().lower().startswith(("http://", "https://"))]
    return max(known, key=area, default="").strip()


def _path_in(given: Any) -> tuple[str, ...]:
    """Return the category path of a product: a list from the root on, or a text with ``>`` or ``›`` between names."""
    if isinstance(given, str):
        return split_path(given.replace(" › ", " > "))
    texts = [one for one in given if isinstance(one, str)] if isinstance(given, list | tuple) else []
    return tuple(name for name in map(short_text, texts) if name not in ("", "›", ">"))


_PATTERNS = ("metadata_[a-z][a-z]_*.json", "metadata_[a-z][a-z]_*.json.gz")


def _files(path: Path, market: str | None) -> tuple[str, list[Path]]:
    """Return the market, and its files; of a file that is there both ways, the unpacked one."""
    found: dict[str, dict[str, Path]] = {}  # by market and category
    for file in matching(path, listing(path), _PATTERNS):
        _, code, category = file.name.partition(".")[0].split("_", 2)
        found.setdefault(code, {}).setdefault(category, file)
    if not found:
        raise DataError(f"{path} has no metadata_MARKET_CATEGORY.json.gz", "fetch the files of metadata")
    if market is None and len(found) > 1:
        fix = "the same product may be in several: choose one with --reader-option market=us"
        raise UsageError(f"{path} has {len(found)} markets: {', '.join(sorted(found))}", fix)
    market = str(market or next(iter(found)))
    choice("market", market, sorted(found))
    return market, [found[market][category] for category in sorted(found[market])]


def _records(file: Path, skip: bool, counts: Counter[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in read_lines(file, error=DataError):
        where = f"{file.name}, line {number}"
        try:
            given = parse_line(line, where) if line.strip() else []
            records = given if isinstance(given, list) else [given]
            if not all(isinstance(one, dict) and isinstance(one.get("asin"), str) for one in records):
                raise DataError(f"{where} is no product: it has no asin", _FIX)
        except DataError:
            if not skip:
                raise
            counts["lines that are no products left out"] += 1
            continue
        yield from ((where, record) for record in records)


@reader(
    "xmarket",
    "XMarket: metadata_MARKET_CATEGORY.json.gz, one file or a folder of them, images by address",
    *_PATTERNS,
)
def read_xmarket(
    path: Path | str,
    images: Path | str | None = None,
    market: str | None = None,
    attributes: str = "overview,details",
    missing: Missing = "none",
    duplicates: Duplicates = "merge",
    validation: float = 0.15,
    test: float = 0.15,
    skip_bad_lines: bool = False,
) -> Collection:
    parts = list(ATTRIBUTES) if attributes == "all" else [one.strip() for one in str(attributes).split(",")]
    for part in parts:
        choice("attributes", part, ATTRIBUTES)
    gathered = ProductGathering(missing, duplicates, validation, test)
    path = Path(path)
    market, files = _files(path, market)
    for file in track(files, "reading products", unit="files"):
        for where, record in _records(file, skip_bad_lines, gathered.counts):
            title = record.get("title")
            kept = {
                "title": short_text(title if isinstance(title, str | int | float) else None),
                "attributes": _attributes(record, parts, gathered.counts),
                "category_path": _path_in(record.get("categories")),
                "picture_address": _largest_picture(record.get("imgUrl")),
            }
            gathered.product(record["asin"].strip(), kept, where)
    kinds = " and ".join(ATTRIBUTES[part] for part in parts)
    note = f"market {market}, {len(files)} files, {len(gathered.items):,} products; attributes are {kinds}"
    home = path.parent if path.is_file() else path
    folder = first_folder(images, (), "--images") or home / "images"
    return gathered.products(f"xmarket-{market}", folder, [note])
