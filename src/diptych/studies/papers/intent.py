"""What Hendriksen et al. (2020) say of Figure 6.7 that formulas of single steps cannot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from diptych.studies.evidence import LOW, Evidence
from diptych.studies.formulas import Finding, Formula

_STEPS = [str(step) for step in range(11)]
_SETS = ("baseline", "extended")
_BEST = ("random-forest", "gradient-boosting", "neural-network")
_OTHERS = ("svm", "logistic-regression", "k-nearest")
_MODELS = (*_BEST, *_OTHERS)
_ROWS = [f"{model}-{feature_set}" for model, feature_set in product(_MODELS, _SETS)]
_CONSTANT = "k-nearest-baseline"  # the exception that the text makes: it has no feature at step 0


def added_features(evidence: Evidence, measure: str = "") -> list[Finding]:
    """Judge whether every model gains by the extended set at every step."""
    places = product(_MODELS, [measure + step for step in _steps(evidence)])
    return _judged(evidence, [f"{_gain(model, 'anonymous', column)} > 0" for model, column in places])


def step_0(evidence: Evidence, measure: str = "") -> list[Finding]:
    """Judge whether every model gains most at step 0."""
    steps = ["0", *_steps(evidence, from_1=True)]
    gains = [[_gain(model, "anonymous", measure + step) for step in steps] for model in _MODELS]
    return _judged(evidence, [f"{first} > max({', '.join(others)})" for first, *others in gains])


def largest_gain(evidence: Evidence) -> list[Finding]:
    """Judge whether the largest gain is 12 to 22 % of the baseline's F1."""
    shares = [_share(model, "anonymous", step) for model, step in product(_MODELS, _steps(evidence))]
    return _judged(evidence, [f"0.12 <= max({', '.join(shares)}) <= 0.22"])


def plateau(evidence: Evidence) -> list[Finding]:
    """Judge whether F1 is level from step 1 on."""
    steps = _steps(evidence, from_1=True)
    return _judged(evidence, [_level(f"{row}-anonymous", steps) for row in _ROWS])


def trees_and_networks(evidence: Evidence) -> list[Finding]:
    """Judge whether three models beat the others, by the mean over steps."""
    steps = _steps(evidence)
    rows = [(f"{a}-{s}-anonymous", f"{b}-{s}-anonymous") for s, a, b in product(_SETS, _BEST, _OTHERS)]
    return _judged(evidence, [f"{_mean(a, steps)} > {_mean(b, steps)}" for a, b in rows])


def others_in_order(evidence: Evidence) -> list[Finding]:
    """Judge whether the other models are as good as they are named, one less than the other, by the mean over steps."""
    steps = _steps(evidence)
    means = [[_mean(f"{model}-{name}-anonymous", steps) for model in _OTHERS] for name in _SETS]
    return _judged(evidence, [" > ".join(of_set) for of_set in means])


def identified(evidence: Evidence) -> list[Finding]:
    """Judge whether every model is better where visitors are known, with each set and at every step."""
    places = product(_ROWS, _steps(evidence))
    return _judged(evidence, [f"[{row}-identified: {n}] > [{row}-anonymous: {n}]" for row, n in places])


def identified_plateau(evidence: Evidence) -> list[Finding]:
    """Judge whether F1 is level, but for nearest neighbours with the baseline set at step 0."""
    steps = {row: _steps(evidence, from_1=row == _CONSTANT) for row in _ROWS}
    return _judged(evidence, [_level(f"{row}-identified", of_row) for row, of_row in steps.items()])


def around_96(evidence: Evidence) -> list[Finding]:
    """Judge whether F1 is 94 to 98 %, but for nearest neighbours with the baseline set at step 0."""
    places = [(row, step) for row in _ROWS for step in _steps(evidence, from_1=row == _CONSTANT)]
    return _judged(evidence, [f"94 <= [{row}-identified: {step}] <= 98" for row, step in places])


def nearest_neighbours(evidence: Evidence) -> list[Finding]:
    """Judge whether nearest neighbours gain at step 0, less at step 1, and other models nowhere more than 2 %."""
    first, second = (_share("k-nearest", "identified", step) for step in ("0", "1"))
    texts = [f"{first} > 0.02", f"{second} < {first}"]
    for model, step in product(_MODELS, _steps(evidence)):
        low = evidence.figure(f"{model}-extended-identified", f"gain {step}{LOW}")
        if model != "k-nearest" and (low is None or low.mean > 0):
            texts.append(f"{_share(model, 'identified', step)} <= 0.02")
    return _judged(evidence, texts)


def _steps(evidence: Evidence, from_1: bool = False) -> list[str]:
    """Return the steps that were measured; all where none was."""
    found = [one for one in _STEPS if any(one in columns for columns in evidence.figures.values())] or _STEPS
    return [step for step in found if step != "0" or not from_1]


def _gain(model: str, who: str, column: str) -> str:
    """Return the extended set's gain, as it was measured: with an interval of its own."""
    return f"[{model}-extended-{who}: gain {column}]"


def _share(model: str, who: str, step: str) -> str:
    return f"{_gain(model, who, step)} / [{model}-baseline-{who}: {step}]"


def _mean(row: str, steps: Sequence[str]) -> str:
    return f"mean({', '.join(f'[{row}: {step}]' for step in steps)})"


def _level(row: str, steps: Sequence[str]) -> str:
    of_steps = ", ".join(f"[{row}: {step}]" for step in steps)
    return f"max({of_steps}) <= 1.1 * min({of_steps})"


def _judged(evidence: Evidence, texts: Sequence[str]) -> list[Finding]:
    return [Formula.parse(text).judge(evidence, len(texts)) for text in texts]
