"""All that the digits of a target give away, put together: sizes by rule and signs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diptych.evaluation.printed.signs import Sign, signs
from diptych.evaluation.printed.sizes import PossibleSizes, Size, possible_sizes
from diptych.evaluation.printed.target import RULES, Printed, Target
from diptych.metrics.ground_truth import DIRECTIONS, Direction

ALL_CELLS = "all recalls"
"""Recalls of both directions, where one number of queries has to make them all: one caption per image."""

_WORDS = {"round": "rounded", "truncate": "cut off"}
_TELLING = 0.05  # a size that more digits than these would fit by chance is not told
_SHOWN = 2
_LISTED = 100  # sizes in the artefact
_MOST_QUERIES = 200_000  # larger test sets are not looked for


@dataclass(frozen=True)
class DigitReport:
    """What the digits say."""

    # by which recalls (:data:`ALL_CELLS`, ``"i2t"``, ``"t2i"``) and rule, the numbers of queries that are
    # possible
    sizes: Mapping[str, Mapping[str, PossibleSizes]]
    signs: tuple[Sign, ...]  # what is impossible, truncated or unusual
    # per direction, how many queries the test set at hand has, where there is one
    given: Mapping[str, int] = field(default_factory=dict)
    runs: int = 1  # of how many runs each number is a mean; of several, digits tell no number of queries

    def sentences(self) -> list[str]:
        """One or two sentences per finding."""
        lines = [f"{one.text}." for one in self.signs]
        if self.runs > 1:
            return [
                *lines,
                f"These are means of {self.runs} runs: of how many queries they are shares, their digits do not say.",
            ]
        told: list[float] = []
        fitting = {direction: n for direction, n in self.given.items() if self._fits(direction, n)}
        for of, by_rule in self.sizes.items():
            if of == next(iter(self.sizes)) or told:
                own = list(fitting.values()) if of == ALL_CELLS else [fitting[of]] if of in fitting else []
                lines += _known_line(of, by_rule, told, own)
        for direction, n in self.given.items():
            lines += _given_line(direction, n, self.sizes.get(direction))
        return lines

    def _fits(self, direction: str, n: int) -> bool:
        by_rule = self.sizes.get(direction, {})
        return any(size.n == n for one in by_rule.values() for size in one.sizes)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; of many possible sizes the smallest."""
        return {
            "possible numbers of queries": {
                of: {rule: _sizes_dict(one) for rule, one in by_rule.items()}
                for of, by_rule in self.sizes.items()
            },
            "queries given": dict(self.given),
            "means of runs": self.runs,
            "signs": [{"kind": one.kind, "cells": list(one.cells), "text": one.text} for one in self.signs],
        }


def read_digits(
    target: Target,
    galleries: Mapping[Direction, tuple[int, float, int]] | None = None,
    candidates: Iterable[int] | None = None,
) -> DigitReport:
    """Read the digits of a target."""
    shares: dict[str, list[Printed]] = {ALL_CELLS: []}
    for direction in DIRECTIONS:
        shares[direction] = list(target.recalls(direction).values())
        shares[ALL_CELLS] += shares[direction]
    if not shares["i2t"] or not shares["t2i"]:
        del shares[ALL_CELLS]
    decimals = max((cell.decimals for some in shares.values() for cell in some), default=0)
    telling = range(1, min(100 * 10**decimals, _MOST_QUERIES))
    tried = {
        *(telling if candidates is None else candidates),
        *(one[2] for one in (galleries or {}).values()),
    }
    sizes = {
        of: {rule: possible_sizes(values, rule, tried) for rule in RULES}
        for of, values in shares.items()
        if values and target.runs == 1
    }
    given: dict[str, int] = {
        name: queries for name, (_, _, queries) in (galleries or {}).items() if name in sizes
    }
    return DigitReport(sizes, signs(target, galleries), given, target.runs)


def _sizes_dict(one: PossibleSizes) -> dict[str, Any]:
    def listed(some: Iterable[Size]) -> list[dict[str, Any]]:
        return [{"n": size.n, "known": list(size.known), "chance": size.chance} for size in some]

    return {
        "smallest": listed(one.sizes[:_LISTED]),
        "of known test sets": listed(one.known),
        "tried": one.tried,
        "fitting": len(one.sizes),
        "expected by chance": one.expected,
        "distinct values": one.distinct,
    }


def _known_line(
    of: str, by_rule: Mapping[str, PossibleSizes], told: list[float], given: Sequence[int]
) -> list[str]:
    """Which known sizes fit by which rule, and how much that means.

    ``told`` are the chances of what was said before: what is less telling is left out. Of the sizes ``given``
    something else is said; what they make, their multiples make too, and other sizes need not be looked for.
    """
    if given and any(one.n % n == 0 for rule in by_rule.values() for one in rule.known for n in given):
        return []
    found: dict[int, tuple[Size, list[str]]] = {}
    for rule, one in by_rule.items():
        for size in one.known:
            # What n makes, its multiples make too.
            if size.chance < _TELLING and not any(size.n % n == 0 and size.n > n for n in found):
                found.setdefault(size.n, (size, []))[1].append(_WORDS[rule])
    who = "all recalls together" if of == ALL_CELLS else f"the {of} recalls"
    best = sorted(found.values(), key=lambda one: one[0].chance)[:_SHOWN]
    if best:
        if told and min(told) <= best[0][0].chance:
            return []
        told.append(best[0][0].chance)
        among = next(iter(by_rule.values()))
        said = "; or ".join(
            f"{size.n:,} queries, {' or '.join(rules)} ({', '.join(size.known)}; digits of anything else would fit "
            f"this size with probability {size.chance:.2g}, one of those as small with at most "
            f"{among.chance_of_any(size.chance):.2g})"
            for size, rules in best
        )
        return [f"Of {len(among.chances)} sizes of known test sets, {who} fit {said}."]
    smallest = [(rule, one.sizes[0]) for rule, one in by_rule.items() if one.sizes]
    if told or not smallest:
        return []
    if min(size.chance for _, size in smallest) >= _TELLING:
        return []
    said = " and ".join(f"{size.n:,} {_WORDS[rule]}" for rule, size in smallest)
    return [
        f"No known test set is of a size that {who} fit and other digits would not; the smallest sizes that they "
        f"fit at all are {said}, which alone means little."
    ]


def _given_line(direction: str, n: int, by_rule: Mapping[str, PossibleSizes] | None) -> list[str]:
    """Whether the recalls are shares of the queries at hand."""
    if by_rule is None:
        return []
    fitting = {rule: next((size for size in one.sizes if size.n == n), None) for rule, one in by_rule.items()}
    rules = [_WORDS[rule] for rule, size in fitting.items() if size is not None]
    if not rules:
        return [
            f"The {direction} recalls cannot be shares of the {n:,} queries given, neither rounded nor cut off: "
            "other queries were scored, or R@K is no share of them."
        ]
    chance = next(size.chance for size in fitting.values() if size is not None)
    if chance > 0.5:
        return []
    return [
        f"The {direction} recalls can be shares of the {n:,} queries given ({' or '.join(rules)}); digits of "
        f"anything else could with probability {chance:.2g}."
    ]
