"""Which categories a page shows: right ones, and wrong ones of every kind."""

from __future__ import annotations

import numpy as np

from diptych.commerce.category_to_image.errors.kinship import KINSHIPS, kinship
from diptych.data.taxonomy import CategoryTree


def choose_examples(
    tree: CategoryTree,
    asked: np.ndarray,
    found: np.ndarray,
    right: np.ndarray,
    score: np.ndarray,
    number: int,
    *,
    wrong: bool,
) -> np.ndarray:
    """Rows of right or of wrong categories; deterministic, no random ones.

    The surest come first: right ones by their score, one per tree in turn; wrong ones one per kind of error in turn,
    so that a rare kind is not hidden by a frequent one.

    Args:
        asked: (q,) nodes.
        found: (q,) node of each one's first product, -1 where there is none, which is never shown.
        right: (q,) booleans.
        score: (q,) of the first product.
    """
    rows = np.flatnonzero((found >= 0) & (right != wrong))
    rows = rows[np.argsort(-score[rows], kind="stable")]
    groups = kinship(tree, asked[rows], found[rows]) if wrong else tree.root[asked[rows]]
    turn = np.zeros(len(rows), dtype=np.int64)
    for group in np.unique(groups):
        mine = groups == group
        turn[mine] = np.arange(int(mine.sum()))
    last = (
        np.where(groups == KINSHIPS.index("other tree"), 1, 0)
        if wrong
        else np.zeros(len(rows), dtype=np.int64)
    )
    chosen: np.ndarray = rows[np.lexsort((np.arange(len(rows)), last, turn))[:number]]
    return chosen
