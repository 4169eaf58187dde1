"""Corrections of p-values for how many of them there are.

Sources: Dunn, Multiple comparisons among means, JASA 1961 (Bonferroni); Holm, A simple sequentially
rejective multiple test procedure, Scandinavian Journal of Statistics 1979. Both keep the chance of one wrong
verdict or more at the level, whatever hangs together with what; Holm's is never the stricter one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from diptych.core.errors import UnknownNameError

Correction = Literal["bonferroni", "holm", "none"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)

LEVEL = 0.05
"""The corrected p-value up to which a difference is said to be one."""


def correction_named(name: str) -> Correction:
    """The correction of that name."""
    for known in CORRECTIONS:
        if name == known:
            return known
    raise UnknownNameError("correction", name, CORRECTIONS)


def corrected(p: Sequence[float | None], correction: Correction) -> list[float | None]:
    """Corrected p-values, at most 1.

    Args:
        p: of all that were tested; None where nothing was, which does not count.
    """
    tested = sorted((value, place) for place, value in enumerate(p) if value is not None)
    found: list[float | None] = [None] * len(p)
    before = 0.0
    for rank, (value, place) in enumerate(tested):
        factor = {"bonferroni": len(tested), "holm": len(tested) - rank, "none": 1}[correction]
        before = max(before, min(1.0, value * factor))
        found[place] = before
    return found


def correction_text(correction: Correction, tested: int) -> str:
    """What was corrected for, e.g. ``Holm over 12 comparisons``; empty where nothing was."""
    return "" if correction == "none" else f"{correction.capitalize()} over {tested:,} comparisons"
