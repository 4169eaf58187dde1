"""What a category tree looks like: its levels, and the names that stand in several places."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from diptych.data.taxonomy.tree import CategoryTree


@dataclass(frozen=True)
class Level:
    """One level of a tree.

    Attributes:
        level: 1 for the roots.
        categories: on it.
        leaves: those of them without children.
        most_children: of one of them.
        mean_children: of those that have some; 0 where none has.
    """

    level: int
    categories: int
    leaves: int
    most_children: int
    mean_children: float


@dataclass(frozen=True)
class TreeShape:
    """The shape of a tree.

    Attributes:
        categories: in all.
        levels: from the roots on.
        shared: names of several categories, each with its nodes; those of most categories first, then by name.
        only_children: categories without siblings: a level that sorts nothing.
    """

    categories: int
    levels: tuple[Level, ...]
    shared: tuple[tuple[str, tuple[int, ...]], ...]
    only_children: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, the shared names as counts."""
        return {
            "categories": self.categories,
            "levels": [asdict(level) for level in self.levels],
            "shared_names": {name: len(nodes) for name, nodes in self.shared},
            "only_children": self.only_children,
        }


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
