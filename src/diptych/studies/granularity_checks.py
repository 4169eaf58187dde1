"""Checks of thesis section 5.3.2's claims: a collection of finer captions beside the one it refines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence

ROW = "captions"

FINER = "-fg"
"""Ends the name of a collection of finer captions of the same pictures."""


def pairs_of(names: Iterable[str]) -> list[tuple[str, str]]:
    """Coarse and finer collections that are there: ``X`` and ``X-fg``."""
    known = list(names)
    return [(name, f"{name}{FINER}") for name in known if f"{name}{FINER}" in known]


def finer_in(features: Sequence[str]) -> Check:
    """Finer captions have more of every feature, in every pair of collections."""

    def check(evidence: Evidence) -> list[Finding]:
        pairs = pairs_of(evidence.centric)
        if not pairs:
            return [missing("finer captions score higher", f"a collection and its {FINER}")]
        return [
            _finding(
                evidence, pair, feature, f"{pair[1]} has more {feature} than {pair[0]}", lambda share: share
            )
            for pair in pairs
            for feature in features
        ]

    return check


def gains(coarse: str, feature: str, share: float, tolerance: float) -> Check:
    """The finer captions of ``coarse`` have more of a feature by ``share``, to within ``tolerance``."""

    def check(evidence: Evidence) -> list[Finding]:
        pair = coarse, f"{coarse}{FINER}"
        what = f"{feature} of {pair[1]} are {100 * share:g} % above {pair[0]}"
        return [_finding(evidence, pair, feature, what, lambda have: tolerance - abs(have - share))]

    return check


def unchanged(feature: str, tolerance: float) -> Check:
    """Finer captions have as much of a feature, to within ``tolerance``, in every pair of collections."""

    def check(evidence: Evidence) -> list[Finding]:
        pairs = pairs_of(evidence.centric)
        if not pairs:
            return [missing(f"{feature} stays", f"a collection and its {FINER}")]
        return [
            _finding(
                evidence,
                pair,
                feature,
                f"{feature} of {pair[1]} is that of {pair[0]} to {100 * tolerance:g} %",
                lambda share: tolerance - abs(share),
            )
            for pair in pairs
        ]

    return check


def _finding(
    evidence: Evidence,
    pair: tuple[str, str],
    feature: str,
    what: str,
    margin: Callable[[float], float],
) -> Finding:
    coarse, fine = (evidence.figure(ROW, f"{name} {feature}") for name in pair)
    if coarse is None or fine is None or not coarse.mean:
        return missing(what, *(f"{feature} of {name}" for name in pair))
    share = fine.mean / coarse.mean - 1
    held = margin(share)
    detail = f"{fine.mean:.2f} for {coarse.mean:.2f} ({100 * share:+.1f} %)"
    return Finding(what, held > 0, detail, held)
