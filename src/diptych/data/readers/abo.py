"""Amazon Berkeley Objects: product listings as one picture and one text each.

``listings/metadata/listings_*.json.gz`` hold a listing per line, in many languages,
``images/metadata/images.csv.gz`` says in which file below ``images/small/`` a picture is. The picture of a
listing is its main one; its caption is a field in one language. The dataset comes without splits.

Source: Collins et al., ABO: Dataset and Benchmarks for Real-World 3D Object Understanding, CVPR 2022.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.core.context import track
from diptych.core.errors import CaptionError, DataError, UsageError
from diptych.core.reading import read_lines
from diptych.data.captions import assigned_split, check_shares, checked_caption
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.products import MAX_LEVELS, plain_text
from diptych.data.readers.declaration import READERS, Reader

FIELDS = {"description": "product_description", "bullets": "bullet_point", "name": "item_name"}
"""What can be a listing's caption, and the keys of the texts."""

ATTRIBUTES = ("brand", "color", "material", "fabric_type", "finish_type", "style", "pattern", "item_shape")
"""Fields that become a listing's attributes; ``product_type`` does not: it is the dataset's own category."""

_LISTINGS = "listings_*.json"
_ABOVE_ALL = "Categories"


@dataclass(frozen=True)
class Listing:
    """What is kept of a listing."""

    where: str  # its file and line
    item: str  # its item's id
    image: str  # the id of its main picture, "" where it has none
    field: str  # the name in FIELDS of what its caption was
    caption: str  # the text, white space made single blanks
    record: dict[str, Any]  # title, attributes, product type, category path or paths, country and domain


def _values(listing: Mapping[str, Any], key: str, language: str | None = None) -> list[str]:
    """Return the texts of a field, those in one language where one is given; ``en`` is also ``en_GB``."""
    found = []
    for entry in listing.get(key) or ():
        tag = str(entry.get("language_tag", ""))
        if language is None or tag == language or tag.startswith(f"{language}_"):
            found.append(" ".join(str(entry.get("value", "")).split()))
    return [text for text in found if text]


def _texts(listing: Mapping[str, Any], field: str, language: str) -> str:
    """Return the caption a field gives: all bullet points in their order, of other fields the first text."""
    values = _values(listing, FIELDS[field], language)
    return " ".join(values if field == "bullets" else values[:1])


def _attributes(listing: Mapping[str, Any], language: str) -> dict[str, list[str]]:
    """Values in the language, else those that the dataset standardized (they are in English), each once."""
    found: dict[str, list[str]] = {}
    for name in ATTRIBUTES:
        values = _values(listing, name, language)
        if not values and language.partition("_")[0] == "en":
            entries = listing.get(name) or ()
            values = [str(one) for entry in entries for one in entry.get("standardized_values") or ()]
        texts = dict.fromkeys(text for value in values if (text := plain_text(value)))
        if texts:
            found[name] = list(texts)
    return found


def _paths(listing: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the paths of all nodes, each once: ``/Categories/Home/Lamps`` without what stands above every category."""
    found: dict[tuple[str, ...], None] = {}
    for node in listing.get("node") or ():
        given = str(node.get("node_name") or node.get("path") or "")
        path = tuple(name for part in given.split("/") if (name := plain_text(part)))
        path = path[1:] if path[:1] == (_ABOVE_ALL,) else path
        if len(path) > MAX_LEVELS:
            raise ValueError(f"a category of {len(path):,} levels")
        if path:
            found[path] = None
    return list(found)


def _record(listing: Mapping[str, Any], language: str) -> dict[str, Any]:
    paths, attributes = _paths(listing), _attributes(listing, language)
    given_type = listing.get("product_type")
    return {
        "title": _texts(listing, "name", language),
        "product_type": given_type
        if isinstance(given_type, str)
        else next(iter(_values(listing, "product_type")), ""),
        **({"attributes": attributes} if attributes else {}),
        "category_path": paths[0] if paths else (),
        **({"category_paths": tuple(paths)} if len(paths) > 1 else {}),
        "country": str(listing.get("country", "")),
        "domain": str(listing.get("domain_name", "")),
    }


def listings_of(
    folder: Path, order: Sequence[str], language: str, counts: Counter[str], *, pictured: bool = True
) -> Iterator[Listing]:
    """Listings that have a main picture and a caption, file by file and line by line."""
    by_name = {file.name.removesuffix(".gz"): file for file in folder.glob(f"{_LISTINGS}.gz")}
    by_name |= {file.name: file for file in folder.glob(_LISTINGS)}
    files = [by_name[name] for name in sorted(by_name)]
    if not files:
        raise DataError(f"{folder} has no {_LISTINGS}.gz", "unpack abo-listings.tar")
    for file in track(files, "reading listings", unit="files"):
        for number, line in read_lines(file, error=DataError):
            where = f"{file.name}, line {number}"
            if not line.strip():
                continue
            try:
                listing = json.loads(line)
                item, image = str(listing["item_id"]), str(listing.get("main_image_id") or "")
                texts = ((field, _texts(listing, field, language)) for field in order)
                field, caption = next(((field, text) for field, text in texts if text), ("", ""))
                record = _record(listing, language)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{where} is not JSON: {error}", "fetch the file again") from None
            except (KeyError, TypeError, AttributeError) as error:
                raise DataError(
                    f"{where} is not a listing ({type(error).__name__}: {error})", "fetch the file again"
                ) from None
            counts["listings"] += 1
            if pictured and not image:
                counts["listings without a main picture left out"] += 1
            elif not caption:
                counts[f"listings without {' or '.join(order)} in {language} left out"] += 1
            else:
                yield Listing(where, item, image, field, caption, record)


_ORDER = "description,bullets,name"
_PLACES = ("", "abo-listings", "abo-images-small")


def _folder(path: Path, wanted: str, archive: str) -> Path:
    for place in _PLACES:
        if (path / place / wanted).is_dir():
            return path / place / wanted
    raise DataError(f"{path} has no folder {wanted}", f"unpack {archive} there")


def _image_files(folder: Path, wanted: set[str]) -> dict[str, str]:
    """Return the file of each wanted picture, as ``images.csv`` has it."""
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
