"""Category trees, and the files of them: Google's, Shopify's, tables of parents, lists of paths, and Diptych's JSON."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import file_errors, read_json, read_lines, read_toml
from diptych.data.lines import DELIMITERS, DelimitedTable, plain_column
from diptych.data.products import MAX_LEVELS, plain_text
from diptych.data.readers.contract import choice

SEPARATOR = " > "  # between the names of a path, as shops write it

Names = tuple[str, ...]


class CategoryTree:
    """A forest of categories; nodes are numbered in the order of their sorted paths, so parents come first."""

    def __init__(
        self,
        paths: Iterable[Sequence[str]],  # of categories; their ancestors are added
        codes: Mapping[Names, str] | None = None,  # a taxonomy's own ids by path, where there are some
        name: str = "",  # as are version and language, of a taxonomy as published, or of its file, e.g. en-US
        version: str = "",
        language: str = "",
        notes: Sequence[str] = (),  # what was mended and what a user should know, one line each
    ) -> None:
        self.name: str = name
        self.version: str = version
        self.language: str = language
        self.notes: tuple[str, ...] = tuple(notes)
        nodes: set[Names] = set()
        for path in map(tuple, paths):
            if not all(path) or not 0 < len(path) <= MAX_LEVELS:
                message = f"category path {list(path[:3])} … has {len(path):,} levels or one without a name"
                raise DataError(message, f"give 1 to {MAX_LEVELS} names, from a root to one category")
            nodes.update(path[:end] for end in range(1, len(path) + 1))
        self.paths: tuple[Names, ...] = tuple(sorted(nodes))
        self.codes: Mapping[Names, str] = dict(codes or {})
        self._number = {path: number for number, path in enumerate(self.paths)}
        n, names = len(self.paths), Counter(path[-1] for path in self.paths)
        # Of (n,) nodes: how many names a path has; (n, deepest) ancestors from the root on, itself last, then -1.
        self.depth: np.ndarray = np.array([len(path) for path in self.paths], dtype=np.int64)
        self.lineage: np.ndarray = np.full((n, int(self.depth.max(initial=1))), -1, dtype=np.int64)
        for number, path in enumerate(self.paths):
            self.lineage[number, : len(path)] = [self._number[path[:end]] for end in range(1, len(path) + 1)]
        self.root: np.ndarray = self.lineage[:, 0]  # a root's own is itself, its parent -1
        self.parent: np.ndarray = np.array(
            [self._number.get(path[:-1], -1) for path in self.paths], dtype=np.int64
        )
        self.children: np.ndarray = np.bincount(self.parent + 1, minlength=n + 1)[1:]
        self.is_leaf: np.ndarray = self.children == 0
        self.shares_name: np.ndarray = np.array([names[path[-1]] > 1 for path in self.paths], dtype=bool)
        self.fingerprint: str = fingerprint(iter(self.paths))

    def __len__(self) -> int:
        return len(self.paths)

    def __contains__(self, path: object) -> bool:
        return path in self._number

    def node(self, path: Sequence[str]) -> int:
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
        return SEPARATOR.join(self.paths[node])

    def describe(self) -> str:
        known = " ".join(filter(None, (self.name, self.version, self.language)))
        levels, roots, leaves = int(self.depth.max(initial=0)), (self.parent < 0).sum(), self.is_leaf.sum()
        noun = "level" if levels == 1 else "levels"
        sizes = f"{len(self):,} categories on {levels} {noun}: {roots:,} most general, {leaves:,} without children"
        return f"{known}: {sizes}" if known else sizes


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def shape_of(tree: CategoryTree) -> dict[str, Any]:
    """Count the categories of each level, the names that several have, and categories without siblings."""
    levels: list[dict[str, Any]] = []
    for level in np.unique(tree.depth).tolist():
        here = tree.children[tree.depth == level]
        some = here[here > 0]
        counts = {"level": level, "categories": len(here), "leaves": len(here) - len(some)}
        mean = float(some.mean()) if len(some) else 0.0
        levels.append({**counts, "most_children": int(here.max()), "mean_children": mean})
    names = sorted(Counter(path[-1] for path in tree.paths).items(), key=lambda one: (-one[1], one[0]))
    return {
        "categories": len(tree),
        "levels": levels,
        "shared": {name: count for name, count in names if count > 1},
        "only_children": int((tree.children[tree.parent[tree.parent >= 0]] == 1).sum()),
    }


@dataclass(frozen=True)
class TaxonomyFormat:
    """One format of taxonomy files, as ``taxonomy.toml`` declares it."""

    description: str
    read: str  # the reader's name
    name: str = ""
    begins: str = ""
    line: str = "()(.*)"
    nested_ids: bool = False
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def recognises(self, ending: str, lines: Sequence[str]) -> bool:
        """Return whether a file with this ending and these first lines is of the format."""
        header = {plain_column(name) for mark in DELIMITERS.values() for name in lines[0].split(mark)}
        if self.columns and (ending in _TABLES or not self.begins):
            return all(header & set(names) for names in self.columns.values())
        return re.match(self.begins, "\n".join(lines)) is not None


TAXONOMIES = {
    name: TaxonomyFormat(**values) for name, values in read_toml(Path(__file__).with_suffix(".toml")).items()
}

_TABLES = (".csv", ".tsv")
_LINES, _SHOWN = 20, 5


def recognised_format(path: Path | str, encoding: str = "utf-8") -> str | None:
    """Return the name of the first format that recognises a file; None where none does."""
    lines = (line.strip() for _, line in read_lines(Path(path), encoding, error=DataError) if line.strip())
    ending, first = _ending(Path(path)), list(islice(lines, _LINES))
    return next((name for name, one in TAXONOMIES.items() if first and one.recognises(ending, first)), None)


def read_taxonomy(path: Path | str, format: str | None = None, **options: Any) -> CategoryTree:
    """Read a file of categories, plain or gzipped; the options are those of its format."""
    path, given = Path(path), {key: str(value) for key, value in options.items() if value is not None}
    name = format or recognised_format(path, given.get("encoding", "utf-8"))
    if name is None:
        fix = f"name the format with --format, one of {', '.join(sorted(TAXONOMIES))}"
        raise UsageError(f"no taxonomy format recognises {path}", fix)
    if name not in TAXONOMIES:
        raise UnknownNameError("taxonomy format", name, TAXONOMIES)
    read = _READERS[TAXONOMIES[name].read]
    _, _, *known = inspect.signature(read).parameters
    if unknown := sorted(given.keys() - known):
        message = f"taxonomy format {name!r} has no option {unknown[0]!r}"
        raise UsageError(message, f"its options: {', '.join(known) or 'none'}")
    return read(path, TAXONOMIES[name], **given)


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


Listed = tuple[str, Names, str]  # where, path, and code or ""

_LANGUAGE = re.compile(r"(?<![A-Za-z])([a-z]{2})[-_]([A-Z]{2})(?![A-Za-z])")


def _taxonomy(
    path: Path, listed: Sequence[Listed], name: str = "", version: str = "", notes: Sequence[str] = ()
) -> CategoryTree:
    """Build the tree of the categories that a file lists; missing ancestors are added, repeated lines counted."""
    code_of: dict[Names, str] = {}
    path_of: dict[str, Names] = {}
    for where, names, code in listed:
        code_of[names] = known = code_of.get(names) or code
        if code and (known != code or path_of.setdefault(code, names) != names):
            own, other = (SEPARATOR.join(one) for one in (names, path_of.get(code, names)))
            message = (
                f"{where}: id {code} is {own!r}; before, {own!r} had id {known}, and id {code} was {other!r}"
            )
            raise DataError(message, "give every category one id and one path")
    if not code_of:
        raise DataError(f"{path} lists no categories", "fetch it again, or name another file")
    notes, codes = list(notes), {names: code for names, code in code_of.items() if code}
    above = {names[:end] for names in code_of for end in range(1, len(names))} - code_of.keys()
    if above:
        added = f"{len(above):,} categories that only stand in paths of others added, the first: "
        notes.append(added + SEPARATOR.join(min(above)))
    if repeated := len(listed) - len(code_of):
        notes.append(f"{repeated:,} lines that repeat a category left out")
    language, stem = _LANGUAGE.search(path.name), Path(path.name.removesuffix(".gz")).stem
    return CategoryTree(
        code_of, codes, name or stem, version, "-".join(language.groups()) if language else "", notes
    )


def _names_of(text: str, where: str, separator: str = SEPARATOR) -> Names:
    """Return the names of a path, each one line of plain text."""
    text, edge = text.removeprefix(separator).strip(), separator.strip()  # "/Home/Lamps"
    if (levels := text.count(separator) + 1) > MAX_LEVELS:
        raise DataError(f"{where} has {levels:,} levels, more than {MAX_LEVELS}", "check the separator")
    names = tuple(plain_text(part) for part in text.split(separator))
    # What is left of the separator at an end of the line stands for a name that is not there.
    if not all(names) or names[0].startswith(f"{edge} ") or names[-1].endswith(f" {edge}"):
        raise DataError(f"{where}: a level of {text[:80]!r} has no name", "name every level")
    return names


_VERSION = re.compile(r"#\s*(?:Google_Product_Taxonomy_Version|Shopify|Taxonomy).*?:\s*(\d\S*)\s*$")


def _read_lines(
    path: Path, form: TaxonomyFormat, encoding: str = "utf-8", separator: str = SEPARATOR
) -> CategoryTree:
    """Read lines of code and path, after comments with a version; all have a code or none."""
    version, listed = "", list[Listed]()
    for number, text in read_lines(path, encoding, error=DataError):
        where, text = f"{path.name}, line {number}", text.strip()
        if text.startswith("#") and not listed:
            version = version or "".join(_VERSION.findall(text))
        elif text and (found := re.fullmatch(form.line, text)):
            listed.append((where, _names_of(found[2], where, separator), found[1] or ""))
            if bool(found[1]) != bool(listed[0][2]):
                message = f"{where} has {'an' if found[1] else 'no'} id: {text[:60]!r}"
                raise DataError(message, "ids stand in all lines or in none: fetch the file again")
    path_of = {code: names for _, names, code in listed if form.nested_ids}
    for where, names, code in listed if form.nested_ids else ():
        above = path_of.get(code.rpartition("-")[0], names[:-1]) if "-" in code else ()
        if above != names[:-1]:
            own, by_id = SEPARATOR.join(names), SEPARATOR.join(above)
            raise DataError(f"{where}: by its id {code} {own!r} stands under {by_id!r}", "fetch it again")
    return _taxonomy(path, listed, form.name, version)


# A root has no parent, or one of these where no category has that id.
_NO_PARENT = ("", "null", "none", "nan", "0", "-1")


def _read_parents(
    path: Path,
    form: TaxonomyFormat,
    id_column: str | None = None,
    parent_column: str | None = None,
    name_column: str | None = None,
    orphans: str = "error",
    encoding: str = "utf-8",
) -> CategoryTree:
    choice("orphans", orphans, ("error", "root"))
    table, given = DelimitedTable(path, encoding), (id_column, parent_column, name_column)
    columns = [
        table.place(one, known, what, f"{what[:-1]}_column=NAME")
        for one, (what, known) in zip(given, form.columns.items(), strict=True)
    ]
    nodes: dict[str, tuple[str, str]] = {}  # parent and name by code
    for line, fields in table.rows():
        code, parent, name = (plain_text(_field(fields, column)) for column in columns)
        if not code or not name:
            raise DataError(f"{table.where(line)}: a category without id or name", "every category has both")
        if nodes.setdefault(code, (parent, name)) != (parent, name):
            message = f"{table.where(line)}: id {code} is {name!r}, and was {nodes[code][1]!r} before"
            raise DataError(message, "ids must be unique")
    lost = {code for code, (one, _) in nodes.items() if one not in nodes and one.lower() not in _NO_PARENT}
    few = [f"{name!r} (id {code}, parent {one})" for code, (one, name) in nodes.items() if code in lost]
    first, notes = ", ".join(few[:_SHOWN]), list[str]()
    if lost and orphans == "error":
        message = f"{path.name}: {len(lost):,} of {len(nodes):,} categories have a parent that is not there: {first}"
        raise DataError(message, "add their parents, or make roots of them with orphans=root")
    if lost:
        notes.append(f"{len(lost):,} categories whose parent is not there made roots: {first}")
    try:
        above = {code: {one} & nodes.keys() for code, (one, _) in nodes.items()}
        order = list(TopologicalSorter(above).static_order())  # parents first
    except CycleError as error:
        cycle = error.args[1][::-1]
        shown = " → ".join(f"{nodes[one][1]!r} (id {one})" for one in cycle[: _SHOWN + 1])
        message = f"{path.name}: {len(cycle) - 1:,} categories stand above themselves: {shown}"
        raise DataError(message, "each arrow is to the parent: correct one of them") from None
    paths, codes, twins = dict[str, Names](), dict[Names, str](), list[str]()
    for code in order:
        parent, name = nodes[code]
        paths[code] = (*paths.get(parent, ()), name)[: MAX_LEVELS + 1]
    for code in nodes:
        if codes.setdefault(paths[code], code) != code:
            twins.append(f"{SEPARATOR.join(paths[code])} (ids {codes[paths[code]]} and {code})")
    if twins:
        notes.append(
            f"{len(twins):,} categories with a sibling's name are one with it, the first: {twins[0]}"
        )
    return _taxonomy(path, [("", names, code) for names, code in codes.items()], notes=notes)


def _field(fields: Sequence[str], column: int) -> str:
    return fields[column].strip() if column < len(fields) else ""


def _read_paths(
    path: Path,
    form: TaxonomyFormat,
    column: str | None = None,
    id_column: str | None = None,
    separator: str = SEPARATOR,
    encoding: str = "utf-8",
) -> CategoryTree:
    if not separator.strip():
        raise UsageError(f"separator is {separator!r}", "what stands between two names, e.g. ' > ' or '/'")
    if _ending(path) not in _TABLES and column is None and id_column is None:
        return _read_lines(path, form, encoding, separator)
    table = DelimitedTable(path, encoding)
    place = table.place(column, form.columns["paths"], "paths", "column=NAME")
    codes = table.places(TAXONOMIES["parents"].columns["ids"])[:1]
    if id_column is not None:
        codes = [table.place(id_column, (), "ids", "id_column=NAME")]
    listed = list[Listed]()
    for line, fields in table.rows():
        where, code = table.where(line), "".join(_field(fields, one) for one in codes)
        listed.append((where, _names_of(_field(fields, place), where, separator), code))
    return _taxonomy(path, listed)


def _read_written(path: Path, form: TaxonomyFormat) -> CategoryTree:
    document, fix = read_json(path, DataError), "write it again"
    with file_errors(path, DataError, fix, "a tree that diptych wrote"):
        codes = {tuple(map(str, one["path"])): str(one.get("id", "")) for one in document["categories"]}
        name, version, language = (str(document.get(key) or "") for key in ("name", "version", "language"))
    known = {names: code for names, code in codes.items() if code}
    tree = CategoryTree(codes, known, name or path.stem, version, language)
    if tree.fingerprint != document.get("fingerprint"):
        own = document.get("fingerprint")
        raise DataError(f"{path} gives its tree as {own!r}, and holds {tree.fingerprint}", fix)
    return tree


_READERS: Mapping[str, Callable[..., CategoryTree]] = {
    "lines": _read_lines,
    "written": _read_written,
    "parents": _read_parents,
    "paths": _read_paths,
}
"""By name; their keyword arguments are the options of formats."""
