"""Lines of product listings in many languages, as Amazon Berkeley Objects has them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.context import track
from diptych.core.errors import DataError
from diptych.core.reading import read_lines
from diptych.data.products import plain_text
from diptych.data.taxonomy.tree import MAX_LEVELS

FIELDS = {"description": "product_description", "bullets": "bullet_point", "name": "item_name"}
"""What can be a listing's caption, and the keys of the texts."""

ATTRIBUTES = ("brand", "color", "material", "fabric_type", "finish_type", "style", "pattern", "item_shape")
"""Fields that become a listing's attributes; ``product_type`` does not: it is the dataset's own category."""

_LISTINGS = "listings_*.json"
_ABOVE_ALL = "Categories"


@dataclass(frozen=True)
class Listing:
    """What is kept of a listing.

    Attributes:
        where: its file and line.
        item: its item's id.
        image: the id of its main picture, ``""`` where it has none.
        field: the name in :data:`FIELDS` of what its caption was.
        caption: the text, white space made single blanks.
        record: title, attributes, product type, category path or paths, country and domain.
    """

    where: str
    item: str
    image: str
    field: str
    caption: str
    record: dict[str, Any]


def _values(listing: Mapping[str, Any], key: str, language: str | None = None) -> list[str]:
    """The texts of a field, those in one language where one is given; ``en`` is also ``en_GB``."""
    found = []
    for entry in listing.get(key) or ():
        tag = str(entry.get("language_tag", ""))
        if language is None or tag == language or tag.startswith(f"{language}_"):
            found.append(" ".join(str(entry.get("value", "")).split()))
    return [text for text in found if text]


def _texts(listing: Mapping[str, Any], field: str, language: str) -> str:
    """The caption a field gives: all bullet points in their order, of other fields the first text."""
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
    """The paths of all nodes, each once: ``/Categories/Home/Lamps`` without what stands above every category."""
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
