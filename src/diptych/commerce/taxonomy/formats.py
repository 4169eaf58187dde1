"""One file per format of taxonomy files; each adds its declaration to ``TAXONOMIES``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from diptych.commerce.taxonomy.declaration import (
    TAXONOMIES,
    Beginning,
    PathListing,
    Taxonomy,
    TaxonomyFormat,
    language_of,
    names_of,
    stem_of,
)
from diptych.commerce.taxonomy.tree import SEPARATOR, CategoryTree
from diptych.commerce.taxonomy.tree import Path as Names
from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_json, read_lines
from diptych.data.lines import DelimitedTable, plain_column
from diptych.data.products import MAX_LEVELS, plain_text

# Google's product taxonomy: ``1604 - Apparel & Accessories > Clothing``, or the paths alone.
#
# The first line is ``# Google_Product_Taxonomy_Version: 2021-09-21``; the language is in the file's name
# (``taxonomy-with-ids.de-DE.txt``).

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
    for number, line in read_lines(path, encoding, error=DataError):
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


# A table of id, parent's id and name: what most databases of shops give.
#
# A root has no parent: an empty field, ``null``, ``none``, ``0`` or ``-1`` where no category has that id.

_IDS = ("id", "category_id", "node_id", "code")
_PARENTS = ("parent_id", "parent", "parentid", "parent_category_id", "parent_node_id", "parent_code")
_NAMES = ("name", "category_name", "title", "label", "category")
_NONE = ("", "null", "none", "nan", "0", "-1")
_SHOWN = 5


@dataclass(frozen=True)
class _Node:
    line: int
    name: str
    parent: str


def _parents_recognises(beginning: Beginning) -> bool:
    if not beginning.lines:
        return False
    header = {plain_column(name) for one in ",;\t|" for name in beginning.lines[0].split(one)}
    return all(header & set(names) for names in (_IDS, _PARENTS, _NAMES))


def _nodes(table: DelimitedTable, columns: tuple[int, int, int]) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for line, fields in table.rows():
        if len(fields) <= max(columns):
            raise DataError(
                f"{table.where(line)} has {len(fields)} fields, not {len(table.columns)}", "fill all columns"
            )
        code, parent, raw = (fields[place].strip() for place in columns)
        name = plain_text(raw)
        if not code or not name:
            raise DataError(f"{table.where(line)}: no {'name' if code else 'id'}", "every category has both")
        if code in nodes:
            raise DataError(
                f"{table.where(line)}: id {code} is {name!r}, and {nodes[code].name!r} in line {nodes[code].line}",
                "ids must be unique",
            )
        nodes[code] = _Node(line, name, parent)
    if not nodes:
        raise DataError(f"{table.file} lists no categories", "fetch it again, or name another file")
    return nodes


def _parents(file: Path, nodes: dict[str, _Node], orphans: str) -> tuple[dict[str, str], list[str]]:
    """Return the parent of each node that has one, and the orphans that became roots."""
    parents: dict[str, str] = {}
    lost: list[str] = []
    for code, node in nodes.items():
        if node.parent in nodes:
            parents[code] = node.parent
        elif node.parent.lower() not in _NONE:
            lost.append(code)
    if lost and orphans == "error":
        named = ", ".join(
            f"{nodes[code].name!r} (id {code}, parent {nodes[code].parent})" for code in lost[:_SHOWN]
        )
        raise DataError(
            f"{file.name}: {len(lost):,} of {len(nodes):,} categories have a parent that is not there: {named}"
            + (", …" if len(lost) > _SHOWN else ""),
            "add their parents, or make roots of them with orphans=root",
        )
    return parents, lost


def _check_cycles(file: Path, nodes: dict[str, _Node], parents: dict[str, str]) -> None:
    done: set[str] = set()
    for first in nodes:
        way: dict[str, None] = {}
        code: str | None = first
        while code is not None and code not in done:
            if code in way:
                names = list(way)
                circle = [*names[names.index(code) :], code]
                shown = circle if len(circle) <= _SHOWN + 1 else [*circle[:_SHOWN], "…", code]
                said = " → ".join(one if one == "…" else f"{nodes[one].name!r} (id {one})" for one in shown)
                raise DataError(
                    f"{file.name}, line {nodes[code].line}: {len(circle) - 1:,} categories stand above themselves: "
                    f"{said}",
                    "each arrow is to the parent: correct one of them",
                )
            way[code] = None
            code = parents.get(code)
        done.update(way)


def _paths(file: Path, nodes: dict[str, _Node], parents: dict[str, str]) -> dict[str, Names]:
    """Return the path of every node; there are no cycles."""
    paths: dict[str, Names] = {}
    for first in nodes:
        way = [first]
        while way[-1] not in paths and way[-1] in parents:
            way.append(parents[way[-1]])
        for code in reversed(way):
            if code not in paths:
                above = paths[parents[code]] if code in parents else ()
                if len(above) == MAX_LEVELS:
                    raise DataError(
                        f"{file.name}, line {nodes[code].line}: {nodes[code].name!r} (id {code}) is on level "
                        f"{MAX_LEVELS + 1}, a tree has {MAX_LEVELS} at most",
                        "check the column of parents",
                    )
                paths[code] = (*above, nodes[code].name)
    return paths


def _parents_read(
    path: Path,
    id_column: str | None = None,
    parent_column: str | None = None,
    name_column: str | None = None,
    orphans: Literal["error", "root"] = "error",
    encoding: str = "utf-8",
) -> Taxonomy:
    if orphans not in ("error", "root"):
        raise UsageError(f"orphans is {orphans!r}", "error, or root")
    table = DelimitedTable(path, encoding)
    columns = (
        table.place(id_column, _IDS, "ids", "id_column=NAME"),
        table.place(parent_column, _PARENTS, "parents", "parent_column=NAME"),
        table.place(name_column, _NAMES, "names", "name_column=NAME"),
    )
    nodes = _nodes(table, columns)
    parents, lost = _parents(path, nodes, orphans)
    _check_cycles(path, nodes, parents)
    paths = _paths(path, nodes, parents)
    codes: dict[Names, str] = {}
    twins = [code for code, names in paths.items() if codes.setdefault(names, code) != code]
    notes = []
    if lost:
        notes.append(
            f"{len(lost):,} categories whose parent is not there made roots, the first: {paths[lost[0]][0]}"
        )
    if twins:
        names = paths[twins[0]]
        notes.append(
            f"{len(twins):,} categories with the name of a sibling are one with it, the first: "
            f"{SEPARATOR.join(names)} (ids {codes[names]} and {twins[0]})"
        )
    tree = CategoryTree(paths.values(), codes)
    return Taxonomy(tree, stem_of(path), "", language_of(path), tuple(notes))


TAXONOMIES.add(
    TaxonomyFormat(
        "parents",
        "a CSV or TSV file of id, parent's id and name",
        _parents_recognises,
        _parents_read,
        {
            "id_column": "column of ids (recognised)",
            "parent_column": "column of the parents' ids (recognised)",
            "name_column": "column of names (recognised)",
            "orphans": "error, or root: categories whose parent is not there (default: error)",
            "encoding": "of the file (default: utf-8)",
        },
        general=1,
    )
)


_TABLES = (".csv", ".tsv")
_NO_LISTS = (".json", ".jsonl", ".xml")
_PATHS = ("path", "category_path", "full_path", "fullpath", "category", "categories", "product_type")
_CODES = ("id", "category_id", "code")


def _paths_recognises(beginning: Beginning) -> bool:
    if beginning.ending in _TABLES and beginning.lines:
        header = {plain_column(name) for one in ",;\t|" for name in beginning.lines[0].split(one)}
        return bool(header & set(_PATHS))
    return beginning.ending not in _NO_LISTS and any(SEPARATOR in line for line in beginning.lines)


def _paths_read(
    path: Path,
    column: str | None = None,
    id_column: str | None = None,
    separator: str = SEPARATOR,
    encoding: str = "utf-8",
) -> Taxonomy:
    if not separator.strip():
        raise UsageError(f"separator is {separator!r}", "what stands between two names, e.g. ' > ' or '/'")
    listing = PathListing(path)
    is_table = path.name.removesuffix(".gz").lower().endswith(_TABLES)
    if is_table or column is not None:
        table = DelimitedTable(path, encoding)
        place = table.place(column, _PATHS, "paths", "column=NAME")
        codes = (
            table.places(_CODES)
            if id_column is None
            else [table.place(id_column, (), "ids", "id_column=NAME")]
        )
        for number, fields in table.rows():
            text = fields[place].strip().removeprefix(separator) if place < len(fields) else ""
            code = fields[codes[0]].strip() if codes and codes[0] < len(fields) else ""
            listing.add(number, names_of(text, listing.where(number), separator), code)
        return listing.taxonomy(stem_of(path))
    if id_column is not None:
        raise UsageError(f"{path} is no table, it has no column {id_column!r}", "leave id_column out")
    for number, line in read_lines(path, encoding, error=DataError):
        if line.strip() and not (line.startswith("#") and not listing):
            text = line.strip().removeprefix(separator)  # "/Home/Lamps"
            listing.add(number, names_of(text, listing.where(number), separator))
    return listing.taxonomy(stem_of(path))


TAXONOMIES.add(
    TaxonomyFormat(
        "paths",
        "a path per line (Home > Women > Dresses), or a column of paths in a CSV or TSV file",
        _paths_recognises,
        _paths_read,
        {
            "column": "column of paths (recognised)",
            "id_column": "column of ids (recognised)",
            "separator": "between the names of a path (default: ' > ')",
            "encoding": "of the file (default: utf-8)",
        },
        general=2,
    )
)


# Shopify's product taxonomy: ``gid://shopify/TaxonomyCategory/ap-2-1  : Animals & Pet Supplies > … > Bird Supplies``.
#
# A category's id is its parent's with a number more, so every line says its place twice; both are held against each
# other.

_SHOPIFY_VERSION = re.compile(r"#\s*(?:Shopify|Taxonomy).*?:\s*(\d\S*)\s*$")
_CATEGORY = re.compile(r"(gid://shopify/TaxonomyCategory/([a-z]+(?:-\d+)*))\s+:\s+(.*)")
_ROOT = "gid://shopify/TaxonomyCategory/"


def _shopify_recognises(beginning: Beginning) -> bool:
    paths = [line for line in beginning.lines if not line.startswith("#")]
    return bool(paths) and paths[0].startswith(_ROOT)


def _shopify_read(path: Path, encoding: str = "utf-8") -> Taxonomy:
    listing, version = PathListing(path), ""
    children: list[tuple[int, str]] = []
    for number, line in read_lines(path, encoding, error=DataError):
        text = line.strip()
        if not text:
            continue
        if text.startswith("#") and not listing:
            found = _SHOPIFY_VERSION.match(text)
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
        _shopify_recognises,
        _shopify_read,
        {"encoding": "of the file (default: utf-8)"},
    )
)


def _written_recognises(beginning: Beginning) -> bool:
    lines = beginning.lines
    return (
        beginning.ending == ".json"
        and lines[:1] == ("{",)
        and any('"fingerprint": "' in line for line in lines)
    )


def _written_read(path: Path) -> Taxonomy:
    document = read_json(path, DataError)
    try:
        paths = [tuple(map(str, one["path"])) for one in document["categories"]]
        codes = {
            path: str(one["id"])
            for path, one in zip(paths, document["categories"], strict=True)
            if "id" in one
        }
        name, version = str(document.get("name") or stem_of(path)), str(document.get("version") or "")
        language, wanted = document.get("language"), document.get("fingerprint")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{path} is no tree that diptych wrote ({type(error).__name__}: {error})", "write it again"
        ) from None
    tree = CategoryTree(paths, codes)
    if tree.fingerprint != wanted:
        raise DataError(
            f"{path} says its tree is {wanted}, and holds {tree.fingerprint}",
            "it was changed: write it again",
        )
    return Taxonomy(tree, name, version, language if isinstance(language, str) else None)


TAXONOMIES.add(
    TaxonomyFormat(
        "written",
        "the JSON file of diptych categories tree --out",
        _written_recognises,
        _written_read,
    )
)
