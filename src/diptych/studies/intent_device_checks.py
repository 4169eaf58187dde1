"""Checks of thesis section 6.4.4's claims: rates of devices, numbers of devices, and links between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence
from diptych.studies.intent_rows import row_name
from diptych.studies.log_checks import above, known


def rates_fall(rows: Sequence[str]) -> Check:
    """Standardised conversion rates fall in the order of ``rows``, of which some may be missing."""

    def check(evidence: Evidence) -> list[Finding]:
        there = [row for row in rows if known(evidence, [(row, "standardised")])]
        if len(there) < 2:
            return [missing("rates fall", "two groups")]
        pairs = pairwise(there)
        return [
            finding
            for first, second in pairs
            for finding in above((first, "standardised"), (second, "standardised"))(evidence)
        ]

    return check


def difference_grows(rows: Sequence[str], first: str, second: str) -> Check:
    """How many times as frequent among ``first`` as among ``second`` a row is, rises from row to row."""

    def check(evidence: Evidence) -> list[Finding]:
        ratios = {}
        for row in rows:
            found = known(evidence, [(row, first), (row, second)])
            if len(found) == 2 and found[row, second] > 0:
                ratios[row] = found[row, first] / found[row, second]
        what = f"{first} are the more ahead, the more there are"
        if len(ratios) < 2:
            return [missing(what, *rows)]
        names = list(ratios)
        findings = []
        for before, after in pairwise(names):
            rise = ratios[after] - ratios[before]
            detail = f"{ratios[after]:.2f} times as frequent, {ratios[before]:.2f} times for {before}"
            findings.append(Finding(f"{what}: {after}", rise > 0, detail, rise / max(ratios.values())))
        return findings

    return check


def strongest_links(pairs: Sequence[tuple[str, str]], devices: Sequence[str]) -> Check:
    """The links that are strongest both ways, by the lower of the two probabilities, are ``pairs`` in this order."""

    def check(evidence: Evidence) -> list[Finding]:
        what = "strongest both ways: " + "; ".join(" and ".join(pair) for pair in pairs)
        strengths = {}
        for place, one in enumerate(devices):
            for other in devices[place + 1 :]:
                both = _both_ways(evidence, one, other)
                if both is not None:
                    strengths[one, other] = min(both)
        wanted = [tuple(sorted(pair, key=list(devices).index)) for pair in pairs]
        if any(pair not in strengths for pair in wanted):
            return [missing(what, "transitions both ways")]
        found = sorted(strengths, key=lambda pair: -strengths[pair])
        detail = "; ".join(f"{' and '.join(pair)} {strengths[pair]:.1f} %" for pair in found[: len(pairs)])
        return [Finding(what, found[: len(pairs)] == wanted, detail)]

    return check


def one_sided(source: str, target: str) -> Check:
    """Going from ``source`` to ``target`` is likely, going back hardly ever happens."""

    def check(evidence: Evidence) -> list[Finding]:
        return _linked(
            evidence, source, target, "one-sided", f"from {source} to {target}, and hardly ever back"
        )

    return check


def weak(one: str, other: str) -> Check:
    """A switch between two devices hardly ever happens, either way."""

    def check(evidence: Evidence) -> list[Finding]:
        return _linked(evidence, one, other, "weak", f"hardly ever between {one} and {other}")

    return check


def _linked(evidence: Evidence, source: str, target: str, kind: str, what: str) -> list[Finding]:
    from diptych.commerce.purchase_intent.statistics import DescribeOptions
    from diptych.commerce.purchase_intent.statistics.intervals import link

    both = _both_ways(evidence, source, target)
    if both is None:
        return [missing(what, f"transitions between {source} and {target}")]
    there, back = both
    bounds = DescribeOptions()
    found = link(there / 100, back / 100, likely=bounds.likely, near_zero=bounds.near_zero)
    holds = found == kind and (kind != "one-sided" or there > back)
    return [Finding(what, holds, f"{there:.1f} % there, {back:.1f} % back: {found}")]


def _both_ways(evidence: Evidence, one: str, other: str) -> tuple[float, float] | None:
    found = known(evidence, [(row_name(one), f"to {other}"), (row_name(other), f"to {one}")])
    return (
        (found[row_name(one), f"to {other}"], found[row_name(other), f"to {one}"])
        if len(found) == 2
        else None
    )
