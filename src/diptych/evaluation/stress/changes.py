"""Who is changed: queries that lose, gain or stay, and whether conditions change the same ones.

Per query and condition the sum R@1 + R@5 + R@10 of the changed query is held against that of the clean one, so
a query *decreases*, *increases* or is *unchanged*. How far two conditions agree is the Jaccard similarity of
their sets of queries, group by group: ``|A ∩ B| / |A ∪ B|``. Over all pairs of conditions it is averaged; a pair
in which both sets are empty has no similarity, is left out of the mean, and is counted.

Source: thesis section 5.5.4 and Table 5.4, for which no code was published. Its groups are those of the published
``rsum_diff = rsum(none) - rsum(perturbed)`` of text-to-image retrieval. There runs are joined by the caption's
text, so a text that m captions share becomes m² rows; here every caption is one query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from diptych.core.errors import DataError, NumericalError

CHANGE_GROUPS: Mapping[str, int] = {"decreased": -1, "increased": 1, "unchanged": 0}
"""The groups in the order of Table 5.4, and the number that stands for each."""


@dataclass(frozen=True)
class JaccardPair:
    """How far two conditions change the same queries."""

    first: str  # a condition
    second: str  # another
    decreased: float | None  # Jaccard similarity of the queries that decrease; None where none does in either
    increased: float | None  # of those that increase
    unchanged: float | None  # of those that stay


@dataclass(frozen=True)
class JaccardOver:
    """Agreement over all pairs of conditions."""

    n: int  # number of queries
    # per condition, how many queries are in each of :data:`CHANGE_GROUPS`
    sizes: Mapping[str, Mapping[str, int]]
    pairs: tuple[JaccardPair, ...]  # every pair of conditions, in their order
    decreased: float | None  # mean over the pairs that have a similarity; None where no pair has
    increased: float | None  # the same of queries that increase
    unchanged: float | None  # the same of queries that stay
    left_out: Mapping[str, int]  # per group, the pairs without a similarity: no query of that group in either

    def line(self) -> str:
        """One line: what the means are over, and what was left out."""
        out = [
            f"{count:,} without a query that is {group}" for group, count in self.left_out.items() if count
        ]
        said = f"{len(self.pairs):,} pairs of {len(self.sizes)} conditions, {self.n:,} queries"
        return f"{said}; left out: {', '.join(out)}" if out else said

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "n": self.n,
            **{group: getattr(self, group) for group in CHANGE_GROUPS},
            "left_out": dict(self.left_out),
            "sizes": {condition: dict(sizes) for condition, sizes in self.sizes.items()},
            "pairs": [vars(pair) for pair in self.pairs],
        }


def change_groups(clean: np.ndarray, perturbed: np.ndarray) -> np.ndarray:
    """Which queries lose and gain.

    Args:
        clean: (n,) R@1 + R@5 + R@10 of each clean query, or any score of which more is better.
        perturbed: (n,) the same of the changed queries.

    Returns:
        (n,) int8: −1 where the changed query scores less, 1 where more, 0 where the same.
    """
    clean, perturbed = np.asarray(clean, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    if clean.ndim != 1 or clean.shape != perturbed.shape:
        raise DataError(f"values of shape {clean.shape} clean and {perturbed.shape} changed, (n,) expected")
    wrong = np.flatnonzero(np.isnan(clean) | np.isnan(perturbed))
    if len(wrong):
        row = int(wrong[0])
        raise NumericalError(
            f"query {row} is {clean[row]:g} clean and {perturbed[row]:g} changed, {len(wrong):,} are like that",
            "give the queries that are asked alone",
        )
    groups: np.ndarray = np.sign(perturbed - clean).astype(np.int8)
    return groups


def jaccard_over(conditions: Mapping[str, np.ndarray]) -> JaccardOver:
    """How far conditions change the same queries.

    Args:
        conditions: per condition, the (n,) groups of the same queries, of :func:`change_groups`.
    """
    if not conditions:
        raise DataError("no condition: at least one is needed, two for a similarity")
    sizes = {name: len(groups) for name, groups in conditions.items()}
    if len(set(sizes.values())) > 1:
        (first, one), (other, two) = min(sizes.items(), key=_size), max(sizes.items(), key=_size)
        raise DataError(f"{one:,} queries of {first} and {two:,} of {other}: the same ones are needed")
    names, found = list(conditions), {}
    counts: dict[str, dict[str, int]] = {name: {} for name in names}
    for group, number in CHANGE_GROUPS.items():
        members = np.stack([conditions[name] == number for name in names]).astype(np.float64)
        both = members @ members.T
        own = np.diag(both)
        either = own[:, None] + own[None, :] - both
        found[group] = np.divide(both, either, out=np.full_like(both, np.nan), where=either > 0)
        for name, size in zip(names, own, strict=True):
            counts[name][group] = int(size)
    places = list(combinations(range(len(names)), 2))
    of = {
        group: [None if np.isnan(value := float(table[pair])) else value for pair in places]
        for group, table in found.items()
    }
    present = {group: [value for value in values if value is not None] for group, values in of.items()}
    means = {group: sum(values) / len(values) if values else None for group, values in present.items()}
    return JaccardOver(
        n=next(iter(sizes.values())),
        sizes=counts,
        pairs=tuple(
            JaccardPair(names[one], names[two], **{group: of[group][row] for group in CHANGE_GROUPS})
            for row, (one, two) in enumerate(places)
        ),
        **means,
        left_out={group: len(places) - len(values) for group, values in present.items()},
    )


def _size(item: tuple[str, int]) -> int:
    return item[1]
