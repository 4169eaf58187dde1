"""XMarket: products of one market of a shop, ``metadata_us_Electronics.json.gz`` and others.

A line holds a product, as JSON or as Python prints a dict, or a list of them. Pictures are not part of the dataset,
only their addresses: they are looked for in a folder where the downloader puts them.

Source: Bonab et al., Cross-Market Product Recommendation, CIKM 2021.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_lines
from diptych.data.assigned import check_shares
from diptych.data.collection import Collection
from diptych.data.literals import parse_line
from diptych.data.product_gathering import ProductGathering, short_text
from diptych.data.product_pictures import check_missing, picture_folder
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.xmarket_records import ATTRIBUTES, attributes_in, largest_picture, path_in

_NAMES = re.compile(r"metadata_([a-z]{2})_([^.]+)\.json(?:\.gz)?")
_ATTRIBUTES = "overview,details"


def _files(path: Path) -> list[tuple[Path, str, str]]:
    """Files of metadata with their market and category; of a file that is there both ways, the unpacked one."""
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
