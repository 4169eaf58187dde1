"""CategoryTree: the nodes of a category tree, each known by its full path.

A name is no identity: "Accessories" stands under many roots. A node is the path from its root, so two nodes are
the same exactly when all names on the way are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint_lists
from diptych.core.table import Table
from diptych.data.products import MAX_LEVELS

SEPARATOR = " > "
"""Between the names of a path, as shops write it."""

Path = tuple[str, ...]


class CategoryTree:
    """A forest of categories; nodes are numbered in the order of their sorted paths, so parents come first."""

    def __init__(self, paths: Iterable[Sequence[str]], codes: Mapping[Path, str] | None = None) -> None:
        nodes: set[Path] = set()
        for given in paths:
            path = tuple(given)
            if not path or not all(path):
                raise DataError(f"category path {list(path)} has no name or an empty one", "name every level")
            if len(path) > MAX_LEVELS:
                raise DataError(
                    f"category path {SEPARATOR.join(path[:3])} … has {len(path):,} levels, more than {MAX_LEVELS}",
                    "a path is the names from a root to one category: check the separator",
                )
            while path and path not in nodes:
                nodes.add(path)
                path = path[:-1]
        self.paths: tuple[Path, ...] = tuple(sorted(nodes))
        self._number = {path: number for number, path in enumerate(self.paths)}
        self.codes: Mapping[Path, str] = dict(codes or {})

    def __len__(self) -> int:
        return len(self.paths)

    def __contains__(self, path: object) -> bool:
        return path in self._number

    def node(self, path: Sequence[str]) -> int:
        """Return the number of the node with this path."""
        wanted = tuple(path)
        if wanted not in self._number:
            known = wanted
            while known and known not in self._number:
                known = known[:-1]
            where = f"the tree has {SEPARATOR.join(known)!r} of it" if known else "no root has that name"
            raise DataError(f"no category {SEPARATOR.join(wanted)!r}", where)
        return self._number[wanted]

    def named(self, name: str) -> np.ndarray:
        """Return the nodes of that name, ascending; several where it stands under several parents."""
        return np.array(
            [number for number, path in enumerate(self.paths) if path[-1] == name], dtype=np.int64
        )

    def meant(self, words: str) -> list[int]:
        """Return the nodes whose name or whole path the words are, whatever their case and spaces."""
        path, whole = tuple(map(_folded, words.split(SEPARATOR.strip()))), _folded(words)
        paths = (tuple(map(_folded, names)) for names in self.paths)
        return [node for node, names in enumerate(paths) if names == path or names[-1] == whole]

    @cached_property
    def parent(self) -> np.ndarray:
        """(n,) int64, -1 for a root."""
        return np.array([self._number.get(path[:-1], -1) for path in self.paths], dtype=np.int64)

    @cached_property
    def depth(self) -> np.ndarray:
        """(n,) int64: how many names the path has; 1 for a root."""
        return np.array([len(path) for path in self.paths], dtype=np.int64)

    @cached_property
    def root(self) -> np.ndarray:
        """(n,) int64: the root of each node's tree."""
        return np.array([self._number[path[:1]] for path in self.paths], dtype=np.int64)

    @cached_property
    def is_leaf(self) -> np.ndarray:
        """(n,) booleans: nodes without children."""
        leaf = np.ones(len(self), dtype=bool)
        leaf[self.parent[self.parent >= 0]] = False
        return leaf

    @cached_property
    def lineage(self) -> np.ndarray:
        """(n, deepest) int64: row i holds node i's ancestors from the root on, itself last, then -1."""
        table = np.full((len(self), int(self.depth.max(initial=1))), -1, dtype=np.int64)
        for number, path in enumerate(self.paths):
            table[number, : len(path)] = [self._number[path[:level]] for level in range(1, len(path) + 1)]
        return table

    def ancestors(self, node: int) -> np.ndarray:
        """Return the nodes on the way from the root to ``node``, itself last."""
        return self.lineage[node, : self.depth[node]]

    def children(self, node: int) -> np.ndarray:
        """Return the children of ``node``, or with -1 the roots; ascending."""
        return np.flatnonzero(self.parent == node)

    def common(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return how many names the paths of two nodes have in common from the root on; 0 in different trees."""
        same = (self.lineage[left] == self.lineage[right]) & (self.lineage[left] >= 0)
        shared: np.ndarray = np.cumprod(same, axis=-1).sum(axis=-1)
        return shared

    def distance(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Edges between two nodes; different trees are joined above their roots."""
        steps: np.ndarray = self.depth[left] + self.depth[right] - 2 * self.common(left, right)
        return steps

    def text(self, node: int) -> str:
        """Return the path as shops write it."""
        return SEPARATOR.join(self.paths[node])

    @cached_property
    def fingerprint(self) -> str:
        """Of all paths."""
        return fingerprint_lists(self.paths)

    def describe(self) -> str:
        """Return one line: nodes, roots, levels, leaves."""
        if not len(self):
            return "no categories"
        deepest = int(self.depth.max())
        return (
            f"{len(self):,} categories on {deepest} {'level' if deepest == 1 else 'levels'}: "
            f"{int((self.parent < 0).sum()):,} most general, {int(self.is_leaf.sum()):,} without children"
        )


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


@dataclass(frozen=True)
class Level:
    """One level of a tree."""

    level: int  # 1 for the roots
    categories: int  # on it
    leaves: int  # those of them without children
    most_children: int  # of one of them
    mean_children: float  # of those that have some; 0 where none has


_SHOWN = 10


@dataclass(frozen=True)
class TreeShape:
    """The shape of a tree."""

    categories: int  # in all
    levels: tuple[Level, ...]  # from the roots on
    # names of several categories, each with its nodes; those of most categories first, then by name
    shared: tuple[tuple[str, tuple[int, ...]], ...]
    only_children: int  # categories without siblings: a level that sorts nothing

    def tables(self) -> list[Table]:
        """Return the levels, and the names that stand in several places."""
        columns = ("level", "categories", "without children", "children of one", "at most")
        rows = [
            (
                f"{one.level}",
                f"{one.categories:,}",
                f"{one.leaves:,}",
                f"{one.mean_children:.1f}",
                f"{one.most_children:,}",
            )
            for one in self.levels
        ]
        after = "children of one: on average, of those that have some"
        shared = [(name, f"{len(nodes):,}") for name, nodes in self.shared[:_SHOWN]]
        caption = f"names that stand in several places ({len(self.shared):,})"
        known_by = "a category is known by its whole path; as queries, these names mean several"
        return [
            Table.of("levels", after, columns, rows),
            *([Table.of(caption, known_by, ("name", "categories"), shared)] if shared else []),
        ]


def shape_of(tree: CategoryTree) -> TreeShape:
    """Count what a tree has."""
    below = np.bincount(tree.parent[tree.parent >= 0], minlength=len(tree))
    levels = []
    for level in range(1, int(tree.depth.max(initial=0)) + 1):
        children = below[tree.depth == level]
        some = children[children > 0]
        levels.append(
            Level(
                level,
                len(children),
                int((children == 0).sum()),
                int(children.max()),
                float(some.mean()) if len(some) else 0.0,
            )
        )
    places: dict[str, list[int]] = {}
    for node, path in enumerate(tree.paths):
        places.setdefault(path[-1], []).append(node)
    several = sorted(
        ((name, tuple(nodes)) for name, nodes in places.items() if len(nodes) > 1),
        key=lambda one: (-len(one[1]), one[0]),
    )
    has_parent = tree.parent >= 0
    alone = int((below[tree.parent[has_parent]] == 1).sum())
    return TreeShape(len(tree), tuple(levels), tuple(several), alone)


def tree_content(
    tree: CategoryTree, notes: Sequence[str] = (), counts: Mapping[str, np.ndarray] | None = None
) -> dict[str, Any]:
    """Return a tree as JSON-able values that :func:`~diptych.commerce.taxonomy.read_taxonomy` reads.

    Args:
        notes: what was mended.
        counts: (n,) numbers of every category, by name.
    """
    shape = shape_of(tree)
    nodes = []
    for node, path in enumerate(tree.paths):
        code = {"id": tree.codes[path]} if path in tree.codes else {}
        numbers = {what: int(of[node]) for what, of in (counts or {}).items()}
        nodes.append({"path": list(path), **code, **numbers})
    return {
        "fingerprint": tree.fingerprint,
        "notes": list(notes),
        "shape": asdict(shape) | {"shared": {name: len(found) for name, found in shape.shared}},
        "categories": nodes,
    }
