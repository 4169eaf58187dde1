"""What chapter 5's text says of Table 5.2: what finer captions of the same pictures gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.studies.brittleness_evidence import listed, models_of, pairs_of, share_text
from diptych.studies.brittleness_rows import FINER
from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence


def finer_raises(*columns: str) -> Check:
    """Finer captions give a higher value than the coarse ones in more than half of all cases."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"finer captions raise {' and '.join(columns)} in more than half of all models and collections"
        gains = {
            f"{row}, {coarse} {column}": gain
            for row in models_of(evidence)
            for coarse, finer in pairs_of(evidence)
            for column in columns
            if (gain := _gain(evidence, row, coarse, finer, column)) is not None
        }
        if not gains:
            return [missing(what, "a collection and its finer one, NAME and NAME-fg")]
        up = sum(gain > 0 for gain in gains.values())
        other = [f"{case} {share_text(gain)}" for case, gain in gains.items() if gain <= 0]
        detail = f"{up} of {len(gains)}" + (f"; not {listed(other)}" if other else "")
        return [Finding(what, 2 * up > len(gains), detail, 2 * up / len(gains) - 1)]

    return check


def _gain(evidence: Evidence, row: str, coarse: str, finer: str, column: str) -> float | None:
    """By what share finer captions raise a column; None with one missing or nothing to be relative to."""
    before, after = (evidence.figure(row, f"{name} {column}") for name in (coarse, finer))
    if before is None or after is None or before.mean <= 0:
        return None
    return after.mean / before.mean - 1


def _mean_gain(evidence: Evidence, column: str, only: Sequence[str] = ()) -> float | None:
    """The mean over models and collections, or over models on ``only`` these, all of which must be there."""
    pairs = {coarse.lower(): (coarse, finer) for coarse, finer in pairs_of(evidence)}
    if not pairs.keys() >= set(only):
        return None
    gains = [
        gain
        for row in models_of(evidence)
        for coarse, finer in ([pairs[name] for name in only] or pairs.values())
        if (gain := _gain(evidence, row, coarse, finer, column)) is not None
    ]
    return float(np.mean(gains)) if gains else None


def gains_more(first: str, second: str) -> Check:
    """Finer captions raise column ``first`` by a larger share than ``second``, on average."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"finer captions raise {first} by a larger share than {second}, on average"
        one, other = _mean_gain(evidence, first), _mean_gain(evidence, second)
        if one is None or other is None:
            return [missing(what, "a collection and its finer one, NAME and NAME-fg")]
        return [Finding(what, one > other, f"{share_text(one)} and {share_text(other)}", one - other)]

    return check


def average_gain(column: str, share: float, *collections: str, within: float = 0.005) -> Check:
    """Finer captions of the paper's ``collections`` raise a column by ``share``, a mean over models, give or
    take ``within``."""

    def check(evidence: Evidence) -> list[Finding]:
        what = (
            f"finer captions raise {column} on {' and '.join(collections)} by {100 * share:.2f} % on average"
        )
        gain = _mean_gain(evidence, column, collections)
        if gain is None:
            return [missing(what, *(f"{name} and {name}{FINER}" for name in collections))]
        return [Finding(what, abs(gain - share) <= within, share_text(gain), within - abs(gain - share))]

    return check


def gain_of(row: str, collection: str, column: str, share: float, within: float = 0.005) -> Check:
    """Finer captions raise one row's column by ``share``, and no other model's by more."""

    def check(evidence: Evidence) -> list[Finding]:
        what = (
            f"finer captions raise {column} of {row} on {collection} by {100 * share:.2f} %, the most of all"
        )
        gains = {
            (one, coarse, name): gain
            for one in models_of(evidence)
            for coarse, finer in pairs_of(evidence)
            for name in ("i2t R@1", "t2i R@1")
            if (gain := _gain(evidence, one, coarse, finer, name)) is not None
        }
        own = gains.get((row, collection, column))
        if own is None:
            return [missing(what, f"{row} on {collection} and its finer one")]
        holds = abs(own - share) <= within and own == max(gains.values())
        return [Finding(what, holds, share_text(own), within - abs(own - share))]

    return check
