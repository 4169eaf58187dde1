"""Everything the digits of a target say: of how many queries they are shares, and signs of how they were made.

A recall is a whole number of hits over a number of queries, which is possible when every printed value is such
a fraction, rounded or cut off at the printed decimals. With two decimals a set of 1,000 queries can print one
value in ten, so six values that all fit did so by chance once in a million; a set of 10,000 can print them all.

**Were places 6 to 10 ranked at all?** In a full ranking R@10 gains at least :data:`LEAST_GAIN` of what there is to
gain, in all tables of full rankings at hand. Where only k candidates were ranked, nothing but chance fills the places
behind the k-th: of the queries that miss, a share p · x / (N − 5) finds a positive in x further places, p positives
in a gallery of N. A gain that chance explains says that at most as many candidates were ranked as the cut-off before
it; how many fewer, R@1, R@5 and R@10 cannot tell.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.reading import read_toml
from diptych.evaluation.printed.target import RULES, Printed, Target, sum_cells
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
    """Bounds on how many candidates per query were ranked, by the gains between printed cut-offs."""

    at_least: int  # candidates that were ranked: 2 where R@5 gains more than chance over R@1, else 1
    at_most: int | None  # the cut-off behind which only chance gains; None where that cannot be computed
    gain: float  # R@10 less R@5, in per cent
    least: float  # what a full ranking gains at least, in per cent
    by_chance: float | None  # what unranked places would gain, in per cent; None of an unknown gallery


def truncation(
    recalls: Mapping[int, Printed],
    gallery: int | None = None,
    positives: float = 1.0,
    queries: int | None = None,
) -> Truncation | None:
    """Judge whether R@10 − R@5 is that of a full ranking; None where one is missing or nothing follows."""
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


_KNOWN_SIZES = read_toml(Path(__file__).with_name("sizes.toml"))["sizes"]


def names_of(n: int) -> tuple[str, ...]:
    """Return what is known to have ``n`` queries, e.g. ``"images of Flickr30k val"``."""
    return tuple(what for size, what in _KNOWN_SIZES if size == n)


@dataclass(frozen=True)
class Size:
    """A number of queries that makes every printed value."""

    n: int  # how many queries
    known: tuple[str, ...]  # which test sets have so many
    chance: float  # probability that values unrelated to n would all fit it


@dataclass(frozen=True)
class PossibleSizes:
    """Numbers of queries that one rule allows."""

    sizes: tuple[Size, ...]  # those that fit, ascending
    tried: int  # how many numbers of queries were tried
    expected: float  # how many of them would fit by chance, if the values had nothing to do with any
    distinct: int  # how many different values had to fit
    chances: Mapping[int, float]  # of known sizes that were tried, to fit by chance

    @property
    def known(self) -> list[Size]:
        """Return those that are the size of a known test set, the least likely by chance first."""
        return sorted((size for size in self.sizes if size.known), key=lambda size: size.chance)

    def to_dict(self) -> dict[str, Any]:
        smallest, known = (list(map(asdict, some)) for some in (self.sizes[:_LISTED], self.known))
        return {
            "smallest": smallest,
            "of known test sets": known,
            "tried": self.tried,
            "fitting": len(self.sizes),
            "expected by chance": self.expected,
            "distinct values": self.distinct,
        }


def chance_of_size(n: int | np.ndarray, values: Iterable[Printed]) -> np.ndarray:
    """Return the probability that values drawn from all printable ones would all fit ``n`` queries.

    Of the ``100 * 10**decimals + 1`` printable shares, n queries make n + 1, or all of them where n is
    larger. A value that is printed twice counts once.
    """
    chance = np.ones_like(np.asarray(n), dtype=np.float64)
    for value in {(one.value, one.decimals) for one in values}:
        printable = 100 * 10 ** value[1]
        chance *= np.minimum(1.0, (np.asarray(n) + 1) / (printable + 1))
    return chance


def possible_sizes(
    values: Iterable[Printed], rule: str = "round", candidates: Iterable[int] = range(1, 30_001)
) -> PossibleSizes:
    """Return the numbers of queries of which every value is a share, in per cent."""
    given = list(values)
    tried = np.unique(np.fromiter(candidates, dtype=np.int64))
    if not given or not len(tried) or tried[0] < 1:
        text = f"{len(given)} values and {len(tried)} numbers of queries: nothing to try"
        raise UsageError(text, "give printed values, and numbers of queries from 1 on")
    fits = np.ones(len(tried), dtype=bool)
    for one in given:
        if not 0 <= one.value <= 100:
            raise UsageError(f"{one} is no share in per cent", "give values from 0 to 100")
        fits &= _fits(one, tried, rule)
    chance = np.broadcast_to(chance_of_size(tried, given), tried.shape)
    fitting = zip(tried[fits].tolist(), chance[fits].tolist(), strict=True)
    sizes = tuple(Size(n, names_of(n), by_luck) for n, by_luck in fitting)
    distinct = len({(one.value, one.decimals) for one in given})
    is_known = np.isin(tried, [n for n, _ in _KNOWN_SIZES])
    chances = dict(zip(tried[is_known].tolist(), chance[is_known].tolist(), strict=True))
    return PossibleSizes(sizes, len(tried), float(chance.sum()), distinct, chances)


def _fits(one: Printed, n: np.ndarray, rule: str) -> np.ndarray:
    """Return whether some whole number of hits of ``n`` is printed as this value; in whole numbers throughout."""
    whole = 100 * 10**one.decimals  # 100 % in units of the last digit
    units = round(one.value * 10**one.decimals)
    if rule == "round":  # 2 * whole * hits / n within 2 * units ± 1
        least = -((-(2 * units - 1) * n) // (2 * whole))
        most = ((2 * units + 1) * n) // (2 * whole)
    else:  # whole * hits / n within [units, units + 1)
        least = -((-units * n) // whole)
        most = -((-(units + 1) * n) // whole) - 1
    return np.asarray(np.maximum(least, 0) <= np.minimum(most, n))


ALL_CELLS = "all recalls"
"""Recalls of both directions, where one number of queries has to make them all: one caption per image."""

_WORDS = {"round": "rounded", "truncate": "cut off"}
_TELLING = 0.05  # a size that more digits than these would fit by chance is not reported
_SHOWN = 2
_LISTED = 100  # sizes in the artefact
_MOST_QUERIES = 200_000  # larger test sets are not looked for


@dataclass(frozen=True)
class DigitReport:
    # by recalls (``"all recalls"``, ``"i2t"``, ...) and rule
    sizes: Mapping[str, Mapping[str, PossibleSizes]]
    signs: tuple[Sign, ...]
    given: Mapping[str, int] = field(default_factory=dict)  # per direction, queries of a test set at hand
    runs: int = 1  # of how many runs each number is a mean; of several, digits tell no number of queries

    def sentences(self) -> list[str]:
        """Return one or two sentences per finding."""
        lines = [f"{one.text}." for one in self.signs]
        if self.runs > 1:
            text = f"These are means of {self.runs} runs: of how many queries they are shares, their digits do not say."
            return [*lines, text]
        fitting = {direction: self._fitting(direction, n) for direction, n in self.given.items()}
        least: float | None = None  # chance of what was named before: what is less telling is left out
        for of, by_rule in self.sizes.items():
            if least is None and of != next(iter(self.sizes)):
                continue
            given = [n for way, n in self.given.items() if of in (ALL_CELLS, way) and fitting[way]]
            line, chance = _known_line(of, by_rule, least, given)
            least = least if chance is None else chance
            lines += [line] if line else []
        for direction, n in self.given.items():
            rules = fitting[direction]
            chance = next(iter(rules.values()), 0.0)
            if not rules:
                lines.append(
                    f"The {direction} recalls cannot be shares of the {n:,} queries given, neither rounded nor cut "
                    "off: other queries were scored, or R@K is no share of them."
                )
            elif chance <= 0.5:
                lines.append(
                    f"The {direction} recalls can be shares of the {n:,} queries given ({' or '.join(rules)}); digits "
                    f"of anything else could with probability {chance:.2g}."
                )
        return lines

    def _fitting(self, direction: str, n: int) -> dict[str, float]:
        """Return by which rules the recalls are shares of ``n`` queries, and how likely that is by chance."""
        by_rule = self.sizes.get(direction, {})
        return {_WORDS[rule]: one.chance for rule in by_rule for one in by_rule[rule].sizes if one.n == n}

    def to_dict(self) -> dict[str, Any]:
        """Return it JSON-able; of many possible sizes the smallest."""
        sizes = {of: {rule: one.to_dict() for rule, one in some.items()} for of, some in self.sizes.items()}
        return {
            "possible numbers of queries": sizes,
            "queries given": dict(self.given),
            "means of runs": self.runs,
            "signs": [{"kind": one.kind, "cells": list(one.cells), "text": one.text} for one in self.signs],
        }


def read_digits(
    target: Target,
    galleries: Mapping[Direction, tuple[int, float, int]] | None = None,
) -> DigitReport:
    shares: dict[str, list[Printed]] = {way: list(target.recalls(way).values()) for way in DIRECTIONS}
    every = {ALL_CELLS: [cell for some in shares.values() for cell in some]} if all(shares.values()) else {}
    decimals = max((cell.decimals for some in shares.values() for cell in some), default=0)
    telling = range(1, min(100 * 10**decimals, _MOST_QUERIES))
    queries: dict[str, int] = {way: one[2] for way, one in (galleries or {}).items()}
    tried = {*telling, *queries.values()}
    sizes = {
        of: {rule: possible_sizes(values, rule, tried) for rule in RULES}
        for of, values in (every | shares).items()
        if values and target.runs == 1
    }
    given = {way: n for way, n in queries.items() if way in sizes}
    return DigitReport(sizes, signs(target, galleries), given, target.runs)


def _known_line(
    of: str, by_rule: Mapping[str, PossibleSizes], least: float | None, given: Sequence[int]
) -> tuple[str, float | None]:
    """Say which known sizes fit by which rule, and how likely the best of them is by chance.

    Sizes less significant than ``least`` are left out. The sizes ``given`` are reported elsewhere; what they make,
    their multiples make too, and other sizes need not be looked for.
    """
    if any(one.n % n == 0 for rule in by_rule.values() for one in rule.known for n in given):
        return "", None
    found: dict[int, tuple[Size, list[str]]] = {}
    for rule, one in by_rule.items():
        for size in one.known:
            # What n makes, its multiples make too.
            if size.chance < _TELLING and not any(size.n % n == 0 and size.n > n for n in found):
                found.setdefault(size.n, (size, []))[1].append(_WORDS[rule])
    which = "all recalls together" if of == ALL_CELLS else f"the {of} recalls"
    best = sorted(found.values(), key=lambda one: one[0].chance)[:_SHOWN]
    if best:
        chance, chances = best[0][0].chance, next(iter(by_rule.values())).chances
        if least is not None and least <= chance:
            return "", None
        sizes = "; or ".join(
            f"{size.n:,} queries, {' or '.join(rules)} ({', '.join(size.known)}; digits of anything else would fit "
            f"this size with probability {size.chance:.2g}, one of those as small with at most "
            f"{min(1.0, len(RULES) * sum(one for one in chances.values() if one <= size.chance)):.2g})"
            for size, rules in best
        )
        return f"Of {len(chances)} sizes of known test sets, {which} fit {sizes}.", chance
    smallest = {_WORDS[rule]: one.sizes[0] for rule, one in by_rule.items() if one.sizes}
    if least is not None or all(size.chance >= _TELLING for size in smallest.values()):
        return "", None
    sizes = " and ".join(f"{size.n:,} {rule}" for rule, size in smallest.items())
    text = f"No known test set is of a size that {which} fit and other digits would not; the smallest sizes that they "
    return f"{text}fit at all are {sizes}, which by itself means little.", None
