"""The observations of figure 2 on trajectories whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diptych.studies.claims import judge
from diptych.studies.evidence import Evidence, Trajectory
from diptych.studies.observations import BOUNDED, OBSERVATIONS, final, first_met, smoothed

CLAIMS = {claim.name: claim for claim in OBSERVATIONS}
STEPS = 2_000


def trained(bound: float, lowest: float, rsum: float) -> Trajectory:
    """λ climbs, more and more slowly, until the loss is within the bound at step 800, falls to 0 in 200
    steps, and comes back once, when the loss is above the bound again; or it climbs to the end when the
    loss stays at ``lowest``, above the bound."""
    steps = np.arange(1, STEPS + 1)
    met = 800 if lowest <= bound else STEPS
    loss = np.maximum(bound * (1 + 3 * (1 - steps / met)), max(bound * 0.97, lowest))
    multiplier = np.where(steps < met, 1 + 4 * np.sqrt(steps / met), np.maximum(0, 5 - (steps - met) / 40))
    if met < STEPS:
        loss[1_500:1_550] = bound * 1.2
        multiplier[1_510:1_560] = 0.5
    epochs = steps[199::200]
    return Trajectory(
        steps=steps.tolist(),
        contrastive=(1 + np.exp(-steps / 300)).tolist(),
        reconstruction=loss.tolist(),
        multiplier=multiplier.tolist(),
        epoch_steps=epochs.tolist(),
        rsum=(rsum * (1 - np.exp(-epochs / 500))).tolist(),
        bound=bound,
    )


@pytest.fixture
def evidence() -> Evidence:
    rsums = {0.05: 300.0, 0.1: 310.0, 0.2: 330.0, 0.3: 320.0}
    trajectories = {row: [trained(eta, 0.08, rsums[eta])] for eta, row in BOUNDED.items()}
    dual = replace(trained(0.2, 0.08, 315.0), multiplier=(), bound=None)
    trajectories["ltd-dual"] = [replace(dual, reconstruction=[0.12] * STEPS)]
    trajectories["baseline"] = [replace(dual, reconstruction=())]
    return Evidence(trajectories=trajectories)


def changed(evidence: Evidence, row: str, **changes: object) -> Evidence:
    one = replace(evidence.trajectories[row][0], **changes)  # type: ignore[arg-type]
    return Evidence(trajectories={**evidence.trajectories, row: [one]})


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_all_hold_where_all_are_true(evidence: Evidence, name: str) -> None:
    judgement = judge(CLAIMS[name], evidence)
    assert judgement.status == "holds", judgement.figure


def test_a_multiplier_that_never_falls_fails_the_first(evidence: Evidence) -> None:
    risen = np.linspace(1, 5, STEPS).tolist()
    judgement = judge(CLAIMS["(1)"], changed(evidence, BOUNDED[0.2], multiplier=risen))
    assert judgement.status == "fails"


def test_a_multiplier_that_rises_within_the_bound_fails_the_second(evidence: Evidence) -> None:
    within = [0.01] * STEPS
    jumps = ([0.0] * 50 + [1.0] * 50) * (STEPS // 100)
    judgement = judge(CLAIMS["(2)"], changed(evidence, BOUNDED[0.3], reconstruction=within, multiplier=jumps))
    assert judgement.status == "fails"
    assert "0 of 20 times" in judgement.figure


def test_a_loss_that_ends_elsewhere_fails_the_third(evidence: Evidence) -> None:
    judgement = judge(CLAIMS["(3)"], changed(evidence, BOUNDED[0.1], reconstruction=[0.2] * STEPS))
    assert judgement.status == "fails"
    met = judge(CLAIMS["(3)"], changed(evidence, BOUNDED[0.05], reconstruction=[0.05] * STEPS))
    assert met.status == "fails"  # 0.05 is said to be out of reach


def test_better_retrieval_with_a_lower_loss_fails_the_fourth(evidence: Evidence) -> None:
    better = changed(evidence, "ltd-dual", rsum=[400.0] * 10)
    assert judge(CLAIMS["(4)"], better).status == "fails"


def test_another_contrastive_loss_fails_the_fifth(evidence: Evidence) -> None:
    other = changed(evidence, BOUNDED[0.05], contrastive=[3.0] * STEPS)
    assert judge(CLAIMS["(5)"], other).status == "fails"


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_nothing_was_run(name: str) -> None:
    assert judge(CLAIMS[name], Evidence()).status == "not run"


def test_curves_in_one_number() -> None:
    assert final([0.0] * 95 + [2.0] * 5) == 2.0
    assert final([3.0]) == 3.0
    assert smoothed([1.0, 5.0, 9.0]).tolist() == [1.0, 5.0, 9.0]  # too short to smooth
    met = Trajectory([1, 2, 3], [0.0] * 3, [0.5, 0.3, 0.1], [1.0] * 3, bound=0.31)
    assert first_met(met) == 1
    assert first_met(replace(met, bound=0.05)) is None
