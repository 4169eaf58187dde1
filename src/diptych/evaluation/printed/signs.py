"""What recalls alone give away of how they were made: signs, with how often an honest table shows them.

**Were places 6 to 10 ranked at all?** In a full ranking more queries find their positive within 10 than
within 5: R@10 gains at least :data:`LEAST_GAIN` of what there is to gain, in all tables of full rankings at
hand. Where only k candidates were ranked, nothing but chance fills the places behind the k-th: of the
queries that miss, a share p · x / (N − 5) finds a positive in x further places, p positives in a gallery
of N. A gain that chance explains says that at most as many candidates were ranked as the cut-off before
it; how many fewer, R@1, R@5 and R@10 cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from diptych.evaluation.printed.target import Printed, Target, sum_cells
from diptych.metrics.ground_truth import DIRECTIONS, Direction

LEAST_GAIN = 0.21
"""Least (R@10 − R@5) / min(R@5, 100 − R@5) of :data:`COMPARED` full rankings in printed tables of image–text
retrieval: the four papers' tables, and Radford et al. 2021 and Zeng et al. 2022 as quoted in thesis table 2.1."""

COMPARED = 258
_LEAST_FIRST_GAIN = 0.5  # (R@5 − R@1) / min(R@1, 100 − R@1) of those that know anything
_RANGE = 3.0  # standard deviations within which a count is what chance gives
_SURE = 2.0  # standard deviations that a full ranking's least gain must be away
_LEAST_RATIO = 1.14
"""Least i2t R@1 / t2i R@1 of printed tables with five captions per image and R@1 above 10 %; two rows of 130
with shortcuts or a changed input are below."""


@dataclass(frozen=True)
class Sign:
    kind: Literal["impossible", "truncated", "unusual"]
    cells: tuple[str, ...]  # the cells it is about
    text: str  # one sentence


@dataclass(frozen=True)
class Truncation:
    """How many candidates per query can have been ranked, by the gains between printed cut-offs."""

    at_least: int  # candidates that were ranked: 2 where R@5 gains more than chance over R@1, else 1
    at_most: int | None  # the cut-off behind which chance alone gains; None where that cannot be said
    gain: float  # R@10 less R@5, in per cent
    least: float  # what a full ranking gains at least, in per cent
    by_chance: float | None  # what unranked places would gain, in per cent; None of an unknown gallery


def truncation(
    recalls: Mapping[int, Printed],
    gallery: int | None = None,
    positives: float = 1.0,
    queries: int | None = None,
) -> Truncation | None:
    """Judge whether R@10 − R@5 is that of a full ranking; None where one is missing or nothing can be told."""
    if not all(cutoff in recalls for cutoff in (1, 5, 10)):
        return None
    first, fifth, tenth = (recalls[cutoff].value for cutoff in (1, 5, 10))
    unit = recalls[10].unit
    if not first <= fifth <= tenth or min(first, fifth, 100 - first, 100 - fifth) < 10 * unit:
        return None

    def is_chance(before: float, after: float, places: int, least: float) -> tuple[bool, float | None]:
        """Return whether a gain is what unranked places give, and how much that is; ``least`` is a ranking's."""
        gain = after - before
        if queries is not None:  # the least gain is a number of queries, which varies
            least -= _SURE * 100 * math.sqrt(least / 100 / queries)
        if gallery is None:
            return gain < least / 2, None
        chance = (100 - before) * min(1.0, places * positives / max(gallery - places, 1))
        error = 0.0 if queries is None else 100 * math.sqrt(chance / 100 / queries)
        # The printed gain is within a unit of the one that was measured.
        return gain < least and gain <= chance + _RANGE * error + unit, chance

    one_ranked, _ = is_chance(first, fifth, 4, _LEAST_FIRST_GAIN * min(first, 100 - first))
    least = LEAST_GAIN * min(fifth, 100 - fifth)
    truncated, chance = is_chance(fifth, tenth, 5, least)
    return Truncation(1 if one_ranked else 2, 5 if truncated else None, tenth - fifth, least, chance)


def signs(
    target: Target, galleries: Mapping[Direction, tuple[int, float, int]] | None = None
) -> tuple[Sign, ...]:
    found: list[Sign] = []
    for direction in DIRECTIONS:
        recalls = target.recalls(direction)
        for (low, before), (high, after) in pairwise(recalls.items()):
            if after.value < before.value:
                text = (
                    f"{direction} R@{high} {after} is less than R@{low} {before}: no ranking does that; "
                    "columns may be permuted, or R@K counts all positives"
                )
                found.append(Sign("impossible", (f"{direction} R@{low}", f"{direction} R@{high}"), text))
        one = truncation(recalls, *(galleries or {}).get(direction, ()))
        if one is not None and one.at_most is not None:
            found.append(_truncated(direction, recalls, one))
    return tuple([*found, *_sums(target), *_unusual(target)])


def _truncated(direction: str, recalls: Mapping[int, Printed], one: Truncation) -> Sign:
    places = ""
    if one.by_chance is not None:
        places = f", and places that nothing ranked would gain {one.by_chance:.2g} by chance"
    text = (
        f"{direction} R@10 − R@5 is {one.gain:.{recalls[10].decimals}f}; in all {COMPARED} full rankings in print it "
        f"is {LEAST_GAIN:g} times min(R@5, 100 − R@5) or more, here {one.least:.2g}{places}. That is what ranking "
        f"{one.at_least} to {one.at_most} candidates of each query gives, all others missed or tied; which of these "
        "numbers, R@1, R@5 and R@10 cannot tell"
    )
    return Sign("truncated", (f"{direction} R@5", f"{direction} R@10"), text)


def _sums(target: Target) -> Iterator[Sign]:
    for name, cell in target.cells.items():
        names = sum_cells(name) if name.endswith("rsum") else []
        if names and all(part in target.cells for part in names):
            parts = [target.cells[part] for part in names]
            total = math.fsum(part.value for part in parts)
            # Cut-off digits all fall to one side, so a whole unit of each; rounded ones half a unit.
            if abs(total - cell.value) > sum(part.unit for part in parts) + cell.unit + 1e-9:
                text = f"{name} {cell} is not the sum of its recalls, {total:.{cell.decimals}f}"
                yield Sign("impossible", (name, *names), text)


def _unusual(target: Target) -> Iterator[Sign]:
    i2t, t2i = (target.cells.get(f"{way} R@1") for way in DIRECTIONS)
    if i2t is not None and t2i is not None and t2i.value >= 10 and i2t.value < _LEAST_RATIO * t2i.value:
        text = (
            f"i2t R@1 {i2t} is {i2t.value / t2i.value:.2f} times t2i R@1 {t2i}; with five captions per image, "
            f"of which any counts, 128 of 130 printed tables have {_LEAST_RATIO} times or more: one caption "
            "per image may have been used, or the directions swapped"
        )
        yield Sign("unusual", ("i2t R@1", "t2i R@1"), text)
    shares = {f"{way} R@{k}": cell.value for way in DIRECTIONS for k, cell in target.recalls(way).items()}
    if max(shares.values(), default=2) <= 1 and any(0 < value < 1 for value in shares.values()):
        text = "no recall is above 1 %; if these are fractions of 1, give them in per cent"
        yield Sign("unusual", tuple(shares), text)
