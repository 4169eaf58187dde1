"""Checks of thesis section 6.5's claims about F1 from step to step, between models and settings.

Numbers are those of :mod:`diptych.studies.intent_predicting`: a column per step, rows ``MODEL-SET-SETTING``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.evidence import Evidence
from diptych.studies.intent_rows import MODELS, SETS, SETTINGS, STEPS, prediction_row
from diptych.studies.log_checks import HIGH, LOW, known, shown

_NOTHING = 1e-12


def learns_on_page_one(setting: str) -> Check:
    """Every model with the baseline set is better at step 1 than at step 0."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for model, label in MODELS.items():
            row = prediction_row(model, "baseline", setting)
            what = f"{label} with the baseline set improves on step 1"
            found = known(evidence, [(row, "0"), (row, "1")])
            if len(found) < 2:
                findings.append(missing(what, f"steps 0 and 1 of {row}"))
                continue
            before, after = found.values()
            detail = f"{shown(evidence, (row, '1'), 1)} from {shown(evidence, (row, '0'), 1)}"
            findings.append(Finding(what, after > before, detail, after - before))
        return findings

    return check


def no_clear_rise(setting: str, share: float) -> Check:
    """No model with the extended set is clearly better at step 1 than at step 0: its interval is not above the
    other's, or it is not better by ``share`` where there are no intervals."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for model, label in MODELS.items():
            row = prediction_row(model, "extended", setting)
            what = f"{label} with the extended set is not clearly better on step 1"
            found = known(evidence, [(row, "0"), (row, "1")])
            if len(found) < 2:
                findings.append(missing(what, f"steps 0 and 1 of {row}"))
                continue
            before, after = found.values()
            ends = known(evidence, [(row, f"1{LOW}"), (row, f"0{HIGH}")])
            low, high = ends.values() if len(ends) == 2 else (after, before * (1 + share))
            detail = f"{shown(evidence, (row, '1'), 1)} from {shown(evidence, (row, '0'), 1)}"
            findings.append(Finding(what, low <= high, detail, (high - low) / max(after, before, _NOTHING)))
        return findings

    return check


def stays_level(
    setting: str, steps: Sequence[str], factor: float, leave: Sequence[tuple[str, str, str]] = ()
) -> Check:
    """For every model and set, the best of ``steps`` has at most ``factor`` times the F1 of the worst.

    Args:
        leave: (model, set, step) that are left out.
    """

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for model, feature_set in product(MODELS, SETS):
            row = prediction_row(model, feature_set, setting)
            what = f"{MODELS[model]}, {feature_set}: level from step to step"
            places = [(row, step) for step in steps if (model, feature_set, step) not in leave]
            values = list(known(evidence, places).values())
            if len(values) < 2:
                findings.append(missing(what, f"two steps of {row}"))
                continue
            least, most = min(values), max(values)
            margin = (factor * least - most) / max(most, _NOTHING)
            findings.append(Finding(what, most <= factor * least, f"from {least:.1f} to {most:.1f}", margin))
        return findings

    return check


def identified_is_above() -> Check:
    """Every model is better in the identified setting, with each set and at every step."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for model, feature_set, step in product(MODELS, SETS, STEPS):
            places = [(prediction_row(model, feature_set, setting), step) for setting in SETTINGS]
            what = f"{MODELS[model]}, {feature_set}, step {step}: better where visitors are known"
            found = known(evidence, places)
            if len(found) < 2:
                findings.append(missing(what, *(f"step {step} of {row}" for row, _ in places)))
                continue
            anonymous, identified = found.values()
            detail = f"{shown(evidence, places[1], 1)} against {shown(evidence, places[0], 1)}"
            findings.append(Finding(what, identified > anonymous, detail, identified - anonymous))
        return findings

    return check


def best_models(setting: str, best: Sequence[str]) -> Check:
    """Each of ``best`` has a higher F1 than each other model, by the mean over steps, with each set."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for feature_set in SETS:
            means = dict(_means(evidence, feature_set, setting))
            for one, other in product(best, [model for model in MODELS if model not in best]):
                what = f"{feature_set}: {MODELS[one]} beats {MODELS[other]}"
                if one not in means or other not in means:
                    findings.append(missing(what, f"{one} and {other}"))
                    continue
                apart = means[one] - means[other]
                detail = f"{means[one]:.1f} against {means[other]:.1f}"
                findings.append(Finding(what, apart > 0, detail, apart))
        return findings

    return check


def falls(row: str, columns: Sequence[str], what: str) -> Check:
    """A number falls from column to column, of those that are there."""

    def check(evidence: Evidence) -> list[Finding]:
        found = known(evidence, [(row, column) for column in columns])
        if len(found) < 2:
            return [missing(what, *(f"{column} of {row}" for column in columns))]
        values = list(found.values())
        least = min(before - after for before, after in pairwise(values))
        detail = ", ".join(f"{value:.1f} {column}" for (_, column), value in found.items())
        return [Finding(what, least > 0, detail, least / max(*values, _NOTHING))]

    return check


def _means(evidence: Evidence, feature_set: str, setting: str) -> Iterator[tuple[str, float]]:
    for model in MODELS:
        row = prediction_row(model, feature_set, setting)
        values = list(known(evidence, [(row, step) for step in STEPS]).values())
        if values:
            yield model, sum(values) / len(values)
