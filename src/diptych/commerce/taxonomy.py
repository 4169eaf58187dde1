"""Category trees, and the files of them: Google's, Shopify's, tables of parents, lists of paths, and Diptych's JSON."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint_lists
from diptych.core.reading import read_json, read_lines
from diptych.data.lines import DELIMITERS, DelimitedTable, plain_column
from diptych.data.products import MAX_LEVELS, plain_text

SEPARATOR = " > "  # between the names of a path, as shops write it

Names = tuple[str, ...]


class CategoryTree:
    """A forest of categories; nodes are numbered in the order of their sorted paths, so parents come first.

    Args:
        paths: of categories; their ancestors are added.
        codes: a taxonomy's own ids by path, for as many categories as have one.

    Attributes:
        depth: (n,) int64: the number of names of each path; 1 for a root.
        lineage: (n, deepest) int64: row i holds node i's ancestors from the root on, itself last, then -1.
        root, parent: (n,) int64: of each node; a root is its own root and has the parent -1.
        is_leaf: (n,) booleans: nodes without children.
        shares_name: (n,) booleans: nodes whose name another node has as well.
    """

    def __init__(self, paths: Iterable[Sequence[str]], codes: Mapping[Names, str] | None = None) -> None:
        nodes: set[Names] = set()
        for path in map(tuple, paths):
            if not all(path) or not 0 < len(path) <= MAX_LEVELS:
                message = f"category path {list(path[:3])} … has {len(path):,} levels or one without a name"
                raise DataError(message, f"give 1 to {MAX_LEVELS} names, from a root to one category")
            while path and path not in nodes:
                nodes.add(path)
                path = path[:-1]
        self.paths: tuple[Names, ...] = tuple(sorted(nodes))
        self.codes: Mapping[Names, str] = dict(codes or {})
        self._number = {path: number for number, path in enumerate(self.paths)}
        n, names = len(self.paths), Counter(path[-1] for path in self.paths)
        self.depth = np.array([len(path) for path in self.paths], dtype=np.int64)
        self.lineage = np.full((n, int(self.depth.max(initial=1))), -1, dtype=np.int64)
        for number, path in enumerate(self.paths):
            self.lineage[number, : len(path)] = [self._number[path[: end + 1]] for end in range(len(path))]
        self.root: np.ndarray = self.lineage[:, 0]
        self.parent = np.array([self._number.get(path[:-1], -1) for path in self.paths], dtype=np.int64)
        self.children = np.bincount(self.parent + 1, minlength=n + 1)[1:]
        self.is_leaf: np.ndarray = self.children == 0
        self.shares_name = np.array([names[path[-1]] > 1 for path in self.paths], dtype=bool)
        self.fingerprint = fingerprint_lists(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __contains__(self, path: object) -> bool:
        return path in self._number

    def node(self, path: Sequence[str]) -> int:
        """Return the number of the node with this path."""
        if tuple(path) not in self:
            raise DataError(f"no category {SEPARATOR.join(path)!r}", "give the names from a root on")
        return self._number[tuple(path)]

    def meant(self, words: str) -> list[int]:
        """Return the nodes whose name or whole path the words are, whatever their case and spaces."""
        path, whole = tuple(map(_folded, words.split(SEPARATOR.strip()))), _folded(words)
        paths = (tuple(map(_folded, names)) for names in self.paths)
        return [node for node, names in enumerate(paths) if names == path or names[-1] == whole]

    def ancestors(self, node: int) -> np.ndarray:
        """Return the nodes on the way from the root to ``node``, itself last."""
        return self.lineage[node, : self.depth[node]]

    def common(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the number of names that the paths of two nodes share from the root on; 0 in different trees."""
        same = (self.lineage[left] == self.lineage[right]) & (self.lineage[left] >= 0)
        shared: np.ndarray = np.cumprod(same, axis=-1).sum(axis=-1)
        return shared

    def distance(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the edges between two nodes; different trees are joined above their roots."""
        steps: np.ndarray = self.depth[left] + self.depth[right] - 2 * self.common(left, right)
        return steps

    def text(self, node: int) -> str:
        """Return the path as shops write it."""
        return SEPARATOR.join(self.paths[node])

    def describe(self) -> str:
        """Return one line: nodes, roots, levels, leaves."""
        levels = int(self.depth.max(initial=0))
        return (
            f"{len(self):,} categories on {levels} {'level' if levels == 1 else 'levels'}: "
            f"{int((self.parent < 0).sum()):,} most general, {int(self.is_leaf.sum()):,} without children"
        )


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def shape_of(tree: CategoryTree) -> dict[str, Any]:
    """Count the categories of each level, the names that several have, and categories without siblings."""
    levels: list[dict[str, Any]] = []
    for level in range(1, int(tree.depth.max(initial=0)) + 1):
        here = tree.children[tree.depth == level]
        some = here[here > 0]
        levels.append({"level": level, "categories": len(here), "leaves": len(here) - len(some)})
        mean = float(some.mean()) if len(some) else 0.0
        levels[-1] |= {"most_children": int(here.max()), "mean_children": mean}
    names = sorted(Counter(path[-1] for path in tree.paths).items(), key=lambda one: (-one[1], one[0]))
    return {
        "categories": len(tree),
        "levels": levels,
        "shared": {name: count for name, count in names if count > 1},
        "only_children": int((tree.children[tree.parent[tree.parent >= 0]] == 1).sum()),
    }


def tree_content(tree: CategoryTree, counts: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return a tree as JSON-able values, which the format ``written`` reads; ``counts`` are (n,) numbers by name."""
    nodes: list[dict[str, Any]] = []
    for node, path in enumerate(tree.paths):
        code = {"id": tree.codes[path]} if path in tree.codes else {}
        nodes.append({"path": list(path), **code, **{name: int(of[node]) for name, of in counts.items()}})
    return {"fingerprint": tree.fingerprint, "shape": shape_of(tree), "categories": nodes}


_LINES, _SHOWN = 20, 5


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
    """One format of taxonomy files."""

    description: str  # one line for help texts
    recognises: Callable[[str, Sequence[str]], bool]  # from the file's ending and its first lines
    read: Callable[..., Taxonomy]  # its keyword arguments are the format's options


def recognised_format(path: Path | str, encoding: str = "utf-8") -> str | None:
    """Return the name of the first format that recognises a file; None where none does."""
    lines = (line for _, line in read_lines(Path(path), encoding, error=DataError) if line.strip())
    ending, first = _ending(Path(path)), list(islice(lines, _LINES))
    return next((name for name, one in TAXONOMIES.items() if first and one.recognises(ending, first)), None)


def read_taxonomy(path: Path | str, format: str | None = None, **options: Any) -> Taxonomy:
    """Read a file of categories, plain or gzipped; the options are those of its format."""
    path, given = Path(path), {key: str(value) for key, value in options.items() if value is not None}
    name = format or recognised_format(path, given.get("encoding", "utf-8"))
    if name is None:
        fix = f"name the format with --format, one of {', '.join(sorted(TAXONOMIES))}"
        raise UsageError(f"no taxonomy format recognises {path}", fix)
    if name not in TAXONOMIES:
        raise UnknownNameError("taxonomy format", name, TAXONOMIES)
    _, *known = inspect.signature(TAXONOMIES[name].read).parameters
    if strange := sorted(given.keys() - known):
        fix = f"its options: {', '.join(known) or 'none'}"
        raise UsageError(f"taxonomy format {name!r} has no option {strange[0]!r}", fix)
    return TAXONOMIES[name].read(path, **given)


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


Listed = tuple[int, Names, str]  # line, path, and code or ""

_LANGUAGE = re.compile(r"(?<![A-Za-z])([a-z]{2})[-_]([A-Z]{2})(?![A-Za-z])")


def _taxonomy(
    path: Path, listed: Iterable[Listed], name: str = "", version: str = "", notes: Sequence[str] = ()
) -> Taxonomy:
    """Build the tree of the categories that a file lists; missing ancestors are added, repeated lines counted."""
    line_of: dict[Names, int] = {}
    path_of: dict[str, Names] = {}
    code_of: dict[Names, str] = {}
    repeated = 0
    for line, names, code in listed:
        known = path_of.setdefault(code, names) if code else names
        given = code_of.setdefault(names, code) if code else code
        if known != names or given != code:
            pairs = ((code, names), (given, known))
            here, there = (f"id {one} is {SEPARATOR.join(way)!r}" for one, way in pairs)
            message = f"{path.name}, line {line}: {here}, and {there} in line {line_of[known]}"
            raise DataError(message, "a category has one id and one path: name one of them differently")
        repeated += line_of.setdefault(names, line) != line
    if not line_of:
        raise DataError(f"{path} lists no categories", "fetch it again, or name another file")
    tree, notes = CategoryTree(line_of, code_of), list(notes)
    if missing := [names for names in tree.paths if names not in line_of]:
        added = f"{len(missing):,} categories that only stand in paths of others added, the first: "
        notes.append(added + SEPARATOR.join(missing[0]))
    if repeated:
        notes.append(f"{repeated:,} lines that repeat a category left out")
    language, stem = _LANGUAGE.search(path.name), Path(path.name.removesuffix(".gz")).stem
    return Taxonomy(tree, name or stem, version, language and "-".join(language.groups()), tuple(notes))


def _names_of(text: str, where: str, separator: str = SEPARATOR) -> Names:
    """Return the names of a path, each one line of plain text."""
    levels, edge = text.count(separator) + 1, separator.strip()
    if levels > MAX_LEVELS:
        raise DataError(f"{where} has {levels:,} levels, more than {MAX_LEVELS}", "check the separator")
    names = tuple(plain_text(part) for part in text.strip().split(separator))
    # What is left of the separator at an end of the line stands for a name that is not there.
    if not all(names) or names[0].startswith(f"{edge} ") or names[-1].endswith(f" {edge}"):
        raise DataError(f"{where}: a level of {text.strip()[:80]!r} has no name", "name every level")
    return names


_VERSION = re.compile(r"#\s*(?:Google_Product_Taxonomy_Version|Shopify|Taxonomy).*?:\s*(\d\S*)\s*$")


def _read_list(
    path: Path, encoding: str, line: str = "()(.*)", by: str = SEPARATOR
) -> tuple[list[Listed], str]:
    """Return the categories of lines of code and path, and the version in a comment; all have a code or none."""
    version, listed = "", list[Listed]()
    for number, text in read_lines(path, encoding, error=DataError):
        where, text = f"{path.name}, line {number}", text.strip()
        if text.startswith("#") and not listed:
            found = _VERSION.match(text)
            version = version or (found[1] if found else "")
        elif text and (found := re.fullmatch(line, text)):
            names, code = _names_of(found[2].removeprefix(by), where, by), found[1] or ""  # "/Home/Lamps"
            if listed and bool(code) != bool(listed[0][2]):
                fix = "ids stand in all lines or in none: fetch the file again"
                raise DataError(f"{where} has {'an' if code else 'no'} id: {text[:60]!r}", fix)
            listed.append((number, names, code))
    return listed, version


# Google's lines are ``1604 - A > B``, or mere paths. An id of Shopify's is its parent's with a number more, so that
# every line gives its place twice.
_GID = "gid://shopify/TaxonomyCategory/"
_GOOGLE_LINE, _SHOPIFY_LINE = r"(?:(\d+) - )?(.*)", rf"(?:({_GID}[a-z]+(?:-\d+)*)\s+:\s+)?(.*)"


def _first(lines: Iterable[str]) -> str:
    return next((line.strip() for line in lines if not line.startswith("#")), "")


def _is_google(ending: str, lines: Sequence[str]) -> bool:
    has_header = lines[0].startswith("#") and "Google_Product_Taxonomy_Version" in lines[0]
    return has_header or re.match(r"\d+ - ", _first(lines)) is not None


def _read_google(path: Path, encoding: str = "utf-8") -> Taxonomy:
    listed, version = _read_list(path, encoding, _GOOGLE_LINE)
    return _taxonomy(path, listed, "Google product taxonomy", version)


def _read_shopify(path: Path, encoding: str = "utf-8") -> Taxonomy:
    listed, version = _read_list(path, encoding, _SHOPIFY_LINE)
    path_of = {code: names for _, names, code in listed}
    for number, names, code in listed:
        above = path_of.get(code.rpartition("-")[0], names[:-1]) if "-" in code else ()
        if above != names[:-1]:
            own, by_id = SEPARATOR.join(names), SEPARATOR.join(above)
            message = f"by its id {code.removeprefix(_GID)} {own!r} stands under {by_id!r}"
            raise DataError(f"{path.name}, line {number}: {message}", "fetch the file again")
    return _taxonomy(path, listed, "Shopify product taxonomy", version)


def _header(lines: Sequence[str]) -> set[str]:
    return {plain_column(name) for delimiter in DELIMITERS.values() for name in lines[0].split(delimiter)}


# Tables of id, parent's id and name: a root has an empty parent, ``null``, ``0`` … where no category has that id.
_COLUMNS = {
    "id": ("id", "category_id", "node_id", "code"),
    "parent": ("parent_id", "parent", "parentid", "parent_category_id", "parent_node_id", "parent_code"),
    "name": ("name", "category_name", "title", "label", "category"),
}
_NONE = ("", "null", "none", "nan", "0", "-1")


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
    table, named = DelimitedTable(path, encoding), (id_column, parent_column, name_column)
    places = [
        table.place(given, known, f"{of}s", f"{of}_column=NAME")
        for given, (of, known) in zip(named, _COLUMNS.items(), strict=True)
    ]
    nodes: dict[str, _Node] = {}
    for line, fields in table.rows():
        code, parent, name = (plain_text("".join(fields[place : place + 1])) for place in places)
        before = nodes.setdefault(code, _Node(line, name, parent))
        if not code or not name:
            raise DataError(f"{table.where(line)}: a category without id or name", "every category has both")
        if before.line != line:
            message = f"{table.where(line)}: id {code} is {name!r}, and {before.name!r} in line {before.line}"
            raise DataError(message, "ids must be unique")
    lost = [c for c, one in nodes.items() if one.parent not in nodes and one.parent.lower() not in _NONE]
    first = ", ".join(f"{nodes[c].name!r} (id {c}, parent {nodes[c].parent})" for c in lost[:_SHOWN])
    if lost and orphans == "error":
        message = f"{path.name}: {len(lost):,} of {len(nodes):,} categories have a parent that is not there: {first}"
        raise DataError(message, "add their parents, or make roots of them with orphans=root")
    paths = _paths_of(path, nodes)
    codes: dict[Names, str] = {}
    twins = [code for code in nodes if codes.setdefault(paths[code], code) != code]
    notes = [f"{len(lost):,} categories whose parent is not there made roots: {first}"] if lost else []
    if twins:
        first = f"{SEPARATOR.join(paths[twins[0]])} (ids {codes[paths[twins[0]]]} and {twins[0]})"
        notes.append(f"{len(twins):,} categories with a sibling's name are one with it, the first: {first}")
    return _taxonomy(path, ((nodes[code].line, names, code) for names, code in codes.items()), notes=notes)


def _paths_of(path: Path, nodes: dict[str, _Node]) -> dict[str, Names]:
    """Return the path of every node; a DataError where one stands above itself."""
    above = {code: [one.parent] if one.parent in nodes else [] for code, one in nodes.items()}
    paths: dict[str, Names] = {}
    try:
        for code in TopologicalSorter(above).static_order():
            paths[code] = (*paths.get(nodes[code].parent, ()), nodes[code].name)
            if len(paths[code]) > MAX_LEVELS:
                where = f"{path.name}, line {nodes[code].line}: {nodes[code].name!r} (id {code})"
                raise DataError(f"{where} is deeper than {MAX_LEVELS} levels", "check the column of parents")
    except CycleError as error:
        cycle = error.args[1][::-1]  # each before its parent, the first again at the end
        way = " → ".join(f"{nodes[code].name!r} (id {code})" for code in cycle[: _SHOWN + 1])
        message = f"{path.name}: {len(cycle) - 1:,} categories stand above themselves: {way}"
        raise DataError(message, "each arrow is to the parent: correct one of them") from None
    return paths


_TABLES = (".csv", ".tsv")
_PATHS = ("path", "category_path", "full_path", "fullpath", "category", "categories", "product_type")
_CODES = ("id", "category_id", "code")


def _is_paths(ending: str, lines: Sequence[str]) -> bool:
    if ending in _TABLES:
        return bool(_header(lines) & set(_PATHS))
    return ending not in (".json", ".jsonl", ".xml") and any(SEPARATOR in line for line in lines)


def _read_paths(
    path: Path,
    column: str | None = None,
    id_column: str | None = None,
    separator: str = SEPARATOR,
    encoding: str = "utf-8",
) -> Taxonomy:
    if not separator.strip():
        raise UsageError(f"separator is {separator!r}", "what stands between two names, e.g. ' > ' or '/'")
    if _ending(path) not in _TABLES and column is None and id_column is None:
        return _taxonomy(path, _read_list(path, encoding, by=separator)[0])
    table = DelimitedTable(path, encoding)
    place = table.place(column, _PATHS, "paths", "column=NAME")
    named = id_column is not None
    codes = [table.place(id_column, (), "ids", "id_column=NAME")] if named else table.places(_CODES)[:1]
    listed: list[Listed] = []
    for line, fields in table.rows():
        text = "".join(fields[place : place + 1]).removeprefix(separator)
        code = "".join(fields[one].strip() for one in codes if one < len(fields))
        listed.append((line, _names_of(text, table.where(line), separator), code))
    return _taxonomy(path, listed)


def _read_written(path: Path) -> Taxonomy:
    document = read_json(path, DataError)
    try:
        codes = {tuple(map(str, one["path"])): str(one.get("id", "")) for one in document["categories"]}
        tree = CategoryTree(codes, {names: code for names, code in codes.items() if code})
        about = [str(document.get(key) or "") for key in ("name", "version", "language", "fingerprint")]
    except (KeyError, TypeError, AttributeError) as error:
        message = f"{path} is no tree that diptych wrote ({type(error).__name__}: {error})"
        raise DataError(message, "write it again") from None
    if tree.fingerprint != about[3]:
        message = f"{path} gives its tree as {about[3]!r}, and holds {tree.fingerprint}"
        raise DataError(message, "it was changed: write it again")
    return Taxonomy(tree, about[0] or path.stem, about[1], about[2] or None)


TAXONOMIES = {
    "google": TaxonomyFormat(
        "Google's product taxonomy, with ids (1604 - Apparel & Accessories > Clothing) or without",
        _is_google,
        _read_google,
    ),
    "shopify": TaxonomyFormat(
        "Shopify's product taxonomy: categories.txt (gid://shopify/TaxonomyCategory/ap-2 : A > B)",
        lambda _, lines: _first(lines).startswith(_GID),
        _read_shopify,
    ),
    "written": TaxonomyFormat(
        "the JSON of diptych categories tree --out",
        lambda ending, lines: ending == ".json" and any('"fingerprint": "' in line for line in lines),
        _read_written,
    ),
    "parents": TaxonomyFormat(
        "a CSV or TSV file of id, parent's id and name",
        lambda _, lines: all(_header(lines) & set(names) for names in _COLUMNS.values()),
        _read_parents,
    ),
    "paths": TaxonomyFormat(
        "a path per line (Home > Women > Dresses), or a column of paths in a CSV or TSV file",
        _is_paths,
        _read_paths,
    ),
}
"""Formats by name; the first that recognises a file reads it, so more general ones come last."""
