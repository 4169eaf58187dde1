"""What recalls alone give away of how they were made: signs, with how often an honest table shows them.

**Were places 6 to 10 ranked at all?** In a full ranking more queries find their positive within 10 than
within 5. The gain (R@10 − R@5) / (R@5 − R@1) is at least :data:`LEAST_GAIN` in all tables of full rankings
at hand. Where only k candidates were ranked, nothing but chance fills the places behind the k-th: of the
queries that miss, a share p · x / (N − 5) finds a positive in x further places, p positives in a gallery
of N. A gain that chance explains says that at most as many candidates were ranked as the cut-off before
it; how many fewer, R@1, R@5 and R@10 cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from diptych.evaluation.ground_truth import DIRECTIONS, Direction
from diptych.evaluation.printed.target import SUM_PARTS, Printed, Target

__all__ = ["LEAST_GAIN", "Sign", "Truncation", "signs", "truncation"]

LEAST_GAIN = ((20.0, 0.5, 14), (60.0, 0.34, 55), (80.0, 0.26, 112), (95.0, 0.14, 80), (99.5, 0.06, 6))
"""(R@5 below, least (R@10 − R@5) / (R@5 − R@1), of how many): full rankings in printed tables of image–text
retrieval, by how high R@5 is (the four papers' tables, and Radford et al. 2021 and Zeng et al. 2022 as
quoted in thesis table 2.1)."""

_LEAST_FIRST_GAIN = 0.5
"""Least (R@5 − R@1) / min(R@1, 100 − R@1) of the same full rankings."""

_RANGE = 3.0  # standard deviations within which a count is what chance gives
_LEAST_RATIO = 1.14
"""Least i2t R@1 / t2i R@1 of printed tables with five captions per image and R@1 above 10 %; two rows of 130
with shortcuts or a changed input are below."""


@dataclass(frozen=True)
class Sign:
    """One thing the digits give away.

    Attributes:
        kind: ``impossible``, ``truncated`` or ``unusual``.
        cells: the cells it is about.
        text: one sentence.
    """

    kind: Literal["impossible", "truncated", "unusual"]
    cells: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Truncation:
    """How many candidates per query can have been ranked, by the gains between printed cut-offs.

    Attributes:
        at_least: candidates that were ranked: 2 where R@5 gains more than chance over R@1, else 1.
        at_most: the cut-off from which on nothing was gained but chance; None where the ranking goes on,
            or it cannot be told.
        gain: R@10 less R@5, in per cent.
        by_chance: what unranked places would gain, in per cent; None where the gallery is not known.
        ratio: the gain over R@5 − R@1; infinite where that is nothing.
        usual: the least ratio of full rankings at this height; None where there is none to compare.
        compared: how many full rankings that is.
    """

    at_least: int
    at_most: int | None
    gain: float
    by_chance: float | None
    ratio: float
    usual: float | None
    compared: int


def truncation(
    recalls: Mapping[int, Printed],
    gallery: int | None = None,
    positives: float = 1.0,
    queries: int | None = None,
) -> Truncation | None:
    """Judge whether R@10 − R@5 is that of a full ranking.

    Args:
        recalls: printed R@1, R@5 and R@10 by cut-off.
        gallery: how many items are ranked for each query, where it is known.
        positives: how many of them are relevant to a query.
        queries: how many there are; with it, what chance gives has its sampling error.

    Returns:
        None where one of the three is missing, or they are so few hits or so near 100 % that nothing can be
        told.
    """
    if not all(cutoff in recalls for cutoff in (1, 5, 10)):
        return None
    first, fifth, tenth = (recalls[cutoff].value for cutoff in (1, 5, 10))
    unit, room = recalls[10].unit, min(first, 100 - first)
    band = next((one for one in LEAST_GAIN if fifth < one[0]), None)
    if room < 10 * unit or not first <= fifth <= tenth or band is None:
        return None
    _, usual, compared = band

    def is_chance(before: float, after: float, places: int, least: float) -> tuple[bool, float | None]:
        """Whether a gain is what unranked places give, and how much that is; ``least`` is a ranking's."""
        gain = after - before
        if gallery is None:
            return gain < least / 3, None
        chance = (100 - before) * min(1.0, places * positives / max(gallery - places, 1))
        error = 0.0 if queries is None else 100 * math.sqrt(chance / 100 / queries)
        # The printed gain is within a unit of the one that was measured.
        return gain < least and gain <= chance + _RANGE * error + unit, chance

    one_ranked, _ = is_chance(first, fifth, 4, _LEAST_FIRST_GAIN * room)
    truncated, chance = is_chance(fifth, tenth, 5, usual * (fifth - first))
    truncated = truncated or one_ranked
    ratio = (tenth - fifth) / (fifth - first) if fifth > first else math.inf
    return Truncation(
        1 if one_ranked else 2, 5 if truncated else None, tenth - fifth, chance, ratio, usual, compared
    )


def signs(
    target: Target, galleries: Mapping[Direction, tuple[int, float, int]] | None = None
) -> tuple[Sign, ...]:
    """All signs of a target.

    Args:
        target: what was printed.
        galleries: per direction, size of the gallery, positives per query and number of queries, where
            they are known.
    """
    found: list[Sign] = []
    for direction in DIRECTIONS:
        recalls = target.recalls(direction)
        for (low, before), (high, after) in pairwise(recalls.items()):
            if after.value < before.value:
                found.append(
                    Sign(
                        "impossible",
                        (f"{direction} R@{low}", f"{direction} R@{high}"),
                        f"{direction} R@{high} {after} is less than R@{low} {before}: no ranking does that; "
                        "columns may be permuted, or R@K counts all positives",
                    )
                )
        if all(cutoff in recalls for cutoff in (1, 5, 10)):
            found += _truncated(direction, recalls, (galleries or {}).get(direction))
    return tuple([*found, *_sums(target), *_directions(target)])


def _truncated(
    direction: str, recalls: Mapping[int, Printed], known: tuple[int, float, int] | None
) -> list[Sign]:
    one = truncation(recalls, *(known or ()))
    if one is None or one.at_most is None:
        return []
    text = (
        f"{direction} R@10 − R@5 is {one.gain:.{recalls[10].decimals}f}, {one.ratio:.3f} times R@5 − R@1; the "
        f"{one.compared} full rankings in print at this height have {one.usual:g} times or more"
    )
    if one.by_chance is not None:
        text += f", and places that nothing ranked would gain {one.by_chance:.2g} by chance"
    text += (
        f". That is what ranking {one.at_least} to {one.at_most} candidates of each query gives, all others "
        "missed or tied; which of these numbers, R@1, R@5 and R@10 cannot tell"
    )
    return [Sign("truncated", (f"{direction} R@5", f"{direction} R@10"), text)]


def _sums(target: Target) -> list[Sign]:
    found = []
    for name, cell in target.cells.items():
        if not name.endswith("rsum"):
            continue
        sides = [name.split()[0]] if " " in name else list(DIRECTIONS)
        names = [f"{side} {part}" for side in sides for part in SUM_PARTS]
        if not all(part in target.cells for part in names):
            continue
        parts = [target.cells[part] for part in names]
        total = math.fsum(part.value for part in parts)
        # Cut-off digits all fall to one side, so a whole unit of each; rounded ones half a unit.
        slack = sum(part.unit for part in parts) + cell.unit
        if abs(total - cell.value) > slack + 1e-9:
            found.append(
                Sign(
                    "impossible",
                    (name, *names),
                    f"{name} {cell} is not the sum of its recalls, {total:.{cell.decimals}f}",
                )
            )
    return found


def _directions(target: Target) -> list[Sign]:
    cells = target.cells
    if "i2t R@1" not in cells or "t2i R@1" not in cells:
        return []
    i2t, t2i = cells["i2t R@1"], cells["t2i R@1"]
    if t2i.value < 10 or i2t.value >= _LEAST_RATIO * t2i.value:
        return []
    return [
        Sign(
            "unusual",
            ("i2t R@1", "t2i R@1"),
            f"i2t R@1 {i2t} is {i2t.value / t2i.value:.2f} times t2i R@1 {t2i}; with five captions per image, "
            f"of which any counts, 128 of 130 printed tables have {_LEAST_RATIO} times or more: one caption "
            "per image may have been used, or the directions swapped",
        )
    ]
