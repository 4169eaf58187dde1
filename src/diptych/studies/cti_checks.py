"""Checks that claims of thesis chapter 7 are made of: which model is ahead in which setting, where modalities help.

Two equal numbers decide nothing: with few categories several models find all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from diptych.studies.claims import Check, Finding, all_of, beats, missing, not_better
from diptych.studies.cti_evidence import tested
from diptych.studies.cti_rows import FULL, MEASURES, SETTINGS, row_name
from diptych.studies.evidence import Evidence

_NOTHING = 1e-12


def ahead(
    better: str, worse: str, settings: Sequence[str] = tuple(SETTINGS), columns: Sequence[str] = MEASURES
) -> Check:
    """One model beats another in every setting and column; with a test over categories where values per category are
    there."""
    return _paired(better, worse, settings, columns, beats)


def below(worse: str, better: str, settings: Sequence[str], columns: Sequence[str] = MEASURES) -> Check:
    """One model does not beat another in any setting and column; likewise."""
    return _paired(worse, better, settings, columns, not_better)


def _paired(
    first: str, second: str, settings: Sequence[str], columns: Sequence[str], check: Callable[..., Check]
) -> Check:
    def checked(evidence: Evidence) -> list[Finding]:
        findings = []
        for setting in settings:
            rows = row_name(first, setting), row_name(second, setting)
            said = tested(evidence, *rows, columns)
            for column in columns:
                (finding,) = check(*rows, column)(evidence)
                one, other = (evidence.figure(row, column) for row in rows)
                if one is not None and other is not None and one.mean == other.mean:
                    finding = Finding(finding.what, None, f"equal, {one.mean:.2f}")
                else:
                    finding = replace(finding, detail=finding.detail + said.get(column, ""))
                findings.append(finding)
        return findings

    return checked


def best_in(setting: str, winner: str, others: Sequence[str], columns: Sequence[str] = MEASURES) -> Check:
    """One model beats each of several others in a setting."""
    return all_of(*(ahead(winner, other, (setting,), columns) for other in others))


def comparable(
    models: Sequence[str], setting: str, factor: float, columns: Sequence[str] = MEASURES
) -> Check:
    """No model has more than ``factor`` times the number of another, in any column."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"no baseline has more than {factor:g} times another's {column}, {SETTINGS[setting]}"
            found = evidence.only([row_name(model, setting) for model in models], column)
            if len(found) < 2:
                findings.append(missing(what, f"{column} of two of {', '.join(models)}"))
                continue
            least, most = (pick(found, key=lambda row: found[row].mean) for pick in (min, max))
            low, high = found[least].mean, found[most].mean
            detail = f"{high:.2f} ({most}) and {low:.2f} ({least})"
            margin = (factor * low - high) / max(abs(high), _NOTHING)
            findings.append(Finding(what, high <= factor * low, detail, margin))
        return findings

    return check


def keeps_more_share(model: str, here: str, there: str, columns: Sequence[str] = MEASURES) -> Check:
    """A model with fewer modalities has a larger share of the full model's number in one setting than in another."""

    def kept(own: float, full: float) -> float | None:
        return 100 * own / full if full > 0 else None

    return _kept(model, here, there, columns, kept, f"{model} has a larger share of {FULL}'s", "{:.0f} %")


def keeps_more_points(model: str, here: str, there: str, columns: Sequence[str] = MEASURES) -> Check:
    """A model with fewer modalities is fewer points behind the full model in one setting than in another."""
    return _kept(
        model,
        here,
        there,
        columns,
        lambda own, full: own - full,
        f"{model} is less behind {FULL} in",
        "{:+.1f}",
    )


def gains_most(
    better: str, worse: str, here: str, there: Sequence[str], columns: Sequence[str] = MEASURES
) -> Check:
    """What one model has more than another, in per cent of the other, is most in one setting."""

    def gain(own: float, other: float) -> float | None:
        return 100 * (own / other - 1) if other > 0 else None

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            gains = {}
            for setting in (here, *there):
                both = [evidence.figure(row_name(model, setting), column) for model in (better, worse)]
                if both[0] is not None and both[1] is not None:
                    gains[setting] = gain(both[0].mean, both[1].mean)
            for other in there:
                what = f"{better} gains more over {worse} in {column}, {SETTINGS[here]} against {SETTINGS[other]}"
                findings.append(_larger(what, gains.get(here), gains.get(other), "{:+.0f} %"))
        return findings

    return check


def _kept(
    model: str,
    here: str,
    there: str,
    columns: Sequence[str],
    kept: Callable[[float, float], float | None],
    what: str,
    shown: str,
) -> Check:
    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            values: list[float | None] = []
            for setting in (here, there):
                own, full = (evidence.figure(row_name(name, setting), column) for name in (model, FULL))
                found = None if own is None or full is None else kept(own.mean, full.mean)
                values.append(found)
            title = f"{what} {column}, {SETTINGS[here]} against {SETTINGS[there]}"
            findings.append(_larger(title, values[0], values[1], shown))
        return findings

    return check


def _larger(what: str, one: float | None, other: float | None, shown: str) -> Finding:
    """Whether the first of two numbers is above the second."""
    if one is None or other is None:
        return missing(what, "numbers above 0 of both models in both settings")
    if one == other:
        return Finding(what, None, f"equal, {shown.format(one)}")
    detail = f"{shown.format(one)} against {shown.format(other)}"
    return Finding(what, one > other, detail, (one - other) / max(abs(one), abs(other), _NOTHING))
