"""CategoryTree: the nodes of a category tree, each known by its full path.

A name is no identity: "Accessories" stands under many roots. A node is the path from its root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint_lists
from diptych.data.products import MAX_LEVELS

SEPARATOR = " > "
"""Between the names of a path, as shops write it."""

Path = tuple[str, ...]


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
        fingerprint: of all paths.
    """

    def __init__(self, paths: Iterable[Sequence[str]], codes: Mapping[Path, str] | None = None) -> None:
        nodes: set[Path] = set()
        for path in map(tuple, paths):
            if not path or not all(path):
                raise DataError(f"category path {list(path)} has no name or an empty one", "name every level")
            if len(path) > MAX_LEVELS:
                message = f"category path {SEPARATOR.join(path[:3])} … has {len(path):,} levels, more than {MAX_LEVELS}"
                raise DataError(
                    message, "a path is the names from a root to one category: check the separator"
                )
            while path and path not in nodes:
                nodes.add(path)
                path = path[:-1]
        self.paths: tuple[Path, ...] = tuple(sorted(nodes))
        self.codes: Mapping[Path, str] = dict(codes or {})
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
    levels = []
    for level in range(1, int(tree.depth.max(initial=0)) + 1):
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


def tree_content(tree: CategoryTree, counts: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return a tree as JSON-able values, which the format ``written`` reads; ``counts`` are (n,) numbers by name."""
    nodes: list[dict[str, Any]] = []
    for node, path in enumerate(tree.paths):
        code = {"id": tree.codes[path]} if path in tree.codes else {}
        nodes.append({"path": list(path), **code, **{name: int(of[node]) for name, of in counts.items()}})
    return {"fingerprint": tree.fingerprint, "shape": shape_of(tree), "categories": nodes}
