"""Checks of thesis chapter 2's claims against the original numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.reproducibility_orders import PAIR, RECALL_COLUMNS, order_in, tables
from diptych.studies.verdict import Evidence, printed_by

_TOLERANCE = 0.05


@cache
def _original() -> Evidence:
    return printed_by(tables(), "original")


def as_original(dataset: str, columns: Sequence[str], same: bool = True) -> Check:
    """In each column of ``dataset`` the same row is ahead as in the original numbers (or the other one)."""
    word = "the same" if same else "another"

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            name = f"{dataset} {column}"
            what = f"{word} row is ahead in {name} as in the original"
            ours, theirs = order_in(evidence, PAIR, name), order_in(_original(), PAIR, name)
            if ours is None or theirs is None:
                findings.append(missing(what, f"{name} of {' and '.join(PAIR)}"))
                continue
            detail = f"{ours.ahead or 'neither'} by {abs(ours.apart):.1f}, originally {theirs.ahead}"
            holds = (ours.ahead == theirs.ahead) is same
            findings.append(Finding(what, holds, detail, abs(ours.apart) / 100))
        return findings

    return check


def within_tolerance(row: str, dataset: str, columns: Sequence[str], inside: bool = True) -> Check:
    """Each score is within 5 % of the original one, or none is."""
    return _beside_original(
        row,
        dataset,
        columns,
        "is within 5 % of the original" if inside else "is not within 5 % of the original",
        lambda share: (abs(share) <= _TOLERANCE) is inside,
        lambda share: (_TOLERANCE - abs(share)) * (1 if inside else -1),
    )


def from_original(row: str, column: str, share: float, tolerance: float) -> Check:
    """A score is ``share`` above (below, where negative) the original one; ``column`` names the collection."""
    dataset, _, name = column.partition(" ")
    word = f"is {100 * abs(share):g} % {'above' if share > 0 else 'below'} the original"
    return _beside_original(
        row,
        dataset,
        [name],
        word,
        lambda have: abs(have - share) <= tolerance + 1e-9,
        lambda have: tolerance - abs(have - share),
    )


def _beside_original(
    row: str,
    dataset: str,
    columns: Sequence[str],
    word: str,
    rule: Callable[[float], bool],
    margin: Callable[[float], float],
) -> Check:
    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            name = f"{dataset} {column}"
            ours, theirs = evidence.figure(row, name), _original().figure(row, name)
            what = f"{name} of {row} {word}"
            if ours is None or theirs is None:
                findings.append(missing(what, f"{name} of {row}"))
                continue
            share = ours.mean / theirs.mean - 1
            detail = f"{ours.mean:.2f} for {theirs.mean:.2f} ({100 * share:+.1f} %)"
            findings.append(Finding(what, rule(share), detail, margin(share)))
        return findings

    return check


def lower_than_original(datasets: Sequence[str]) -> Check:
    """More than half of a row's recalls are below the original ones."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for row in PAIR:
            what = f"scores of {row} tend to be lower than the original ones"
            names = [f"{dataset} {column}" for dataset in datasets for column in RECALL_COLUMNS]
            both = [(evidence.figure(row, name), _original().figure(row, name)) for name in names]
            lower = [a.mean < b.mean for a, b in both if a is not None and b is not None]
            if not lower:
                findings.append(missing(what, f"{row} on {' or '.join(datasets)}"))
                continue
            share = sum(lower) / len(lower)
            findings.append(Finding(what, share > 0.5, f"{sum(lower)} of {len(lower)} recalls", share - 0.5))
        return findings

    return check


def larger_gains(dataset: str) -> Check:
    """By how much X-VLM is above CLIP, as a share, tends to be larger than originally, most so in i2t R@1."""

    def check(evidence: Evidence) -> list[Finding]:
        first, second = PAIR
        gains = {}
        for column in RECALL_COLUMNS:
            name = f"{dataset} {column}"
            found = [_gain(one, first, second, name) for one in (evidence, _original())]
            if found[0] is not None and found[1] is not None:
                gains[column] = (found[0], found[1])
        what = f"{first}'s gains over {second} on {dataset} tend to be larger than originally"
        most = f"{first}'s largest gain over {second} on {dataset} is i2t R@1's"
        if len(gains) < len(RECALL_COLUMNS):
            return [missing(one, f"{dataset} recalls of {first} and {second}") for one in (what, most)]
        larger = sum(ours > theirs for ours, theirs in gains.values())
        best = max(gains, key=lambda column: gains[column][0])
        detail = f"{best}: {100 * gains[best][0]:+.0f} %, originally {100 * gains[best][1]:+.0f} %"
        return [
            Finding(
                what, 2 * larger > len(gains), f"{larger} of {len(gains)} recalls", larger / len(gains) - 0.5
            ),
            Finding(most, best == "i2t R@1", detail, 0.0),
        ]

    return check


def _gain(evidence: Evidence, first: str, second: str, name: str) -> float | None:
    one, other = evidence.figure(first, name), evidence.figure(second, name)
    return None if one is None or other is None or not other.mean else one.mean / other.mean - 1
