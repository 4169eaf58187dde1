"""Checks about the errors of CLIP-ITA: in which tree they are, how deep, and whether categories were seen before.

Two equal numbers decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.cti_rows import MEASURES, SETTINGS, row_name
from diptych.studies.evidence import Evidence, Figure, difference

SAME, DIFFERENT = "same tree", "different tree"
GENERAL, SPECIFIC = "more general", "more specific"
DEPTHS = tuple(range(-4, 5))
"""Differences of depth that have a column; others stand in the figure."""

_NOTHING = 1e-12


def mostly(setting: str, more: str, less: str) -> Check:
    """Of a setting's errors more are of one kind than of another."""
    what = f"more errors are {more} than {less}, {SETTINGS[setting]}"

    def check(evidence: Evidence) -> list[Finding]:
        one, other = evidence.figure(setting, more), evidence.figure(setting, less)
        if one is None or other is None:
            return [missing(what, f"{more} and {less} of {setting}")]
        whole = one.mean + other.mean
        if not whole:
            return [missing(what, "errors")]
        detail = f"{one.mean:,.4g} against {other.mean:,.4g}, {100 * one.mean / whole:.0f} %"
        holds = None if one.mean == other.mean else one.mean > other.mean
        return [Finding(what, holds, detail, (one.mean - other.mean) / whole)]

    return check


def share_above(setting: str, column: str, least: float) -> Check:
    """A share of a setting's errors is at least ``least`` per cent."""
    what = f"at least {least:g} % are {column}, {SETTINGS[setting]}"

    def check(evidence: Evidence) -> list[Finding]:
        figure = evidence.figure(setting, column)
        if figure is None:
            return [missing(what, f"{column} of {setting}")]
        return [Finding(what, figure.mean >= least, f"{figure.mean:.1f} %", (figure.mean - least) / 100)]

    return check


def mostly_at(setting: str, depth: int) -> Check:
    """Of a setting's errors in the same tree, more than half lie ``depth`` levels below the target."""
    what = f"most errors in the same tree have d = {depth}, {SETTINGS[setting]}"

    def check(evidence: Evidence) -> list[Finding]:
        figures = {one: evidence.figure(setting, f"d = {one}") for one in DEPTHS}
        found = {one: figure.mean for one, figure in figures.items() if figure is not None}
        if depth not in found:
            return [missing(what, f"errors in the same tree of {setting}")]
        first = max(found, key=lambda one: found[one])
        detail = f"{found[depth]:.1f} %"
        detail += "" if first == depth else f", d = {first} has {found[first]:.1f} %"
        return [Finding(what, found[depth] > 50, detail, (found[depth] - 50) / 100)]

    return check


def seen_over_unseen(
    setting: str, columns: Sequence[str] = MEASURES, better: str = "seen", worse: str = "unseen"
) -> Check:
    """Categories of one kind are found better than those of the other, in every column."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"{better} beats {worse} in {column}, {SETTINGS[setting]}"
            both = [evidence.figure(row_name(group, setting), column) for group in (better, worse)]
            if both[0] is None or both[1] is None:
                findings.append(missing(what, f"categories that were {better} and {worse}"))
                continue
            findings.append(_above(what, both[0], both[1]))
        return findings

    return check


def none_found(row: str, columns: Sequence[str] = MEASURES) -> Check:
    """A row's numbers are all 0."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            figure, what = evidence.figure(row, column), f"{column} of {row} is 0"
            if figure is None:
                findings.append(missing(what, f"categories of {row}"))
            else:
                findings.append(Finding(what, figure.mean == 0, f"{figure.mean:.2f}", -figure.mean / 100))
        return findings

    return check


def _above(what: str, one: Figure, other: Figure) -> Finding:
    apart = difference(one, other)
    if not apart.mean:
        return Finding(what, None, f"equal, {one.mean:.2f}")
    detail = f"{one.mean:.2f} against {other.mean:.2f} ({apart})"
    scale = max(abs(one.mean), abs(other.mean), _NOTHING)
    return Finding(what, apart.mean > 0, detail, apart.mean / scale)
