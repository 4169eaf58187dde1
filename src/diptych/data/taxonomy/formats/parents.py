"""A table of id, parent's id and name: what most databases of shops give.

A root has no parent: an empty field, ``null``, ``none``, ``0`` or ``-1`` where no category has that id.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from diptych.core.errors import DataError, UsageError
from diptych.data.delimited import DelimitedTable, plain_column
from diptych.data.products import plain_text
from diptych.data.taxonomy.declaration import TAXONOMIES, Beginning, Taxonomy, TaxonomyFormat
from diptych.data.taxonomy.listing import language_of, stem_of
from diptych.data.taxonomy.tree import MAX_LEVELS, SEPARATOR, CategoryTree
from diptych.data.taxonomy.tree import Path as Names

__all__: list[str] = []

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


def _recognises(beginning: Beginning) -> bool:
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
    """The parent of each node that has one, and the orphans that became roots."""
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
    """The path of every node; there are no cycles."""
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


def _read(
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
        _recognises,
        _read,
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
