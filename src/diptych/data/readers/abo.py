"""Amazon Berkeley Objects: product listings as one picture and one text each.

``listings/metadata/listings_*.json.gz`` hold a listing per line, in many languages,
``images/metadata/images.csv.gz`` says in which file below ``images/small/`` a picture is. The picture of a
listing is its main one; its caption is a field in one language. The dataset comes without splits.

Source: Collins et al., ABO: Dataset and Benchmarks for Real-World 3D Object Understanding, CVPR 2022.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np

from diptych.core.errors import CaptionError, DataError, UsageError
from diptych.core.reading import read_lines
from diptych.data.assigned import assigned_split, check_shares
from diptych.data.captions import checked_caption
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.product_listings import FIELDS, Listing, listings_of
from diptych.data.readers.declaration import READERS, Reader

_ORDER = "description,bullets,name"
_PLACES = ("", "abo-listings", "abo-images-small")


def _folder(path: Path, wanted: str, archive: str) -> Path:
    for place in _PLACES:
        if (path / place / wanted).is_dir():
            return path / place / wanted
    raise DataError(f"{path} has no folder {wanted}", f"unpack {archive} there")


def _image_files(folder: Path, wanted: set[str]) -> dict[str, str]:
    """The file of each wanted picture, as ``images.csv`` has it."""
    for name in ("images.csv.gz", "images.csv"):
        file = folder / "metadata" / name
        if file.is_file():
            break
    else:
        raise DataError(
            f"{folder / 'metadata'} has no images.csv.gz", "unpack abo-images-small.tar, all of it"
        )
    try:
        rows = csv.DictReader(line for _, line in read_lines(file, error=DataError))
        missing = {"image_id", "path"} - set(rows.fieldnames or ())
        if missing:
            raise DataError(
                f"{file} has no column {' and no column '.join(sorted(missing))}",
                f"its columns: {', '.join(rows.fieldnames or ()) or 'none'}; fetch the file again",
            )
        return {row["image_id"]: row["path"] or "" for row in rows if row["image_id"] in wanted}
    except csv.Error as error:
        raise DataError(f"{file} is not a table: {error}", "fetch the file again") from None


def _given_splits(file: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    for number, line in read_lines(file, error=DataError):
        fields = line.replace(",", "\t").split("\t")
        if len(fields) != 2 or not all(fields):
            raise DataError(
                f"{file}, line {number} is {line[:40]!r}", "an item id, a tab or comma, and its split"
            )
        if splits.setdefault(fields[0], fields[1]) != fields[1]:
            raise DataError(f"{file}, line {number}: {fields[0]} has two splits", "an item belongs to one")
    return splits


def read_abo(
    path: Path | str,
    images: Path | str | None = None,
    caption: str = _ORDER,
    language: str = "en",
    split_file: Path | str | None = None,
    validation: float = 0.15,
    test: float = 0.15,
    duplicates: Literal["first", "error"] = "first",
    missing: Literal["error", "skip", "none"] = "error",
    skip_bad_captions: bool = False,
) -> Collection:
    """Read listings as one picture and one caption each."""
    order = [part.strip() for part in caption.split(",")]
    for what, value, known in (
        ("duplicates", duplicates, ("first", "error")),
        ("missing", missing, ("error", "skip", "none")),
        *(("caption", part, tuple(FIELDS)) for part in order),
    ):
        if value not in known:
            raise UsageError(f"{what} is {value!r}", f"one of {', '.join(known)}")
    check_shares(validation, test)
    path = Path(path)
    listings = _folder(path, "listings/metadata", "abo-listings.tar")
    folder = _folder(path, "images", "abo-images-small.tar")
    root = Path(images) if images is not None else folder / "small"
    if not root.is_dir():
        raise DataError(f"the image folder {root} does not exist", "unpack abo-images-small.tar")
    splits = None if split_file is None else _given_splits(Path(split_file))
    counts: Counter[str] = Counter()
    kept: dict[str, Listing] = {}
    for listing in listings_of(listings, order, language, counts, pictured=missing != "none"):
        if listing.item in kept:
            if duplicates == "error":
                raise DataError(
                    f"{listing.where}: {listing.item} was in {kept[listing.item].where} already",
                    "keep the first with --reader-option duplicates=first",
                )
            counts["listings of items that were listed before left out"] += 1
        elif splits is not None and listing.item not in splits:
            counts[f"items that {Path(str(split_file)).name} does not name left out"] += 1
        else:
            try:
                checked_caption(listing.caption, listing.where)
            except CaptionError:
                if not skip_bad_captions:
                    raise
                counts["listings with an empty caption left out"] += 1
                continue
            kept[listing.item] = listing
    files = _image_files(folder, {listing.image for listing in kept.values()} - {""})
    lost = [listing for listing in kept.values() if not files.get(listing.image)]
    if lost and missing == "error":
        raise DataError(
            f"{len(lost):,} of {len(kept):,} main pictures are not in images.csv, the first: {lost[0].image} "
            f"of {lost[0].where}",
            "leave them out with --reader-option missing=skip, or keep them without with missing=none",
        )
    for listing in lost:
        if missing == "none":
            counts["listings kept without a picture"] += 1
            continue
        del kept[listing.item]
        counts["listings whose main picture is not in images.csv left out"] += 1
    if not kept:
        raise DataError(
            f"{path}: no listing of {counts['listings']:,} has a picture and {caption} in {language}",
            "choose --reader-option language=… or caption=…",
        )
    items = list(kept.values())
    fields = Counter(listing.field for listing in items)
    used = ", ".join(f"{FIELDS[field]} of {fields[field]:,}" for field in order if fields[field])
    total = counts.pop("listings")
    pictured = [bool(files.get(listing.image)) for listing in items]
    return Collection(
        name="abo",
        image_ids=[listing.item for listing in items],
        captions=[listing.caption for listing in items],
        caption_ids=[f"{listing.item}#0" for listing in items],
        caption_image=np.arange(len(items), dtype=np.int64),
        splits=[
            assigned_split(listing.image or listing.item, validation, test)
            if splits is None
            else splits[listing.item]
            for listing in items
        ],
        source=FolderSource(
            root, [files[one.image] for one, found in zip(items, pictured, strict=True) if found]
        ),
        source_rows=np.where(pictured, np.cumsum(pictured) - 1, -1).astype(np.int64),
        records=[{**listing.record, "image_id": listing.image} for listing in items],
        caption_records=[{"field": FIELDS[listing.field]} for listing in items],
        notes=(
            f"{len(items):,} of {total:,} listings in {language}: captions are {used}",
            *(f"{count:,} {what}" for what, count in sorted(counts.items())),
        ),
        centric="object",
    )


def _recognises(path: Path) -> bool:
    return path.is_dir() and any((path / place / "listings/metadata").is_dir() for place in _PLACES)


READERS.add(
    Reader(
        "abo",
        "Amazon Berkeley Objects: listings/metadata/listings_*.json.gz and images/",
        _recognises,
        read_abo,
        {
            "images": "folder of pictures (default: images/small)",
            "caption": f"fields in order of preference, the first there is (default: {_ORDER})",
            "language": "language of captions, e.g. en or en_GB (default: en)",
            "split_file": "lines of item id and split (default: a hash of the picture decides)",
            "validation": "share of pictures in val where there is no split file (default: 0.15)",
            "test": "share of pictures in test where there is no split file (default: 0.15)",
            "duplicates": "first, or error: an item that is listed again (default: first)",
            "missing": "error, skip or none: main pictures that images.csv does not name (default: error)",
            "skip_bad_captions": "leave out and count captions without letters instead of failing",
        },
    )
)
