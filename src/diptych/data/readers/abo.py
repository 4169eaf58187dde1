"""Amazon Berkeley Objects: product listings as one image and one text each.

``listings/metadata/listings_*.json.gz`` hold a listing per line, in many languages,
``images/metadata/images.csv.gz`` says in which file below ``images/small/`` an image is. The image of a
listing is its main one; its caption is a field in one language. The dataset comes without splits.

Source: Collins et al., ABO: Dataset and Benchmarks for Real-World 3D Object Understanding, CVPR 2022.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from diptych.core.context import track
from diptych.core.errors import DataError
from diptych.core.reading import parse_json, read_lines
from diptych.data.collection import WHOLE, Collection
from diptych.data.lines import DelimitedTable
from diptych.data.products import plain_text
from diptych.data.readers.contract import choice, reader
from diptych.data.readers.products import Duplicates, Missing, ProductGathering

# What can be a listing's caption, and the keys of the texts.
FIELDS = {"description": "product_description", "bullets": "bullet_point", "name": "item_name"}

# Fields that become a listing's attributes; ``product_type`` does not: it is the dataset's own category.
ATTRIBUTES = ("brand", "color", "material", "fabric_type", "finish_type", "style", "pattern", "item_shape")

_LISTINGS = "listings_*.json"
_ABOVE_ALL = "Categories"


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
        "attributes": attributes,
        "category_paths": paths,
        "country": str(listing.get("country", "")),
        "domain": str(listing.get("domain_name", "")),
    }


def _listings(folder: Path) -> Iterator[tuple[str, Any]]:
    by_name = {file.name.removesuffix(".gz"): file for file in folder.glob(f"{_LISTINGS}.gz")}
    by_name |= {file.name: file for file in folder.glob(_LISTINGS)}
    if not by_name:
        raise DataError(f"{folder} has no {_LISTINGS}.gz", "unpack abo-listings.tar")
    for name in track(sorted(by_name), "reading listings", unit="files"):
        for number, line in read_lines(by_name[name], error=DataError):
            if line.strip():
                where = f"{by_name[name].name}, line {number}"
                yield where, parse_json(line, where, error=DataError, fix="fetch the file again")


_ORDER = "description,bullets,name"
_PLACES = ("", "abo-listings", "abo-images-small")


def _folder(path: Path, below: str, archive: str) -> Path:
    for place in _PLACES:
        if (path / place / below).is_dir():
            return path / place / below
    raise DataError(f"{path} has no folder {below}", f"unpack {archive} there")


def _image_files(folder: Path, ids: set[str]) -> dict[str, str]:
    files = (folder / "metadata" / name for name in ("images.csv.gz", "images.csv"))
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        raise DataError(
            f"{folder / 'metadata'} has no images.csv.gz", "unpack abo-images-small.tar, all of it"
        )
    table = DelimitedTable(file, delimiter="comma")
    name, place = (table.place(None, [one], one, one) for one in ("image_id", "path"))
    rows = (row for _, row in table.rows() if len(row) > max(name, place))
    return {row[name]: row[place] for row in rows if row[name] in ids}


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


@reader(
    "abo",
    "Amazon Berkeley Objects: listings/metadata/listings_*.json.gz and images/",
    *(f"{place}listings/metadata" for place in ("", "abo-listings/", "abo-images-small/")),
)
def read_abo(
    path: Path | str,
    images: Path | str | None = None,
    caption: str = _ORDER,
    language: str = "en",
    split_file: Path | str | None = None,
    validation: float = 0.15,
    test: float = 0.15,
    duplicates: Duplicates = "first",
    missing: Missing = "error",
    skip_bad_captions: bool = False,
) -> Collection:
    order = [part.strip() for part in caption.split(",")]
    for part in order:
        choice("caption", part, FIELDS)
    gathered = ProductGathering(missing, duplicates, validation, test, skip_bad_captions)
    path = Path(path)
    listings = _folder(path, "listings/metadata", "abo-listings.tar")
    folder = _folder(path, "images", "abo-images-small.tar")
    root = Path(images) if images is not None else folder / "small"
    if not root.is_dir():
        raise DataError(f"the image folder {root} does not exist", "unpack abo-images-small.tar")
    splits = None if split_file is None else _given_splits(Path(split_file))
    counts = gathered.counts
    main_images: dict[str, str] = {}
    fields: Counter[str] = Counter()
    total = 0
    for where, listing in _listings(listings):
        total += 1
        try:
            item, image = str(listing["item_id"]), str(listing.get("main_image_id") or "")
            texts = ((field, _texts(listing, field, language)) for field in order)
            field, text = next(((field, text) for field, text in texts if text), ("", ""))
            record = _record(listing, language) | {"image_id": image}
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{where} is not a listing ({type(error).__name__}: {error})", "fetch the file again"
            ) from None
        if not image and missing != "none":
            counts["listings without a main image left out"] += 1
        elif not text:
            counts[f"listings without {' or '.join(order)} in {language} left out"] += 1
        elif splits is not None and item not in splits:
            counts[f"items that {Path(str(split_file)).name} does not name left out"] += 1
        elif skip_bad_captions and not any(map(str.isalnum, text)):
            counts["listings with an empty caption left out"] += 1
        else:
            split, about = WHOLE if splits is None else splits[item], [{"field": FIELDS[field]}]
            if gathered.product(item, record, where, image, text, split, about) is not None:
                main_images[item] = image
                fields[field] += 1
    if not gathered.items:
        raise DataError(
            f"{path}: no listing of {total:,} has an image and {caption} in {language}",
            "choose --reader-option language=… or caption=…",
        )
    files = _image_files(folder, {image for image in main_images.values() if image})
    used = ", ".join(f"{FIELDS[field]} of {fields[field]:,}" for field in order if fields[field])
    note = f"{len(gathered.items):,} of {total:,} listings in {language}: captions are {used}"
    return gathered.products("abo", root, [note], lambda item: files.get(main_images[item], ""))
