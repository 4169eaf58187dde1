"""The plan of thesis Figure 2.2: image–text retrieval, by direction, by what pictures show, by collection.

::

    0 Image-text CMR
    ├── 1 Text-to-image
    │   ├── 3 object-centric     7 CUB-200   8 Fashion200k   9 ABO
    │   └── 4 scene-centric     10 MS COCO  11 Flickr30k
    └── 2 Image-to-text
        ├── 5 object-centric    12 CUB-200  13 Fashion200k  14 ABO
        └── 6 scene-centric     15 MS COCO  16 Flickr30k

Other collections are leaves too, placed by what their pictures show; they have no number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

DIRECTIONS = {"t2i": "Text-to-image", "i2t": "Image-to-text"}
CENTRIC = {"object": "object-centric", "scene": "scene-centric"}
PAPERS = {"cub": "object", "fashion200k": "object", "abo": "object", "coco": "scene", "flickr30k": "scene"}
"""The paper's collections and what their pictures show."""

_NUMBERS = {
    ("t2i", ""): 1, ("i2t", ""): 2,
    ("t2i", "object"): 3, ("t2i", "scene"): 4, ("i2t", "object"): 5, ("i2t", "scene"): 6,
    ("t2i", "cub"): 7, ("t2i", "fashion200k"): 8, ("t2i", "abo"): 9, ("t2i", "coco"): 10, ("t2i", "flickr30k"): 11,
    ("i2t", "cub"): 12, ("i2t", "fashion200k"): 13, ("i2t", "abo"): 14, ("i2t", "coco"): 15, ("i2t", "flickr30k"): 16,
}  # fmt: skip
_TITLES = {
    "cub": "CUB-200",
    "fashion200k": "Fashion200k",
    "abo": "ABO",
    "coco": "MS COCO",
    "flickr30k": "Flickr30k",
}


@dataclass(frozen=True)
class Node:
    """One node of the plan.

    Attributes:
        number: as in the figure; None for a collection that it does not have.
        title: what it says.
        direction: ``t2i``, ``i2t``, or nothing for the root.
        centric: ``object``, ``scene``, or nothing above.
        dataset: of a leaf; else nothing.
        children: below it.
    """

    number: int | None
    title: str
    direction: str = ""
    centric: str = ""
    dataset: str = ""
    children: tuple[Node, ...] = ()

    @property
    def leaves(self) -> list[Node]:
        """Its leaves, in order; of a leaf, itself."""
        if self.dataset:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves]

    def upwards(self) -> Iterator[Node]:
        """Bottom up, as the text walks it: every node after those below it, leaves first."""
        level, levels = [self], []
        while level:
            levels.append(level)
            level = [child for node in level for child in node.children]
        for nodes in reversed(levels):
            yield from nodes


def tree_of(centric: Mapping[str, str]) -> Node:
    """The plan over collections (name → ``object``, ``scene``); others are left out, and so are empty branches."""
    ways = []
    for direction, title in DIRECTIONS.items():
        kinds = []
        for kind, called in CENTRIC.items():
            leaves = tuple(
                Node(
                    _NUMBERS.get((direction, name.lower())),
                    _TITLES.get(name.lower(), name),
                    direction,
                    kind,
                    name,
                )
                for name, shows in centric.items()
                if shows == kind
            )
            if leaves:
                kinds.append(
                    Node(_NUMBERS[direction, kind], called, direction, kind, children=_in_order(leaves))
                )
        if kinds:
            ways.append(Node(_NUMBERS[direction, ""], title, direction, children=tuple(kinds)))
    return Node(0, "Image-text CMR", children=tuple(ways))


def _in_order(leaves: tuple[Node, ...]) -> tuple[Node, ...]:
    """The paper's leaves by their numbers, then others as they were given."""
    return tuple(sorted(leaves, key=lambda leaf: 99 if leaf.number is None else leaf.number))
