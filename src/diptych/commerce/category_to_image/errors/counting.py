"""Counts of the first product's category against the category that asked (thesis Table 7.2 and Figure 7.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.commerce.category_to_image.errors.kinship import KINSHIPS, kinship
from diptych.core.errors import DataError
from diptych.data.taxonomy import CategoryTree


@dataclass(frozen=True)
class ErrorCounts:
    """How the first products of some categories went wrong.

    Attributes:
        asked: how many categories asked.
        right: of how many the first product is relevant.
        nothing: how many found no product at all.
        same_tree: errors whose category c_p has the most general category of c, the one that asked.
        other_tree: errors whose category has another.
        depths: of errors in the same tree, how many have which d(c, c_p) = depth(c_p) - depth(c): above 0, a more
            specific category was found.
        distances: of all errors, how many have which distance in edges; different trees are joined above their roots.
        kinds: of all errors, what c_p is to c, see :data:`~.kinship.KINSHIPS`.
    """

    asked: int
    right: int
    nothing: int
    same_tree: int
    other_tree: int
    depths: Mapping[int, int]
    distances: Mapping[int, int]
    kinds: Mapping[str, int]

    @property
    def wrong(self) -> int:
        """Errors that found some product."""
        return self.same_tree + self.other_tree

    @property
    def same_tree_share(self) -> float | None:
        """Of the errors, the share within the same tree; None without errors."""
        return self.same_tree / self.wrong if self.wrong else None


def count_errors(
    tree: CategoryTree, asked: np.ndarray, found: np.ndarray, right: np.ndarray | None = None
) -> ErrorCounts:
    """Count.

    Args:
        asked: (q,) nodes c that asked.
        found: (q,) node c_p of each one's first product, -1 where no product was found.
        right: (q,) booleans; without it the first product is right where c_p is c, as in the thesis. By paths it may
            be right although its own category is another.
    """
    asked, found = np.asarray(asked, dtype=np.int64), np.asarray(found, dtype=np.int64)
    is_right = asked == found if right is None else np.asarray(right, dtype=bool)
    if not len(asked) == len(found) == len(is_right):
        raise DataError(
            f"{len(asked)} categories asked, {len(found)} found, {len(is_right)} judged: not as many"
        )
    nothing = found < 0
    if np.any(nothing & is_right):
        raise DataError(f"{int(np.sum(nothing & is_right))} categories are right and found no product")
    wrong = ~is_right & ~nothing
    c, c_p = asked[wrong], found[wrong]
    same = tree.root[c] == tree.root[c_p]
    kinds = np.bincount(kinship(tree, c, c_p), minlength=len(KINSHIPS))
    return ErrorCounts(
        asked=len(asked),
        right=int(is_right.sum()),
        nothing=int(nothing.sum()),
        same_tree=int(same.sum()),
        other_tree=int((~same).sum()),
        depths=_histogram((tree.depth[c_p] - tree.depth[c])[same]),
        distances=_histogram(tree.distance(c, c_p)),
        kinds={name: int(count) for name, count in zip(KINSHIPS, kinds, strict=True) if count},
    )


def pooled(counts: Sequence[ErrorCounts]) -> ErrorCounts:
    """The sum over runs, of several seeds say: a category counts once per run."""

    def added(parts: Sequence[Mapping[int, int]]) -> dict[int, int]:
        return {
            key: sum(part.get(key, 0) for part in parts)
            for key in sorted({k for part in parts for k in part})
        }

    return ErrorCounts(
        asked=sum(one.asked for one in counts),
        right=sum(one.right for one in counts),
        nothing=sum(one.nothing for one in counts),
        same_tree=sum(one.same_tree for one in counts),
        other_tree=sum(one.other_tree for one in counts),
        depths=added([one.depths for one in counts]),
        distances=added([one.distances for one in counts]),
        kinds={
            name: sum(one.kinds.get(name, 0) for one in counts)
            for name in KINSHIPS
            if any(name in one.kinds for one in counts)
        },
    )


def _histogram(values: np.ndarray) -> dict[int, int]:
    kinds, counts = np.unique(values, return_counts=True)
    return {int(kind): int(count) for kind, count in zip(kinds, counts, strict=True)}
