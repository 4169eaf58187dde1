"""Google's product taxonomy: ``1604 - Apparel & Accessories > Clothing``, or the paths alone.

The first line is ``# Google_Product_Taxonomy_Version: 2021-09-21``; the language is in the file's name
(``taxonomy-with-ids.de-DE.txt``).
"""

from __future__ import annotations

import re
from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.lines import numbered_lines
from diptych.data.taxonomy.declaration import TAXONOMIES, Beginning, Taxonomy, TaxonomyFormat
from diptych.data.taxonomy.listing import PathListing, names_of

__all__: list[str] = []

_VERSION = re.compile(r"#\s*Google_Product_Taxonomy_Version:\s*(\S+)")
_NUMBERED = re.compile(r"(\d+) - (.*)")


def _recognises(beginning: Beginning) -> bool:
    lines = beginning.lines
    if lines and _VERSION.match(lines[0]):
        return True
    first = next((line for line in lines if not line.startswith("#")), "")
    return _NUMBERED.fullmatch(first.strip()) is not None


def _read(path: Path, encoding: str = "utf-8") -> Taxonomy:
    listing, version = PathListing(path), ""
    numbered: bool | None = None
    for number, line in numbered_lines(path, encoding):
        text = line.strip()
        if not text:
            continue
        if text.startswith("#") and not listing:
            found = _VERSION.match(text)
            version = found[1] if found else version
            continue
        given = _NUMBERED.fullmatch(text)
        if numbered is None:
            numbered = given is not None  # a file has ids in all lines or in none
        if numbered and given is None:
            raise DataError(f"{listing.where(number)} has no id: {text[:60]!r}", "fetch the file again")
        code, names = (given[1], given[2]) if numbered and given else ("", text)
        listing.add(number, names_of(names, listing.where(number)), code)
    return listing.taxonomy("Google product taxonomy", version)


TAXONOMIES.add(
    TaxonomyFormat(
        "google",
        "Google's product taxonomy, with ids (1604 - Apparel & Accessories > Clothing) or without",
        _recognises,
        _read,
        {"encoding": "of the file (default: utf-8)"},
    )
)
