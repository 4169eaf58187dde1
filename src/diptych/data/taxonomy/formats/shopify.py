"""Shopify's product taxonomy: ``gid://shopify/TaxonomyCategory/ap-2-1  : Animals & Pet Supplies > … > Bird Supplies``.

A category's id is its parent's with a number more, so every line says its place twice; both are held against each
other.
"""

from __future__ import annotations

import re
from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.lines import numbered_lines
from diptych.data.taxonomy.declaration import TAXONOMIES, Beginning, Taxonomy, TaxonomyFormat
from diptych.data.taxonomy.listing import PathListing, names_of
from diptych.data.taxonomy.tree import SEPARATOR

__all__: list[str] = []

_VERSION = re.compile(r"#\s*(?:Shopify|Taxonomy).*?:\s*(\d\S*)\s*$")
_CATEGORY = re.compile(r"(gid://shopify/TaxonomyCategory/([a-z]+(?:-\d+)*))\s+:\s+(.*)")
_ROOT = "gid://shopify/TaxonomyCategory/"


def _recognises(beginning: Beginning) -> bool:
    paths = [line for line in beginning.lines if not line.startswith("#")]
    return bool(paths) and paths[0].startswith(_ROOT)


def _read(path: Path, encoding: str = "utf-8") -> Taxonomy:
    listing, version = PathListing(path), ""
    children: list[tuple[int, str]] = []
    for number, line in numbered_lines(path, encoding):
        text = line.strip()
        if not text:
            continue
        if text.startswith("#") and not listing:
            found = _VERSION.match(text)
            version = version or (found[1] if found else "")
            continue
        given = _CATEGORY.fullmatch(text)
        if given is None:
            raise DataError(
                f"{listing.where(number)} is no category of Shopify's: {text[:60]!r}",
                f"{_ROOT}ID : ANCESTOR > … > NAME is expected; attributes and values are other files",
            )
        names = names_of(given[3], listing.where(number))
        levels = given[2].count("-") + 1
        if levels != len(names):
            raise DataError(
                f"{listing.where(number)}: id {given[2]} is on level {levels}, {SEPARATOR.join(names)!r} on level "
                f"{len(names)}",
                "fetch the file again",
            )
        listing.add(number, names, given[1])
        if levels > 1:
            children.append((number, given[1]))
    for number, code in children:
        own, above = listing.path_of(code) or (), listing.path_of(code.rpartition("-")[0])
        if above is not None and own[:-1] != above:
            raise DataError(
                f"{listing.where(number)}: by its id it stands under {SEPARATOR.join(above)!r}, by its path under "
                f"{SEPARATOR.join(own[:-1])!r}",
                "fetch the file again",
            )
    return listing.taxonomy("Shopify product taxonomy", version)


TAXONOMIES.add(
    TaxonomyFormat(
        "shopify",
        "Shopify's product taxonomy: categories.txt (gid://shopify/TaxonomyCategory/ap-2 : A > B)",
        _recognises,
        _read,
        {"encoding": "of the file (default: utf-8)"},
    )
)
