"""What the text of figure 2 of Bleeker, Yates and de Rijke (2022) observes, as checks on trajectories.

Losses are noisy from step to step, so they are smoothed by a centred running mean over a fiftieth of
the training before they are held against a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from diptych.studies.claims import Claim, Finding, missing
from diptych.studies.verdict import Evidence, Trajectory

BOUNDED = {0.05: "ltd-eta-0.05", 0.1: "ltd-eta-0.1", 0.2: "ltd-constraint", 0.3: "ltd-eta-0.3"}
"""The row of each η."""

_LOOK_BACK = 10  # steps: momentum 0.9 forgets in about ten
_NEAR = 0.1  # of η: what counts as having converged to it
_ZERO = 0.05  # of its peak: what counts as having fallen to zero


def smoothed(values: object) -> np.ndarray:
    """A centred running mean over a fiftieth of the values, an odd number of them."""
    from diptych.report.run import running_mean  # pages are heavy, and lists of claims need none

    array = np.asarray(values, dtype=np.float64)
    return running_mean(array, max(1, len(array) // 50) // 2 * 2 + 1)


def final(values: object) -> float:
    """Where a curve ends: the mean over the last twentieth."""
    array = np.asarray(values, dtype=np.float64)
    return float(array[-max(1, len(array) // 20) :].mean())


def first_met(trajectory: Trajectory) -> int | None:
    """Place of the first step at which the smoothed reconstruction loss is within its bound."""
    assert trajectory.bound is not None
    inside = np.flatnonzero(smoothed(trajectory.reconstruction) <= trajectory.bound)
    return int(inside[0]) if len(inside) else None


def _each(evidence: Evidence) -> Iterator[tuple[str, Trajectory]]:
    for eta, row in BOUNDED.items():
        for number, trajectory in enumerate(evidence.trajectories.get(row, ())):
            seeds = len(evidence.trajectories[row])
            yield f"η = {eta}" + (f", run {number + 1}" if seeds > 1 else ""), trajectory


def _or_missing(findings: list[Finding], what: str) -> list[Finding]:
    return findings or [missing(what, "a run with a constraint")]


def _rises_then_falls(evidence: Evidence) -> list[Finding]:
    """Observation (1)."""
    findings = []
    for name, trajectory in _each(evidence):
        multiplier = np.asarray(trajectory.multiplier)
        met = first_met(trajectory)
        end = len(multiplier) - 1 if met is None else met
        if end >= 2 * _LOOK_BACK:
            rise = float(multiplier[end] - multiplier[0])
            detail = f"from {multiplier[0]:.2f} to {multiplier[end]:.2f} at step {trajectory.steps[end]}"
            findings.append(Finding(f"{name}: λ rises until the bound is met", rise > 0, detail, rise))
            half = end // 2
            early = float(multiplier[half] - multiplier[0]) / half
            late = float(multiplier[end] - multiplier[half]) / (end - half)
            what = f"{name}: λ rises more slowly the closer the bound is"
            detail = f"{early:.2g} per step, then {late:.2g}"
            findings.append(Finding(what, early > late, detail, early - late))
        # It needs time to fall: as many steps as it took to be met, at least.
        if met is not None and len(multiplier) - met > max(met, _LOOK_BACK):
            peak, low = float(multiplier[: met + 1].max()), float(multiplier[met:].min())
            what = f"{name}: λ falls to 0 when the bound is met"
            detail = f"from {peak:.2f} to {low:.2f}"
            findings.append(Finding(what, low <= _ZERO * peak, detail, _ZERO * peak - low))
    return _or_missing(findings, "λ rises until the bound is met, then falls")


def _rises_again(evidence: Evidence) -> list[Finding]:
    """Observation (2)."""
    findings = []
    for name, trajectory in _each(evidence):
        assert trajectory.bound is not None
        multiplier = np.asarray(trajectory.multiplier)
        loss = np.asarray(trajectory.reconstruction)
        again = np.flatnonzero((multiplier[1:] > 0) & (multiplier[:-1] <= 0)) + 1
        if not len(again):
            continue
        above = sum(bool((loss[max(0, i - _LOOK_BACK) : i] > trajectory.bound).any()) for i in again.tolist())
        what = f"{name}: λ becomes positive again when the loss has gone above the bound"
        share = above / len(again)
        findings.append(Finding(what, share >= 0.9, f"{above} of {len(again)} times", share - 0.9))
    return findings or [missing("λ becomes positive again", "a run whose λ has been at 0 and left it")]


def _converges(evidence: Evidence) -> list[Finding]:
    """Observation (3)."""
    findings = []
    for name, trajectory in _each(evidence):
        assert trajectory.bound is not None
        end = final(trajectory.reconstruction)
        away = abs(end - trajectory.bound) / trajectory.bound
        if trajectory.bound <= min(BOUNDED):
            what = f"{name} is too low to be met"
            above = end / trajectory.bound - 1 - _NEAR
            findings.append(Finding(what, above > 0, f"ends at {end:.3f}", above))
        else:
            what = f"{name}: the reconstruction loss converges to the bound"
            findings.append(Finding(what, away <= _NEAR, f"ends at {end:.3f}", _NEAR - away))
    return _or_missing(findings, "the reconstruction loss converges to the bound")


def _mean(evidence: Evidence, row: str, of: Callable[[Trajectory], float]) -> float | None:
    found = [of(trajectory) for trajectory in evidence.trajectories.get(row, ())]
    return sum(found) / len(found) if found else None


def _best_rsum(trajectory: Trajectory) -> float:
    return max(trajectory.rsum)


def _lower_loss_no_better(evidence: Evidence) -> list[Finding]:
    """Observation (4)."""
    findings = []
    reference = BOUNDED[0.2]
    for row, name in ((BOUNDED[0.1], "η = 0.1"), (BOUNDED[0.05], "η = 0.05"), ("ltd-dual", "the dual loss")):
        what = f"{name} reconstructs better than η = 0.2 and retrieves no better"
        losses = [_mean(evidence, one, lambda t: final(t.reconstruction)) for one in (row, reference)]
        sums = [_mean(evidence, one, _best_rsum) for one in (row, reference)]
        known = [value for value in (*losses, *sums) if value is not None]
        if len(known) < 4:
            findings.append(missing(what, row, reference))
            continue
        loss, bound_loss, rsum, bound_rsum = known
        detail = f"losses {loss:.3f} and {bound_loss:.3f}, rsums {rsum:.1f} and {bound_rsum:.1f}"
        if loss < bound_loss:
            findings.append(Finding(what, rsum <= bound_rsum, detail, bound_rsum - rsum))
        else:
            findings.append(Finding(what, None, f"its reconstruction is no better: {detail}"))
    return findings


def _contrastive_alike(evidence: Evidence) -> list[Finding]:
    """Observation (5)."""
    findings = []
    baseline = _mean(evidence, "baseline", lambda t: final(t.contrastive))
    for eta, row in BOUNDED.items():
        what = f"η = {eta}: the contrastive loss ends within a tenth of the baseline's"
        end = _mean(evidence, row, lambda t: final(t.contrastive))
        if baseline is None or end is None:
            findings.append(missing(what, row, "baseline"))
            continue
        away = abs(end / baseline - 1) if baseline else abs(end)
        findings.append(Finding(what, away <= _NEAR, f"{end:.3f} against {baseline:.3f}", _NEAR - away))
    return findings


_WHERE = "Section 5.3, figure 2"

OBSERVATIONS = (
    Claim(
        "(1)",
        "λ rises until the bound is met, the more slowly the closer it is, and then falls to 0",
        _rises_then_falls,
        _WHERE,
    ),
    Claim("(2)", "λ is positive again when the loss goes above the bound", _rises_again, _WHERE),
    Claim(
        "(3)", "The reconstruction loss converges to η, but η = 0.05 is too low to be met", _converges, _WHERE
    ),
    Claim("(4)", "A lower reconstruction loss does not give better retrieval", _lower_loss_no_better, _WHERE),
    Claim(
        "(5)",
        "The contrastive loss develops alike whatever the reconstruction loss does",
        _contrastive_alike,
        _WHERE,
    ),
)
