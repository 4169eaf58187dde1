"""CategoryTree: the nodes of a category tree, each known by its full path.

A name is no identity: "Accessories" stands under many roots. A node is the path from its root, so two nodes are
the same exactly when all names on the way are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    """A forest of categories; nodes are numbered in the order of their sorted paths, so parents come first.

    Args:
        paths: of categories; their ancestors are added.
        codes: a taxonomy's own ids by path, for as many categories as have one.
    """

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
        self.codes: Mapping[Path, str] = dict(codes or {})
        self._number = {path: number for number, path in enumerate(self.paths)}

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

    def meant(self, words: str) -> list[int]:
        """Return the nodes whose name or whole path the words are, whatever their case and spaces."""
        path, whole = tuple(map(_folded, words.split(SEPARATOR.strip()))), _folded(words)
        paths = (tuple(map(_folded, names)) for names in self.paths)
        return [node for node, names in enumerate(paths) if names == path or names[-1] == whole]

    @cached_property
    def shares_name(self) -> np.ndarray:
        """(n,) booleans: nodes whose name another node has as well."""
        counts = Counter(path[-1] for path in self.paths)
        return np.array([counts[path[-1]] > 1 for path in self.paths], dtype=bool)

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
        return self.lineage[:, 0]

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

    def common(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return how many names the paths of two nodes have in common from the root on; 0 in different trees."""
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


def shape_of(tree: CategoryTree) -> dict[str, Any]:
    """Count the categories of each level, the names that several have, and categories without siblings."""
    children = np.bincount(tree.parent[tree.parent >= 0], minlength=len(tree))
    levels = []
    for level in range(1, int(tree.depth.max(initial=0)) + 1):
        here = children[tree.depth == level]
        numbers = {"level": level, "categories": len(here), "leaves": int((here == 0).sum())}
        mean = float(here[here > 0].mean()) if here.any() else 0.0
        levels.append({**numbers, "most_children": int(here.max()), "mean_children": mean})
    counts = sorted(Counter(path[-1] for path in tree.paths).items(), key=lambda one: (-one[1], one[0]))
    return {
        "categories": len(tree),
        "levels": levels,
        "shared": {name: count for name, count in counts if count > 1},
        "only_children": int((children[tree.parent[tree.parent >= 0]] == 1).sum()),
    }


_SHOWN = 10


def shape_tables(shape: Mapping[str, Any]) -> list[Table]:
    """Return the levels, and the names that stand in several places."""
    rows = [
        (
            f"{one['level']}",
            f"{one['categories']:,}",
            f"{one['leaves']:,}",
            f"{one['mean_children']:.1f}",
            f"{one['most_children']:,}",
        )
        for one in shape["levels"]
    ]
    columns = ("level", "categories", "without children", "children of one", "at most")
    tables = [Table.of("levels", "children of one: on average, of those that have some", columns, rows)]
    if shared := shape["shared"]:
        caption = f"names that stand in several places ({len(shared):,})"
        after = "a category is known by its whole path, which also stands for it as a query where its name does not"
        first = [(name, f"{count:,}") for name, count in list(shared.items())[:_SHOWN]]
        tables.append(Table.of(caption, after, ("name", "categories"), first))
    return tables


def tree_content(
    tree: CategoryTree, notes: Sequence[str] = (), counts: Mapping[str, np.ndarray] | None = None
) -> dict[str, Any]:
    """Return a tree as JSON-able values, which the format ``written`` reads; ``counts`` are (n,) numbers by name."""
    nodes = []
    for node, path in enumerate(tree.paths):
        code = {"id": tree.codes[path]} if path in tree.codes else {}
        numbers = {what: int(of[node]) for what, of in (counts or {}).items()}
        nodes.append({"path": list(path), **code, **numbers})
    return {
        "fingerprint": tree.fingerprint,
        "notes": list(notes),
        "shape": shape_of(tree),
        "categories": nodes,
    }
