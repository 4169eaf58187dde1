"""What chapter 5's text says of tables 5.3 and 5.4, over whatever collections and models there are.

Shares are relative to the sum without perturbation, of the same row and collection.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.studies.brittleness_rows import (
    CONTROL,
    FINER,
    KINDS,
    SHUFFLES,
    THIRTEEN,
    listed,
    models_of,
    pairs_of,
    relative_change,
    share_text,
)
from diptych.studies.claims import Check, Finding, missing
from diptych.studies.verdict import Evidence


def _changes(evidence: Evidence, columns: Sequence[str]) -> dict[tuple[str, str], list[float]]:
    """Model and collection → the relative change of every column, where all are there."""
    found = {}
    for row in models_of(evidence):
        for collection in evidence.centric:
            changes = [relative_change(evidence, row, collection, column) for column in columns]
            present = [change for change in changes if change is not None]
            if len(present) == len(columns):
                found[row, collection] = present
    return found


def mostly_lower() -> Check:
    """Perturbations lower the sum in more than half of all models, collections and perturbations."""

    def check(evidence: Evidence) -> list[Finding]:
        what = "the sum drops in more than half of all models, collections and kinds of perturbation"
        found = {
            f"{row} on {name}, {column} {share_text(change)}": change
            for row in models_of(evidence)
            for name in evidence.centric
            for column in KINDS
            if (change := relative_change(evidence, row, name, column)) is not None
        }
        if not found:
            return [missing(what, "a sum without and one with a perturbation")]
        lower = sum(change < 0 for change in found.values())
        other = sorted((case for case, change in found.items() if change >= 0), key=lambda case: -found[case])
        detail = f"{lower} of {len(found)}" + (f"; not {listed(other)}" if other else "")
        return [Finding(what, 2 * lower > len(found), detail, 2 * lower / len(found) - 1)]

    return check


def lowers_always(columns: Sequence[str]) -> Check:
    """Each of ``columns`` lowers the sum of every model on every collection."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for row in models_of(evidence):
            for name in evidence.centric:
                for column in columns:
                    what = f"{column} lowers the sum of {row} on {name}"
                    change = relative_change(evidence, row, name, column)
                    if change is not None:
                        findings.append(Finding(what, change < 0, share_text(change), -change))
        return findings or [missing("word order matters", "sums of shuffled captions")]

    return check


def hurts_most(column: str, least: bool = False) -> Check:
    """A kind's mean relative drop, over models and collections, is the largest, or the least, of all kinds."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{column} has the {'least' if least else 'largest'} drop of all kinds, on average"
        changes = _changes(evidence, KINDS)
        if not changes:
            return [missing(what, "sums of all kinds of perturbation")]
        means = dict(zip(KINDS, np.mean(list(changes.values()), axis=0).tolist(), strict=True))
        finding = _extreme(what, column, means, least)
        return [finding]

    return check


def hurts_most_everywhere(column: str, least: bool = False) -> Check:
    """The same for every model on every collection."""

    def check(evidence: Evidence) -> list[Finding]:
        word = "least" if least else "largest"
        findings = [
            _extreme(
                f"{column} has the {word} drop of {row} on {name}",
                column,
                dict(zip(KINDS, changes, strict=True)),
                least,
            )
            for (row, name), changes in _changes(evidence, KINDS).items()
        ]
        return findings or [missing(f"{column} has the {word} drop", "sums of all kinds of perturbation")]

    return check


def _extreme(what: str, column: str, changes: dict[str, float], least: bool) -> Finding:
    """Whether a kind's change is the lowest (the largest drop), or the highest (the least), of all."""
    sign = 1 if least else -1
    others = {name: sign * change for name, change in changes.items() if name != column}
    next_one = max(others, key=lambda name: others[name])
    margin = sign * changes[column] - others[next_one]
    detail = f"{share_text(changes[column])}, {next_one} {share_text(changes[next_one])}"
    return Finding(what, margin > 0, detail, margin)


def finer_drops_less(leave_out: Sequence[str] = (), only: str | None = None, most: bool = True) -> Check:
    """With finer captions the relative drop, a mean over models, is smaller for more (or fewer) than half of
    the perturbations: of the thirteen where all were run, else of the kinds that are printed.
    """

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for coarse, finer in pairs_of(evidence):
            if coarse.lower() in leave_out or (only is not None and coarse.lower() != only):
                continue
            amount = "more" if most else "fewer"
            what = (
                f"drops on {finer} are smaller than on {coarse} for {amount} than half of the perturbations"
            )
            for columns in (THIRTEEN, KINDS):
                changes = _changes(evidence, columns)
                rows = [row for row, name in changes if name == coarse and (row, finer) in changes]
                if rows:
                    break
            if not rows:
                findings.append(missing(what, f"perturbed sums on {coarse} and {finer}"))
                continue
            before, after = (
                np.mean([changes[row, name] for row in rows], axis=0) for name in (coarse, finer)
            )
            smaller = [name for name, one, other in zip(columns, after, before, strict=True) if one > other]
            margin = 2 * len(smaller) / len(columns) - 1
            detail = f"{len(smaller)} of {len(columns)}: {', '.join(smaller) or 'none'}"
            findings.append(
                Finding(what, margin > 0 if most else margin < 0, detail, margin if most else -margin)
            )
        return findings or [missing("drops on finer captions", f"{only or 'a collection'} and its finer one")]

    return check


def indifferent(columns: Sequence[str] = SHUFFLES) -> Check:
    """The control gives each query the same three recalls after each of ``columns``, to the last bit; where
    queries were not counted, their sum is the same."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for name in evidence.centric:
            for column in columns:
                what = f"no query of {CONTROL} moves on {name} after {column}"
                moved = evidence.figure(CONTROL, f"{name} {column} moved")
                changed = evidence.figure(CONTROL, f"{name} {column} changed")
                apart = relative_change(evidence, CONTROL, name, column)
                if moved is not None and changed is not None:
                    detail = f"{moved.mean:.2f} % of queries move, {changed.mean:.1f} % have another text"
                    findings.append(Finding(what, moved.mean == 0, detail, -moved.mean))
                elif apart is not None:
                    findings.append(Finding(what, apart == 0, share_text(apart), -abs(apart)))
        return findings or [missing(f"{CONTROL} is indifferent to the order of words", CONTROL)]

    return check


# Table 5.4 ------------------------------------------------------------------------------------------


def highest(group: str, lowest: bool = False) -> Check:
    """A group's similarity is the highest, or the lowest, of the three, for every model and collection."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for row in models_of(evidence):
            for name in evidence.centric:
                found = {
                    one: figure.mean
                    for one in ("decreased", "increased", "unchanged")
                    if (figure := evidence.figure(row, f"{name} {one}")) is not None
                }
                if group not in found or len(found) < 2:
                    continue
                sign = -1 if lowest else 1
                others = {one: sign * value for one, value in found.items() if one != group}
                next_one = max(others, key=lambda one: others[one])
                margin = sign * found[group] - others[next_one]
                what = f"{group} is the {'lowest' if lowest else 'highest'} of {row} on {name}"
                detail = f"{found[group]:.3f}, {next_one} {found[next_one]:.3f}"
                findings.append(Finding(what, margin > 0, detail, margin))
        return findings or [missing(f"{group} of all groups", "similarities of changed captions")]

    return check


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
