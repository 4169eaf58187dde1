"""Checks of thesis chapter 2's claims: against the original numbers, and across kinds of collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence, printed_by
from diptych.studies.orders import Agreement, agreement, order_in
from diptych.studies.reproducibility_orders import (
    COLUMNS,
    PAIR,
    measured_orders,
    printed_orders,
    tables,
    verdict_of,
)
from diptych.studies.reproducibility_tree import tree_of
from diptych.studies.retrieval import RECALLS

__all__ = [
    "ahead_everywhere",
    "alone",
    "as_original",
    "from_original",
    "larger_gains",
    "lower_on_objects",
    "lower_than_original",
    "mostly_ahead",
    "only_partly",
    "replicated_from",
    "within_tolerance",
]

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
            names = [f"{dataset} {column}" for dataset in datasets for column in _recalls()]
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
        for column in _recalls():
            name = f"{dataset} {column}"
            found = [_gain(one, first, second, name) for one in (evidence, _original())]
            if found[0] is not None and found[1] is not None:
                gains[column] = (found[0], found[1])
        what = f"{first}'s gains over {second} on {dataset} tend to be larger than originally"
        most = f"{first}'s largest gain over {second} on {dataset} is i2t R@1's"
        if len(gains) < len(_recalls()):
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


def ahead_everywhere(better: str, worse: str, kind: str) -> Check:
    """``better`` is ahead in every column on every collection of a kind."""

    def check(evidence: Evidence) -> list[Finding]:
        names = [name for name, shows in evidence.centric.items() if shows == kind]
        findings = []
        for name in names or ["a collection"]:
            for column in COLUMNS:
                order = order_in(evidence, (better, worse), f"{name} {column}")
                what = f"{better} beats {worse} in {name} {column}"
                if order is None:
                    findings.append(missing(what, f"{kind}-centric collections of {better} and {worse}"))
                else:
                    findings.append(Finding(what, order.apart > 0, f"{order.apart:+.2f}", order.apart))
        return findings

    return check


def mostly_ahead(better: str, worse: str, kind: str) -> Check:
    """``better`` is ahead in more than half of the recalls on all collections of a kind together."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{better} mostly beats {worse} on {kind}-centric collections"
        names = [name for name, shows in evidence.centric.items() if shows == kind]
        orders = [
            order
            for name in names
            for column in _recalls()
            if (order := order_in(evidence, (better, worse), f"{name} {column}")) is not None
        ]
        if not orders:
            return [missing(what, f"a {kind}-centric collection")]
        won = sum(order.apart > 0 for order in orders)
        share = won / len(orders)
        return [Finding(what, share > 0.5, f"{won} of {len(orders)} recalls", share - 0.5)]

    return check


def alone(dataset: str, ahead: str, behind: str) -> Check:
    """On ``dataset`` one row is ahead in every recall, on every other collection the other one."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for name in evidence.centric:
            first, second = (ahead, behind) if name.lower() == dataset else (behind, ahead)
            for column in _recalls():
                order = order_in(evidence, (first, second), f"{name} {column}")
                if order is not None:
                    what = f"{first} beats {second} in {name} {column}"
                    findings.append(Finding(what, order.apart > 0, f"{order.apart:+.2f}", order.apart))
        there = any(name.lower() == dataset for name in evidence.centric)
        return findings if there and findings else [missing(f"{dataset} is the odd one out", dataset)]

    return check


def only_partly(question: str) -> Check:
    """Orders agree in some comparisons and not in others, in both directions together.

    Args:
        question: ``replicated``: the originals' orders on scene-centric collections against those here on
            object-centric ones; ``generalised``: those here on both kinds.
    """

    def check(evidence: Evidence) -> list[Finding]:
        ours = measured_orders(evidence)
        tree = tree_of(evidence.centric)
        if question == "generalised":
            what = "orders on scene-centric collections are found again on object-centric ones, but not all"
            found = verdict_of(tree, ours, ours)
        else:
            what = "the originals' orders are found again on object-centric collections, but not all"
            original = printed_orders("original")
            found = sum(
                (verdict_of(leaf, ours, original) for leaf in tree.leaves if leaf.centric == "object"),
                start=Agreement(0, 0),
            )
        if not found.of:
            return [missing(what, "a scene-centric and an object-centric collection")]
        share = found.same / found.of
        return [Finding(what, found.word == "partly", f"{found} comparisons", min(share, 1 - share))]

    return check


def replicated_from(dataset: str) -> Check:
    """The order here on ``dataset`` is that on every object-centric collection, in every recall."""

    def check(evidence: Evidence) -> list[Finding]:
        ours = measured_orders(evidence)
        name = next((one for one in evidence.centric if one.lower() == dataset), dataset)
        found = agreement(
            (ours.of(name, column), ours.of(other, column))
            for other in ours.on("object")
            for column in _recalls()
        )
        what = f"the order on {dataset} is that on object-centric collections"
        if not found.of:
            return [missing(what, dataset, "an object-centric collection")]
        return [Finding(what, found.word == "holds", f"{found} comparisons", found.same / found.of - 1)]

    return check


def lower_on_objects() -> Check:
    """Each row's score on every object-centric collection is below that on every scene-centric one."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        kinds = {
            kind: [name for name, shows in evidence.centric.items() if shows == kind]
            for kind in ("scene", "object")
        }
        for row in PAIR:
            for column in _recalls():
                what = f"{column} of {row} is lower on object-centric collections"
                scene, objects = (
                    {name: one.mean for name in names if (one := evidence.figure(row, f"{name} {column}"))}
                    for names in (kinds["scene"], kinds["object"])
                )
                if not scene or not objects:
                    findings.append(missing(what, "a collection of each kind"))
                    continue
                low, high = (
                    min(scene, key=lambda name: scene[name]),
                    max(objects, key=lambda name: objects[name]),
                )
                detail = f"at most {objects[high]:.1f} ({high}), at least {scene[low]:.1f} ({low})"
                apart = scene[low] - objects[high]
                findings.append(Finding(what, apart > 0, detail, apart / 100))
        return findings

    return check


def _recalls() -> list[str]:
    return [f"{direction} {name}" for direction in ("t2i", "i2t") for name in RECALLS]
