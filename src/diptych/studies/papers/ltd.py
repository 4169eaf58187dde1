"""Judge what figure 2 of Bleeker, Yates and de Rijke (2022) shows during training, as findings on trajectories."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from diptych.studies.evidence import Evidence, Figure, Finding, Formula, Trajectory
from diptych.studies.figures import smoothed

_BOUNDED = {0.05: "ltd-eta-0.05", 0.1: "ltd-eta-0.1", 0.2: "ltd-constraint", 0.3: "ltd-eta-0.3"}  # by η
_LOOK_BACK = 10  # steps: momentum 0.9 forgets in about ten


def rises_then_falls(evidence: Evidence) -> list[Finding]:
    """Judge observation (1); of the paper there are ends of one curve."""
    if evidence.exact:
        return _judged(evidence, ["[ltd-eta-0.1: lowest λ afterwards] <= 0.05 * [ltd-eta-0.1: highest λ]"])
    return _of_each(evidence, _rise_and_fall)


def rises_again(evidence: Evidence) -> list[Finding]:
    return _of_each(evidence, _again)


def converges(evidence: Evidence) -> list[Finding]:
    """Judge observation (3); what has converged to a bound is at most a tenth away."""
    checks = [f"0.9 <= [{row}: reconstruction] / {eta} <= 1.1" for eta, row in _BOUNDED.items()]
    return _judged(_ends(evidence), ["[ltd-eta-0.05: reconstruction] / 0.05 > 1.1", *checks[1:]])


def lower_loss_no_better(evidence: Evidence) -> list[Finding]:
    """Judge observation (4), of the rows that reconstruct better than η = 0.2 does."""
    ends, found, others = _ends(evidence), [], []
    for row in ("ltd-eta-0.1", "ltd-eta-0.05", "ltd-dual"):
        (lower,) = _judged(ends, [f"[{row}: reconstruction] < [ltd-constraint: reconstruction]"])
        if lower.status == "fails":
            others.append(Finding.missing(lower.what, f"a lower loss: {lower.detail}"))
        else:
            no_better = _judged(ends, [f"[{row}: rsum] <= [ltd-constraint: rsum]"])
            found += no_better if lower.status == "holds" else [lower]
    return found or others


def contrastive_alike(evidence: Evidence) -> list[Finding]:
    """Judge observation (5); alike is at most a tenth away from the baseline."""
    ratios = (f"[{row}: contrastive] / [baseline: contrastive]" for row in _BOUNDED.values())
    return _judged(_ends(evidence), [f"0.9 <= {ratio} <= 1.1" for ratio in ratios])


def _ends(evidence: Evidence) -> Evidence:
    """Return where trainings ended as numbers: losses over the last twentieth, the best validation."""
    if evidence.exact:
        return evidence
    figures: dict[str, dict[str, Figure]] = {}
    for row, runs in evidence.trajectories.items():
        each = {name: [getattr(run, name) for run in runs] for name in ("contrastive", "reconstruction")}
        ends = {name: list(map(_final, losses)) for name, losses in each.items() if all(losses)}
        ends["rsum"] = [max(run.rsum) for run in runs if run.rsum]
        figures[row] = {name: Figure.of(values) for name, values in ends.items() if values}
    return Evidence(figures)


def _judged(evidence: Evidence, texts: Iterable[str]) -> list[Finding]:
    formulas = [Formula.parse(text) for text in texts]
    return [one.judge(evidence, len(formulas)) for one in formulas]


def _final(loss: Sequence[float]) -> float:
    return float(np.mean(loss[-max(1, len(loss) // 20) :]))


def _of_each(evidence: Evidence, judge: Callable[[str, Trajectory, float], list[Finding]]) -> list[Finding]:
    """Return the findings on every run with a constraint, and which of the rows was not run."""
    found, absent = [], []
    for eta, row in _BOUNDED.items():
        runs = evidence.trajectories.get(row, ())
        absent += [] if runs else [Finding.missing(f"η = {eta}", f"a run of {row}")]
        for number, run in enumerate(runs, 1):
            found += judge(f"η = {eta}" + (f", run {number}" if len(runs) > 1 else ""), run, eta)
    return [*found, *absent] or [Finding.missing("λ while training goes on", "a longer training")]


def _rise_and_fall(name: str, run: Trajectory, eta: float) -> list[Finding]:
    found = []
    multiplier = np.asarray(run.multiplier)
    inside = np.flatnonzero(smoothed(run.reconstruction) <= eta)
    met = int(inside[0]) if len(inside) else len(multiplier) - 1
    if met >= 2 * _LOOK_BACK:
        first, middle, last = multiplier[[0, met // 2, met]].tolist()
        detail = f"from {first:.2f} to {last:.2f} at step {run.steps[met]}"
        found.append(
            Finding.of(f"{name}: λ rises until the bound is met", last > first, detail, last - first)
        )
        early, late = (middle - first) / (met // 2), (last - middle) / (met - met // 2)
        detail = f"{early:.2g} per step, then {late:.2g}"
        found.append(Finding.of(f"{name}: λ rises ever more slowly", early > late, detail, early - late))
    # It needs time to fall: as many steps as it took to be met, at least.
    if len(multiplier) - met > max(met, _LOOK_BACK):
        peak, low = float(multiplier[: met + 1].max()), float(multiplier[met:].min())
        what, margin = f"{name}: λ falls to 0 when the bound is met", 0.05 * peak - low
        found.append(Finding.of(what, margin >= 0, f"from {peak:.2f} to {low:.2f}", margin))
    return found


def _again(name: str, run: Trajectory, eta: float) -> list[Finding]:
    multiplier, loss = np.asarray(run.multiplier), np.asarray(run.reconstruction)
    again = np.flatnonzero((multiplier[1:] > 0) & (multiplier[:-1] <= 0)) + 1
    if not len(again):
        return []
    above = sum(bool((loss[max(0, step - _LOOK_BACK) : step] > eta).any()) for step in again.tolist())
    what, share = f"{name}: λ becomes positive again when the loss has gone above η", above / len(again)
    return [Finding.of(what, share >= 0.9, f"{above} of {len(again)} times", share - 0.9)]
