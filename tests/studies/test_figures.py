"""Charts of trainings, what LTD's figure 2 shows of λ and its losses, and what is counted of an objective."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from study_runs import run_study

from diptych.core.chart import Chart
from diptych.studies import STUDIES, compare
from diptych.studies.claims import judge
from diptych.studies.evidence import Evidence, Figure, Trajectory
from diptych.studies.figures import comparison_charts, declared, trajectories
from diptych.studies.study import PUBLISHED

FIGURE_2 = STUDIES.get("ltd.figure-2")
BOUNDED = {0.05: "ltd-eta-0.05", 0.1: "ltd-eta-0.1", 0.2: "ltd-constraint", 0.3: "ltd-eta-0.3"}
STEPS, MET = np.arange(400), 120


def training(eta, end=0.0, again=0.0, **more):
    """λ rises ever more slowly until η is met, falls to ``end``; ``again``: the loss when it rises anew."""
    falling = end + (60 - end) * np.exp((MET - STEPS) / 10.0)
    multiplier = np.where(STEPS <= MET, 60 * np.sqrt((STEPS + 1) / MET), falling)
    loss = np.where(STEPS < MET, 2 * eta - eta * STEPS / MET, 0.98 * eta)
    if again:
        multiplier[300:310], multiplier[310:], loss[300:310] = 0.0, 5.0, again
    losses = {"reconstruction": loss.tolist(), "contrastive": [1.0] * len(STEPS), "bound": eta}
    scores = {"epoch_steps": [200, 400], "rsum": [300.0, 310.0]}
    return Trajectory(STEPS.tolist(), **{**losses, **scores, "multiplier": multiplier.tolist(), **more})


def of(change):
    """A training per row of the figure; ``change`` is what one has besides, by its η (1.0 of the baseline)."""
    runs = {row: [training(eta, **change(eta))] for eta, row in BOUNDED.items()}
    runs["ltd-dual"] = [training(0.4, multiplier=[], bound=None)]
    runs["baseline"] = [training(1.0, multiplier=[], bound=None, **{"reconstruction": [], **change(1.0)})]
    return Evidence(trajectories=runs)


def as_in_the_paper(eta):
    lower = {"rsum": [250.0]} if eta < 0.2 else {}
    never = {"reconstruction": [0.08] * 400, "multiplier": np.sqrt(STEPS + 1).tolist()}
    return {**lower, **never} if eta == 0.05 else lower


CURVES = {
    "as in the paper": (
        as_in_the_paper,
        {"(1)": "holds", "(2)": "not tested", "(3)": "holds", "(4)": "holds", "(5)": "holds"},
    ),
    "nothing": (None, dict.fromkeys(("(1)", "(2)", "(3)", "(4)", "(5)"), "not tested")),
    "λ stays up": (lambda eta: {"end": 20.0}, {"(1)": "fails"}),  # as on the authors' own curves
    "λ rises again above η": (lambda eta: {"again": 2.0}, {"(2)": "holds"}),
    "λ rises again below η": (lambda eta: {"again": 1e-9}, {"(2)": "fails"}),
    "far from η": (lambda eta: {"reconstruction": [0.5] * 400}, {"(3)": "fails"}),
    "the lower, the better": (lambda eta: {"rsum": [340 - 200 * eta]}, {"(4)": "fails"}),
    "another contrastive loss": (lambda eta: {"contrastive": [eta] * 400}, {"(5)": "fails"}),
}


def test_observations_on_curves():
    for name in CURVES:
        change, wanted = CURVES[name]
        evidence = of(change) if change else Evidence()
        found = {claim.name: judge(claim, evidence).status for claim in FIGURE_2.claims}
        assert {claim: found[claim] for claim in wanted} == wanted


def test_trajectories_are_drawn_per_quantity():
    """λ as it is, on an axis without its zeros; losses smoothed, with the bounds."""
    charts = trajectories(FIGURE_2, of(lambda eta: {"again": 2.0})).charts
    drawn = {one.title: one.series for one in charts if isinstance(one, Chart)}
    lines = {"Validation rsum": 6, "Multiplier λ": 4, "Reconstruction loss": 5 + 4, "Contrastive loss": 6}
    assert {name: len(series) for name, series in drawn.items()} == lines
    multiplier, raw = drawn["Multiplier λ"][0].y, training(0.05, again=2.0)
    assert (multiplier[299], list(multiplier[300:310])) == (raw.multiplier[299], [None] * 10)
    loss = drawn["Reconstruction loss"]  # a fiftieth of 400, an odd number: 9 steps
    assert loss[0].y[300] == pytest.approx(np.mean(raw.reconstruction[296:305]))
    assert [one.y for one in loss if one.mark == "level"] == [[eta] for eta in BOUNDED]


def test_counts_have_a_start_other_epsilons_and_a_score(small_study, choices, made, tmp_path):
    """C^q falls while training goes on, C^qv- with ε; the score is the measured recall sum."""
    study, some = replace(small_study, measure={"kind": "counting"}), {"rows": ["1.1", "1.3"], "seeds": [0]}
    run = Path("rows", "vsepp-triplet", "seed-0")
    shutil.copytree(made[0] / run, tmp_path / run)
    results = run_study(study, tmp_path, choices, **some)
    triplet, nt_xent = (entry.measurements[0].values for entry in results.entries)
    assert [triplet["rsum"]] == made[1].values("vsepp-triplet", "rsum")[:1]
    for way in ("i2t", "t2i"):
        assert triplet[f"{way} C^q at the start"] > triplet[f"{way} C^q"] > 0
        assert f"{way} C^q{PUBLISHED}" in triplet
        low, plain, high = (nt_xent[f"{way} C^qv-{text}"] for text in (", ε = 0.005", "", ", ε = 0.02"))
        assert 16 > low >= plain >= high > 0
        assert 0 < nt_xent[f"{way} queries"] <= 16
    (chart,) = comparison_charts(compare(study, results).blocks[0], study.columns)
    assert dict(zip(chart.categories, chart.series[0].y, strict=True))["1.1  Triplet"] == triplet["rsum"]
    numbers = {"rsum": Figure(300.0), "with rsum": Figure(500.0), "chance rsum": Figure(3.0)}
    (bars,) = declared(
        STUDIES.get("svl.figure-4.5"), Evidence({"vse-none": numbers, "vse-images": {}})
    ).charts
    assert (bars.categories, *(y for one in bars.series for y in one.y)) == (["none"], 300, 500, 600, 3)
    of_sizes = Evidence({f"ltd-none-{n}": {"rsum": Figure(n / 10)} for n in (500, 250)})
    ((line,),) = (one.series for one in declared(STUDIES.get("ours.targets"), of_sizes).charts)
    assert (line.name, line.x, line.y) == ("contrastive alone", (250, 500), (25.0, 50.0))
