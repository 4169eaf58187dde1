"""Formats of taxonomy files: Google's, Shopify's, tables of parents, lists of paths, and our own JSON."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from diptych.commerce.taxonomy.tree import SEPARATOR, CategoryTree
from diptych.commerce.taxonomy.tree import Path as Names
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.reading import read_json, read_lines
from diptych.data.lines import DELIMITERS, DelimitedTable, plain_column
from diptych.data.products import MAX_LEVELS, plain_text


@dataclass(frozen=True)
class Taxonomy:
    """A category tree as its publisher wrote it; ``tree.codes`` has its own ids where the file gives them."""

    tree: CategoryTree
    name: str  # of the taxonomy, or of its file
    version: str = ""
    language: str | None = None  # from the file's name or its content, e.g. ``en-US``
    notes: tuple[str, ...] = ()  # what was mended and what a user should know, one line each

    def describe(self) -> str:
        """Return one line: name, version, language, the tree."""
        parts = [part for part in (self.name, self.version, self.language) if part]
        return f"{' '.join(parts)}: {self.tree.describe()}"


class TaxonomyFormat(NamedTuple):
    """How one format of taxonomy files is recognised and read."""

    description: str  # one line for help texts
    recognises: Callable[[str, Sequence[str]], bool]  # from the file's ending and its first lines
    read: Callable[..., Taxonomy]  # its keyword arguments are the format's options


_LINES = 20


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _beginning(path: Path, encoding: str) -> list[str]:
    lines = read_lines(path, encoding, error=DataError)
    return list(islice((line for _, line in lines if line.strip()), _LINES))


def recognised_format(path: Path | str, encoding: str = "utf-8") -> str | None:
    """Return the name of the first format that recognises a file; None where none does."""
    ending, lines = _ending(Path(path)), _beginning(Path(path), encoding)
    return next((name for name, one in TAXONOMIES.items() if one.recognises(ending, lines)), None)


def read_taxonomy(path: Path | str, format: str | None = None, **options: Any) -> Taxonomy:
    """Read a file of categories, plain or gzipped; the options are those of its format."""
    path = Path(path)
    given = {key: str(value) for key, value in options.items() if value is not None}
    encoding = given.get("encoding", "utf-8")
    name = recognised_format(path, encoding) if format is None else format
    if name is None:
        lines = _beginning(path, encoding)
        begins = f"which begins with {lines[0][:60]!r}" if lines else "which is empty"
        fix = f"name the format with --format, one of {', '.join(sorted(TAXONOMIES))}"
        raise UsageError(f"no taxonomy format recognises {path}, {begins}", fix)
    if name not in TAXONOMIES:
        raise UnknownNameError("taxonomy format", name, TAXONOMIES)
    read = TAXONOMIES[name].read
    _, *known = inspect.signature(read).parameters
    for key in given.keys() - known:
        fix = f"its options: {', '.join(known) or 'none'}"
        raise UsageError(f"taxonomy format {name!r} has no option {key!r}", fix)
    return read(path, **given)


_LANGUAGE = re.compile(r"(?<![A-Za-z])([a-z]{2}[-_][A-Z]{2})(?![A-Za-z])")


def _language_of(file: Path) -> str | None:
    """Return the language that a file's name ends with (``taxonomy.de-DE.txt``)."""
    found = _LANGUAGE.search(file.name)
    return found[1].replace("_", "-") if found else None


def _stem(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).stem


def _where(file: Path, line: int) -> str:
    return f"{file.name}, line {line}"


def _names_of(text: str, where: str, separator: str = SEPARATOR) -> Names:
    """Return the names of a path, each one line of plain text."""
    levels = text.count(separator) + 1
    if levels > MAX_LEVELS:
        raise DataError(f"{where} has {levels:,} levels, more than {MAX_LEVELS}", "check the separator")
    bare = separator.strip()
    names = tuple(plain_text(part) for part in text.strip().split(separator))
    # What is left of the separator at an end of the line stands for a name that is not there.
    if not all(names) or (bare and (names[0].startswith(f"{bare} ") or names[-1].endswith(f" {bare}"))):
        raise DataError(f"{where}: a level of {text.strip()[:80]!r} has no name", "name every level")
    return names


Listed = tuple[int, Names, str]
"""The line of a category, its path, and its code or ``""``."""


def _taxonomy(file: Path, listed: Iterable[Listed], name: str = "", version: str = "") -> Taxonomy:
    """Build the tree of the categories that a file lists; missing ancestors are added, repeated lines counted."""
    lines: dict[Names, int] = {}
    path_of: dict[str, Names] = {}
    code_of: dict[Names, str] = {}
    repeated = 0
    for line, path, code in listed:
        known = path_of.setdefault(code, path) if code else path
        if known != path:
            raise DataError(
                f"{_where(file, line)}: id {code} is {SEPARATOR.join(path)!r}, and {SEPARATOR.join(known)!r} in "
                f"line {lines[known]}",
                "ids must be unique",
            )
        if code and code_of.setdefault(path, code) != code:
            raise DataError(
                f"{_where(file, line)}: {SEPARATOR.join(path)!r} has the id {code}, and {code_of[path]} "
                f"in line {lines[path]}",
                "a category is known by its path: name one of them differently",
            )
        repeated += lines.setdefault(path, line) != line
    if not lines:
        raise DataError(f"{file} lists no categories", "fetch it again, or name another file")
    tree, notes = CategoryTree(lines, code_of), []
    if missing := [path for path in tree.paths if path not in lines]:
        first = SEPARATOR.join(missing[0])
        notes.append(
            f"{len(missing):,} categories that only stand in paths of others added, the first: {first}"
        )
    if repeated:
        notes.append(f"{repeated:,} lines that repeat a category left out")
    return Taxonomy(tree, name or _stem(file), version, _language_of(file), tuple(notes))


def _lines_of(path: Path, encoding: str, pattern: re.Pattern[str]) -> tuple[str, list[tuple[int, str]]]:
    """Return the version that a comment at the top gives, and the numbers and texts of the other lines."""
    version = ""
    lines: list[tuple[int, str]] = []
    for number, line in read_lines(path, encoding, error=DataError):
        text = line.strip()
        if text.startswith("#") and not lines:
            found = pattern.match(text)
            version = version or (found[1] if found else "")
        elif text:
            lines.append((number, text))
    return version, lines


# Google's lines are ``1604 - A > B``, or paths alone. An id of Shopify's is its parent's with a number more, so that
# every line gives its place twice.
_GID = "gid://shopify/TaxonomyCategory/"
_GOOGLE = re.compile(r"#\s*Google_Product_Taxonomy_Version:\s*(\S+)")
_SHOPIFY = re.compile(r"#\s*(?:Shopify|Taxonomy).*?:\s*(\d\S*)\s*$")
_GOOGLE_LINE = re.compile(r"(\d+) - (.*)")
_SHOPIFY_LINE = re.compile(rf"({_GID}[a-z]+(?:-\d+)*)\s+:\s+(.*)")


def _is_google(ending: str, lines: Sequence[str]) -> bool:
    first = next((line.strip() for line in lines if not line.startswith("#")), "")
    return bool(lines and _GOOGLE.match(lines[0])) or _GOOGLE_LINE.fullmatch(first) is not None


def _is_shopify(ending: str, lines: Sequence[str]) -> bool:
    return next((line for line in lines if not line.startswith("#")), "").startswith(_GID)


def _with_ids(path: Path, lines: Iterable[tuple[int, str]], pattern: re.Pattern[str]) -> list[Listed]:
    listed: list[Listed] = []
    for number, text in lines:
        where, given = _where(path, number), pattern.fullmatch(text)
        if given is None:
            raise DataError(
                f"{where} has no id: {text[:60]!r}", "ID and PATH are expected: fetch the file again"
            )
        listed.append((number, _names_of(given[2], where), given[1]))
    return listed


def _read_google(path: Path, encoding: str = "utf-8") -> Taxonomy:
    version, lines = _lines_of(path, encoding, _GOOGLE)
    if lines and _GOOGLE_LINE.fullmatch(lines[0][1]):  # in all lines or in none
        listed = _with_ids(path, lines, _GOOGLE_LINE)
    else:
        listed = [(number, _names_of(text, _where(path, number)), "") for number, text in lines]
    return _taxonomy(path, listed, "Google product taxonomy", version)


def _read_shopify(path: Path, encoding: str = "utf-8") -> Taxonomy:
    version, lines = _lines_of(path, encoding, _SHOPIFY)
    listed = _with_ids(path, lines, _SHOPIFY_LINE)
    path_of = {code: names for _, names, code in listed}
    for number, names, code in listed:
        above = path_of.get(code.rpartition("-")[0], names[:-1])
        own, place = f"{SEPARATOR.join(names)!r}", code.removeprefix(_GID)
        if code.count("-") + 1 != len(names):
            message = f"id {place} is on level {code.count('-') + 1}, {own} on level {len(names)}"
        elif above != names[:-1]:
            message = f"by its id {own} stands under {SEPARATOR.join(above)!r}"
        else:
            continue
        raise DataError(f"{_where(path, number)}: {message}", "fetch the file again")
    return _taxonomy(path, listed, "Shopify product taxonomy", version)


# Tables of id, parent's id and name: a root has an empty parent, ``null``, ``0`` … where no category has that id.
_IDS = ("id", "category_id", "node_id", "code")
_PARENTS = ("parent_id", "parent", "parentid", "parent_category_id", "parent_node_id", "parent_code")
_NAMES = ("name", "category_name", "title", "label", "category")
_NONE = ("", "null", "none", "nan", "0", "-1")
_SHOWN = 5


def _header(lines: Sequence[str]) -> set[str]:
    first = lines[0] if lines else ""
    return {plain_column(name) for delimiter in DELIMITERS.values() for name in first.split(delimiter)}


def _is_parents(ending: str, lines: Sequence[str]) -> bool:
    return all(_header(lines) & set(names) for names in (_IDS, _PARENTS, _NAMES))


class _Node(NamedTuple):
    line: int
    name: str
    parent: str


def _read_parents(
    path: Path,
    id_column: str | None = None,
    parent_column: str | None = None,
    name_column: str | None = None,
    orphans: str = "error",
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
    lost = [
        code for code, one in nodes.items() if one.parent not in nodes and one.parent.lower() not in _NONE
    ]
    if lost and orphans == "error":
        shown = [f"{nodes[code].name!r} (id {code}, parent {nodes[code].parent})" for code in lost[:_SHOWN]]
        raise DataError(
            f"{path.name}: {len(lost):,} of {len(nodes):,} categories have a parent that is not there: "
            + ", ".join([*shown, *(["…"] if len(lost) > _SHOWN else [])]),
            "add their parents, or make roots of them with orphans=root",
        )
    paths = _paths_of(path, nodes)
    codes: dict[Names, str] = {}
    twins = [code for code, names in paths.items() if codes.setdefault(names, code) != code]
    notes = []
    if lost:
        first = paths[lost[0]][0]
        notes.append(f"{len(lost):,} categories whose parent is not there made roots, the first: {first}")
    if twins:
        names = paths[twins[0]]
        notes.append(
            f"{len(twins):,} categories with the name of a sibling are one with it, the first: "
            f"{SEPARATOR.join(names)} (ids {codes[names]} and {twins[0]})"
        )
    tree = CategoryTree(paths.values(), codes)
    return Taxonomy(tree, _stem(path), "", _language_of(path), tuple(notes))


def _nodes(table: DelimitedTable, columns: tuple[int, int, int]) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for line, fields in table.rows():
        where = table.where(line)
        if len(fields) <= max(columns):
            raise DataError(f"{where} has {len(fields)} fields, not {len(table.columns)}", "fill all columns")
        code, parent, name = (fields[place].strip() for place in columns)
        name = plain_text(name)
        if not code or not name:
            raise DataError(f"{where}: no {'name' if code else 'id'}", "every category has both")
        if code in nodes:
            before = nodes[code]
            raise DataError(
                f"{where}: id {code} is {name!r}, and {before.name!r} in line {before.line}",
                "ids must be unique",
            )
        nodes[code] = _Node(line, name, parent)
    if not nodes:
        raise DataError(f"{table.file} lists no categories", "fetch it again, or name another file")
    return nodes


def _paths_of(file: Path, nodes: dict[str, _Node]) -> dict[str, Names]:
    """Return the path of every node; a DataError where one stands above itself."""
    paths: dict[str, Names] = {}
    for first in nodes:
        way: dict[str, None] = {}  # from the node up to one whose path is known, or to a root
        code = first
        while code in nodes and code not in paths:
            if code in way:
                raise _cycle(file, nodes, [*way][[*way].index(code) :])
            way[code] = None
            code = nodes[code].parent
        for code in reversed(way):
            node = nodes[code]
            paths[code] = (*paths.get(node.parent, ()), node.name)
            if len(paths[code]) > MAX_LEVELS:
                raise DataError(
                    f"{_where(file, node.line)}: {node.name!r} (id {code}) is on level "
                    f"{MAX_LEVELS + 1}, a tree has {MAX_LEVELS} at most",
                    "check the column of parents",
                )
    return paths


def _cycle(file: Path, nodes: dict[str, _Node], codes: list[str]) -> DataError:
    named = [f"{nodes[code].name!r} (id {code})" for code in codes]
    shown = named if len(named) <= _SHOWN else [*named[:_SHOWN], "…"]
    where = _where(file, nodes[codes[0]].line)
    way = " → ".join([*shown, named[0]])
    message = f"{where}: {len(codes):,} categories stand above themselves: {way}"
    return DataError(message, "each arrow is to the parent: correct one of them")


_TABLES = (".csv", ".tsv")
_NO_LISTS = (".json", ".jsonl", ".xml")
_PATHS = ("path", "category_path", "full_path", "fullpath", "category", "categories", "product_type")
_CODES = ("id", "category_id", "code")
_NO_VERSION = re.compile("(?!)()")


def _is_paths(ending: str, lines: Sequence[str]) -> bool:
    if ending in _TABLES and lines:
        return bool(_header(lines) & set(_PATHS))
    return ending not in _NO_LISTS and any(SEPARATOR in line for line in lines)


def _read_paths(
    path: Path,
    column: str | None = None,
    id_column: str | None = None,
    separator: str = SEPARATOR,
    encoding: str = "utf-8",
) -> Taxonomy:
    if not separator.strip():
        raise UsageError(f"separator is {separator!r}", "what stands between two names, e.g. ' > ' or '/'")
    rows: Iterable[tuple[int, str, str]]
    if _ending(path) in _TABLES or column is not None:
        table = DelimitedTable(path, encoding)
        place = table.place(column, _PATHS, "paths", "column=NAME")
        if id_column is None:
            codes = table.places(_CODES)[:1]
        else:
            codes = [table.place(id_column, (), "ids", "id_column=NAME")]

        def field_of(fields: Sequence[str], places: Sequence[int]) -> str:
            return "".join(fields[one].strip() for one in places if one < len(fields))

        rows = (
            (number, field_of(fields, [place]), field_of(fields, codes)) for number, fields in table.rows()
        )
    elif id_column is not None:
        raise UsageError(f"{path} is no table, it has no column {id_column!r}", "leave id_column out")
    else:
        rows = ((number, text, "") for number, text in _lines_of(path, encoding, _NO_VERSION)[1])
    return _taxonomy(
        path,
        (
            (number, _names_of(text.removeprefix(separator), _where(path, number), separator), code)
            for number, text, code in rows  # "/Home/Lamps" begins with the separator
        ),
    )


def _is_written(ending: str, lines: Sequence[str]) -> bool:
    return ending == ".json" and lines[:1] == ["{"] and any('"fingerprint": "' in line for line in lines)


def _read_written(path: Path) -> Taxonomy:
    document = read_json(path, DataError)
    try:
        codes = {tuple(map(str, one["path"])): str(one.get("id", "")) for one in document["categories"]}
        name, version = str(document.get("name") or _stem(path)), str(document.get("version") or "")
        language, wanted = document.get("language"), document.get("fingerprint")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"{path} is no tree that diptych wrote ({type(error).__name__}: {error})"
        raise DataError(message, "write it again") from None
    tree = CategoryTree(codes, {names: code for names, code in codes.items() if code})
    if tree.fingerprint != wanted:
        message = f"{path} gives its tree as {wanted}, and holds {tree.fingerprint}"
        raise DataError(message, "it was changed: write it again")
    return Taxonomy(tree, name, version, language if isinstance(language, str) else None)


TAXONOMIES = {
    "google": TaxonomyFormat(
        "Google's product taxonomy, with ids (1604 - Apparel & Accessories > Clothing) or without",
        _is_google,
        _read_google,
    ),
    "shopify": TaxonomyFormat(
        "Shopify's product taxonomy: categories.txt (gid://shopify/TaxonomyCategory/ap-2 : A > B)",
        _is_shopify,
        _read_shopify,
    ),
    "written": TaxonomyFormat("the JSON of diptych categories tree --out", _is_written, _read_written),
    "parents": TaxonomyFormat("a CSV or TSV file of id, parent's id and name", _is_parents, _read_parents),
    "paths": TaxonomyFormat(
        "a path per line (Home > Women > Dresses), or a column of paths in a CSV or TSV file",
        _is_paths,
        _read_paths,
    ),
}
"""Formats by name; the first that recognises a file reads it, so more general ones come last."""
