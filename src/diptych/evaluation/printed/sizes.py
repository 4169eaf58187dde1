"""Of how many queries printed shares can be shares: arithmetic of the digits alone.

A recall is a whole number of hits over a number of queries. A number of queries is possible when every
printed value is such a fraction, rounded or cut off at the printed decimals. With two decimals a set of
1,000 queries can print one value in ten, so six values that all fit did so by chance once in a million;
a set of 10,000 can print them all, and nothing is learned. How likely a fit is by chance is given with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from diptych.core.errors import UsageError
from diptych.evaluation.printed.target import RULES, Printed

# Sizes of the field's test sets. Sources: Karpathy and Fei-Fei, CVPR 2015 (splits of Flickr8k, Flickr30k and COCO);
# the counts of CUB-200, ABO and Fashion200k are those of the files behind Hendriksen et al., ECIR 2023.


@dataclass(frozen=True)
class KnownSize:
    """One number of queries."""

    n: int  # how many
    kind: Literal["images", "captions"]  # whether they are images or captions
    what: str  # of which part of which dataset


KNOWN_SIZES = (
    KnownSize(1_000, "images", "Flickr30k test"),
    KnownSize(5_000, "captions", "Flickr30k test"),
    KnownSize(1_014, "images", "Flickr30k val"),
    KnownSize(5_070, "captions", "Flickr30k val"),
    KnownSize(1_000, "images", "Flickr8k test"),
    KnownSize(1_000, "images", "a COCO 1K fold"),
    KnownSize(5_000, "images", "COCO test or val"),
    KnownSize(25_010, "captions", "COCO test or val"),
    KnownSize(25_000, "captions", "COCO test, five each"),
    KnownSize(2_938, "images", "CUB-200 val (ECIR 2023)"),
    KnownSize(2_856, "images", "CUB-200 test (ECIR 2023)"),
    KnownSize(10_127, "images", "ABO val (ECIR 2023)"),
    KnownSize(10_210, "images", "ABO test (ECIR 2023)"),
    KnownSize(5_000, "images", "small test files of ABO and Fashion200k (ECIR 2023)"),
)
"""The test sets by size; several have the same."""

_NAMES = {
    n: tuple(f"{one.kind} of {one.what}" for one in KNOWN_SIZES if one.n == n)
    for n in {one.n for one in KNOWN_SIZES}
}


def names_of(n: int) -> tuple[str, ...]:
    """What is known to have ``n`` queries, e.g. ``"images of Flickr30k val"``."""
    return _NAMES.get(n, ())


@dataclass(frozen=True)
class Size:
    """A number of queries that makes every printed value."""

    n: int  # how many queries
    known: tuple[str, ...]  # which test sets have so many
    chance: float  # probability that values unrelated to n would all fit it


@dataclass(frozen=True)
class PossibleSizes:
    """What one rule allows."""

    rule: str  # ``round`` or ``truncate``
    sizes: tuple[Size, ...]  # those that fit, ascending
    tried: int  # how many numbers of queries were tried
    expected: float  # how many of them would fit by chance, if the values had nothing to do with any
    distinct: int  # how many different values had to fit
    # of the sizes of known test sets that were tried, how likely each would fit by chance
    chances: Mapping[int, float] = field(default_factory=dict)

    @property
    def known(self) -> tuple[Size, ...]:
        """Those that are the size of a known test set, the least likely by chance first."""
        return tuple(sorted((size for size in self.sizes if size.known), key=lambda size: size.chance))

    def chance_of_any(self, chance: float) -> float:
        """At most how likely some known size that is no more likely than ``chance`` fits, by either rule."""
        return min(1.0, len(RULES) * sum(one for one in self.chances.values() if one <= chance))


def chance_of_size(n: int | np.ndarray, values: Iterable[Printed]) -> np.ndarray:
    """Probability that values drawn from all printable ones would all fit ``n`` queries.

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
    """Numbers of queries of which every value is a share, in per cent."""
    given = list(values)
    if rule not in RULES:
        raise UsageError(f"rule {rule!r} is none of {', '.join(RULES)}", "choose one of them")
    tried = np.unique(np.fromiter(candidates, dtype=np.int64))
    if not given or not len(tried) or tried[0] < 1:
        raise UsageError(
            f"{len(given)} values and {len(tried)} numbers of queries: nothing to try",
            "give printed values, and numbers of queries from 1 on",
        )
    fits = np.ones(len(tried), dtype=bool)
    for one in given:
        if not 0 <= one.value <= 100:
            raise UsageError(f"{one} is no share in per cent", "give values from 0 to 100")
        fits &= _fits(one, tried, rule)
    chance = np.broadcast_to(chance_of_size(tried, given), tried.shape)
    sizes = tuple(
        Size(int(n), names_of(int(n)), float(by_luck))
        for n, by_luck in zip(tried[fits], chance[fits], strict=True)
    )
    distinct = len({(one.value, one.decimals) for one in given})
    is_known = np.isin(tried, [one.n for one in KNOWN_SIZES])
    chances = dict(zip(tried[is_known].tolist(), chance[is_known].tolist(), strict=True))
    return PossibleSizes(rule, sizes, len(tried), float(chance.sum()), distinct, chances)


def _fits(one: Printed, n: np.ndarray, rule: str) -> np.ndarray:
    """Whether some whole number of hits of ``n`` is printed as this value; in whole numbers throughout."""
    whole = 100 * 10**one.decimals  # 100 % in units of the last digit
    units = round(one.value * 10**one.decimals)
    if rule == "round":  # 2 * whole * hits / n within 2 * units ± 1
        least = -((-(2 * units - 1) * n) // (2 * whole))
        most = ((2 * units + 1) * n) // (2 * whole)
    else:  # whole * hits / n within [units, units + 1)
        least = -((-units * n) // whole)
        most = -((-(units + 1) * n) // whole) - 1
    fits: np.ndarray = np.maximum(least, 0) <= np.minimum(most, n)
    return fits
