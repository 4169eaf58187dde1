"""Checks of claims about speed: ratios of throughputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence


def _ratios(evidence: Evidence, faster: str, slower: str, columns: Sequence[str]) -> dict[str, float]:
    """How many times ``faster`` has what ``slower`` has, where both are known."""
    found = {}
    for column in columns:
        one, other = evidence.figure(faster, column), evidence.figure(slower, column)
        if one is not None and other is not None and other.mean:
            found[column] = one.mean / other.mean
    return found


def times(faster: str, slower: str, factor: float, *columns: str) -> Check:
    """``faster`` has at least ``factor`` times what ``slower`` has."""

    def check(evidence: Evidence) -> list[Finding]:
        found = _ratios(evidence, faster, slower, columns)
        findings = []
        for column in columns:
            what = f"{faster} has at least {factor:g} × {slower} in {column}"
            if column not in found:
                findings.append(missing(what, f"{column} of {faster} and {slower}"))
                continue
            have = found[column]
            findings.append(Finding(what, have >= factor, f"{have:,.2f} times", have / factor - 1))
        return findings

    return check


def ratio(faster: str, slower: str, columns: Sequence[str], low: float, high: float) -> Check:
    """``faster`` has between ``low`` and ``high`` times what ``slower`` has."""

    def check(evidence: Evidence) -> list[Finding]:
        found = _ratios(evidence, faster, slower, columns)
        findings = []
        for column in columns:
            what = f"{faster} has {low:g} to {high:g} × {slower} in {column}"
            if column not in found:
                findings.append(missing(what, f"{column} of {faster} and {slower}"))
                continue
            have = found[column]
            margin = min(have / low, high / have) - 1
            findings.append(Finding(what, low <= have <= high, f"{have:,.1f} times", margin))
        return findings

    return check


def falls_with(faster: str, slower: str, columns: Sequence[str]) -> Check:
    """How many times ``faster`` has what ``slower`` has falls from each column to the next."""

    def check(evidence: Evidence) -> list[Finding]:
        found = _ratios(evidence, faster, slower, columns)
        if len(found) < 2:
            return [
                missing(f"{faster} is the faster beside {slower} the fewer are asked for", faster, slower)
            ]
        return [
            Finding(
                f"{faster} gains more over {slower} in {first} than in {second}",
                found[first] > found[second],
                f"{found[first]:,.1f} times against {found[second]:,.1f}",
                found[first] / found[second] - 1,
            )
            for first, second in pairwise(found)
        ]

    return check
