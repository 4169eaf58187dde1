"""Checks of thesis section 6.5's claims about F1 from step to step, between models and settings.

Numbers are those of :mod:`diptych.studies.intent_predicting`: a column per step, rows ``MODEL-SET-SETTING``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.intent_rows import MODELS, SETS, SETTINGS, STEPS, prediction_row
from diptych.studies.log_checks import HIGH, LOW, known, shown
from diptych.studies.verdict import Evidence

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
    """For every model and set, the best of ``steps`` has at most ``factor`` times the F1 of the worst."""

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


AP = "AP "
"""Begins the columns of average precision at a step."""

GAIN = "gain "
"""Begins the column of what the extended set gains at a step, in the extended rows."""

AHEAD = "gain 0 less others"
"""Column of an extended row: its gain at step 0 less the mean of its gains at the others."""


def gains_something(setting: str, measure: str = "") -> Check:
    """Every model is better with the extended set at every step, by F1 or by another measure's columns."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for model, step in product(MODELS, STEPS):
            what = f"{MODELS[model]} gains at step {step}"
            gain = _gain(evidence, model, setting, measure + step)
            if gain is None:
                findings.append(missing(what, f"{measure}{step} of {model} with both sets"))
            else:
                detail = _gain_shown(evidence, model, setting, measure + step)
                findings.append(Finding(what, gain > 0, detail, gain))
        return findings

    return check


def first_is_best(setting: str, measure: str = "") -> Check:
    """What the extended set gains is most at step 0, for every model, by F1 or by another measure's columns."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for model, label in MODELS.items():
            what = f"{label} gains most at step 0"
            gains = {step: _gain(evidence, model, setting, measure + step) for step in STEPS}
            there = {step: gain for step, gain in gains.items() if gain is not None}
            first = there.pop(STEPS[0], None)
            if first is None or not there:
                findings.append(missing(what, f"{measure}0 and another step of {model} with both sets"))
                continue
            other = max(there, key=lambda step: there[step])
            detail = f"{first:+.1f}, at step {other} {there[other]:+.1f}"
            place = (prediction_row(model, "extended", setting), measure + AHEAD)
            if known(evidence, [place]):
                detail += f"; less the mean of the others {shown(evidence, place, 1)}"
            findings.append(Finding(what, first > there[other], detail, first - there[other]))
        return findings

    return check


def largest_gain(setting: str, low: float, high: float) -> Check:
    """The largest gain of any model at any step is between two shares of the baseline's F1."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"the largest gain is {100 * low:g} to {100 * high:g} % of the baseline"
        gains = dict(_relative_gains(evidence, setting))
        if not gains:
            return [missing(what, "a model with both sets")]
        model, step = max(gains, key=lambda one: gains[one])
        gain = gains[model, step]
        detail = f"{100 * gain:+.1f} %, {MODELS[model]} at step {step}"
        return [Finding(what, low <= gain <= high, detail, min(gain - low, high - gain))]

    return check


def nearest_neighbours_alone(setting: str, share: float) -> Check:
    """Nearest neighbours gain at step 0 and less at step 1; no other model gains more than ``share`` at any step,
    unless its gain's interval holds 0."""

    def check(evidence: Evidence) -> list[Finding]:
        gains = dict(_relative_gains(evidence, setting))
        findings = []
        own = "k-nearest"
        first, second = gains.get((own, "0")), gains.get((own, "1"))
        if first is None or second is None:
            findings.append(missing("KNN gains at step 0 alone", "steps 0 and 1 of k-nearest with both sets"))
        else:
            detail = f"{100 * first:+.1f} %, at step 1 {100 * second:+.1f} %"
            holds = first > share and second < first
            findings.append(Finding("KNN gains at step 0, and less at step 1", holds, detail, first - share))
        for (model, step), gain in gains.items():
            if model == own:
                continue
            ends = known(evidence, _gain_ends(model, setting, step))
            unclear = len(ends) == 2 and min(ends.values()) <= 0
            detail = f"{100 * gain:+.1f} %; {_gain_shown(evidence, model, setting, step)}"
            what = f"{MODELS[model]} gains nothing to speak of at step {step}"
            findings.append(Finding(what, gain <= share or unclear, detail, share - gain))
        return findings

    return check


def _gain(evidence: Evidence, model: str, setting: str, column: str) -> float | None:
    """A number with the extended set less that with the baseline."""
    found = known(evidence, [(prediction_row(model, feature_set, setting), column) for feature_set in SETS])
    if len(found) < 2:
        return None
    before, after = found.values()
    return after - before


def _gain_shown(evidence: Evidence, model: str, setting: str, column: str) -> str:
    gain = _gain(evidence, model, setting, column)
    ends = known(evidence, _gain_ends(model, setting, column))
    return f"{gain:+.1f}" + (
        f" [{', '.join(f'{end:+.1f}' for end in ends.values())}]" if len(ends) == 2 else ""
    )


def _gain_ends(model: str, setting: str, column: str) -> list[tuple[str, str]]:
    row = prediction_row(model, "extended", setting)
    return [(row, f"{GAIN}{column}{end}") for end in (LOW, HIGH)]


def _relative_gains(evidence: Evidence, setting: str) -> Iterator[tuple[tuple[str, str], float]]:
    for model, step in product(MODELS, STEPS):
        gain = _gain(evidence, model, setting, step)
        before = evidence.figure(prediction_row(model, "baseline", setting), step)
        if gain is not None and before is not None and before.mean > 0:
            yield (model, step), gain / before.mean
