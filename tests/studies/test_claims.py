"""Claims of all papers on figures made up by hand, the observations of figure 2, and when a cell is reproduced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import NumericalError, UsageError
from diptych.studies import STUDIES, Evidence, Figure, Study, Trajectory, cell_verdict, judge
from diptych.studies.evidence import side_by_side
from diptych.studies.published import EvaluatedOn, Measured, PrintedCell, same_evaluation

FIGURE_2 = "ltd.figure-2"  # judged on trajectories
NAMES = [study.name for study in STUDIES]


class Everything(Evidence):
    """With a number for whatever is measured of a known column besides: its interval, at the start, moved."""

    def figure(self, row: str, column: str) -> Figure | None:
        own = super().figure(row, column)
        known = self.figures.get(row, {})
        begins = (name for name in known if column.startswith((f"{name} ", f"{name},")))
        return own or known.get(max(begins, key=len, default=""))


def everything(study: Study) -> Evidence:
    """Return a number of every row and column, no two alike; the least of what chance gives."""
    tables, columns = study.published, [column.name for column in study.columns]
    names = [row.name for row in study.rows]
    names += [row.row for table in tables for row in table.rows if row.config is None]
    # What is measured besides, and stands in tables of its own.
    columns += [f"{which}{step}" for which in ("AP ", "gain ", "gain AP ") for step in range(11)]
    columns += [] if "rsum" in columns else ["rsum"]
    figures: dict[str, dict[str, Figure]] = {name: {} for name in names}
    for row, name in enumerate(names):
        for place, column in enumerate(columns):
            value = 0.01 if column.startswith("chance") else 50 + row + row**2 / 1000 + place / 100
            figures[name][column] = Figure(value, 1.0, 2)
    evaluated = [one for table in tables for one in table.evaluated_on]
    on: dict[str, str] = {}
    if study.several:
        on = {one.dataset: one.centric for one in evaluated}
        on |= {"shop": "object", "street": "scene", "coco": "scene", "flickr30k": "scene"}
        figures = dict(side_by_side(dict.fromkeys(on, Evidence(figures)), on).figures)
    tasks = {name: dict.fromkeys(figures, "test, 100 images, 500 captions, full") for name in on}
    whole = Everything(figures, centric=on, tasks=tasks)
    sources = [one.by if study.several else one.key for one in evaluated]
    return replace(whole, beside=dict.fromkeys(sources, whole))


@pytest.mark.parametrize("name", [name for name in NAMES if name != FIGURE_2])
def test_claims_ask_for_rows_and_columns_that_exist(name: str) -> None:
    """With every figure of the study at hand, no comparison is left without one."""
    study = STUDIES.get(name)
    evidence = everything(study)
    for claim in study.claims:
        found = [str(one) for one in claim.findings(evidence) if one.status == "not tested"]
        assert not found, claim.name


@pytest.mark.parametrize("name", NAMES)
def test_without_numbers_nothing_is_judged(name: str) -> None:
    claims = STUDIES.get(name).claims
    assert {judge(claim, Evidence()).status for claim in claims} <= {"not tested"}


def test_a_claim_that_is_about_models_is_not_tested_on_their_stand_ins() -> None:
    """Whatever the numbers are: they are of other models."""
    about = [(study, claim) for study in STUDIES for claim in study.claims if claim.about]
    assert about
    for study, claim in about:
        known = {row.name for row in study.rows}
        assert set(claim.about) <= known, claim.name
        assert judge(claim, everything(study), claim.about[:1]).status == "not tested"


# Figure 2 of LTD: how trainings went ---------------------------------------------------------------------

BOUNDED = {0.05: "ltd-eta-0.05", 0.1: "ltd-eta-0.1", 0.2: "ltd-constraint", 0.3: "ltd-eta-0.3"}
LOW, MIDDLE, HIGH, TOP = BOUNDED.values()
OBSERVED = {claim.name: claim for claim in STUDIES.get(FIGURE_2).claims}
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


def trainings() -> dict[str, list[Trajectory]]:
    """Return what the figure shows, clearly: the best retrieval is that of η = 0.2."""
    rsums = dict(zip(BOUNDED, (250.0, 270.0, 330.0, 290.0), strict=True))
    found = {row: [trained(eta, 0.08, rsums[eta])] for eta, row in BOUNDED.items()}
    dual = replace(trained(0.2, 0.08, 280.0), multiplier=(), bound=None)
    found["ltd-dual"] = [replace(dual, reconstruction=[0.12] * STEPS)]
    found["baseline"] = [replace(dual, reconstruction=())]
    return found


@pytest.mark.parametrize("name", sorted(OBSERVED))
def test_all_hold_where_all_are_true(name: str) -> None:
    judgement = judge(OBSERVED[name], Evidence(trajectories=trainings()))
    assert judgement.status == "holds", judgement.figure


@pytest.mark.parametrize(
    ("claim", "row", "changes"),
    [
        ("(1)", HIGH, {"multiplier": np.linspace(1, 5, STEPS).tolist()}),  # never falls
        # rises within the bound
        (
            "(2)",
            TOP,
            {"reconstruction": [0.01] * STEPS, "multiplier": ([0.0] * 50 + [1.0] * 50) * (STEPS // 100)},
        ),
        ("(3)", MIDDLE, {"reconstruction": [0.2] * STEPS}),  # ends elsewhere
        ("(3)", LOW, {"reconstruction": [0.05] * STEPS}),  # is said to be out of reach
        ("(4)", "ltd-dual", {"rsum": [400.0] * 10}),  # better retrieval with a lower loss
        ("(5)", LOW, {"contrastive": [3.0] * STEPS}),
    ],
)
def test_each_observation_can_fail(claim: str, row: str, changes: dict[str, Any]) -> None:
    found = trainings()
    found[row] = [replace(found[row][0], **changes)]
    assert judge(OBSERVED[claim], Evidence(trajectories=found)).status == "fails"


# When a cell is reproduced -------------------------------------------------------------------------------

ON = EvaluatedOn("flickr30k", "test", 1_000, 5_000, key="flickr30k")
CELL = PrintedCell("1.1 i2t R@1", 40.0)
OURS = Measured("flickr30k", "test", 1_000, 5_000)


@pytest.mark.parametrize(
    ("values", "printed", "verdict"),
    [
        ([42.0], {}, "reproduced"),  # exactly 5 %
        ([38.0], {}, "reproduced"),
        ([42.1], {}, "close"),
        ([44.0], {}, "close"),  # exactly 10 %
        ([44.1], {}, "not reproduced"),
        ([35.9], {}, "not reproduced"),
        ([41.0, 43.0], {}, "reproduced"),  # mean 42
        ([43.0, 43.0], {}, "close"),  # no spread
        ([41.0, 49.0], {}, "reproduced"),  # mean 45, sd 5.7: within two of them
        ([45.9], {"printed_spread": 3.0, "spread": "seeds"}, "reproduced"),
        ([46.1], {"printed_spread": 3.0, "spread": "seeds"}, "not reproduced"),
        (
            [45.9],
            {"printed_spread": 3.0, "spread": "batches"},
            "not reproduced",
        ),  # a spread counts when it is over seeds
        ([0.0], {"value": 0.0}, "reproduced"),  # a printed zero has no relative distance
        ([0.01], {"value": 0.0}, "not reproduced"),
    ],
)
def test_distance_and_spread(values: list[float], printed: dict[str, Any], verdict: str) -> None:
    assert cell_verdict(values, replace(CELL, **printed)) == verdict


@given(st.floats(1, 500), st.floats(0, 100), st.floats(0, 100))
def test_nearer_is_never_worse(value: float, near: float, far: float) -> None:
    order = {"reproduced": 0, "close": 1, "not reproduced": 2}
    near, far = sorted((near, far))
    cell = replace(CELL, value=value)
    assert order[cell_verdict([value + near], cell)] <= order[cell_verdict([value + far], cell)]


def test_no_verdict_on_nothing_or_on_nan() -> None:
    with pytest.raises(UsageError, match="no value"):
        cell_verdict([], CELL)
    with pytest.raises(NumericalError, match=r"1\.1 i2t R@1"):
        cell_verdict([40.0, float("nan")], CELL)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataset": "Flickr30k"}, ""),
        ({"dataset": "flickr8k"}, "dataset flickr8k, not flickr30k"),
        ({"split": "val"}, "split val, not test"),
        ({"images": 1_014}, "1,014 images, not 1,000"),
        ({"captions": 5_070}, "5,070 captions, not 5,000"),
        ({"protocol": "coco-1k"}, "protocol coco-1k, not full"),
        ({"positives": "cxc"}, "positives cxc, not own"),
        ({"chosen": "first"}, "captions first, not all"),
        ({"reranked": 128}, "128 candidates re-ranked, not none"),
    ],
)
def test_what_differs_is_said(change: dict[str, Any], said: str) -> None:
    assert same_evaluation(replace(OURS, **change), ON) == [said] * bool(said)


def test_coco_counts_with_five_or_all_captions() -> None:
    coco = EvaluatedOn("coco", "test", 5_000, 25_000, readings={"captions": (25_000, 25_010)})
    for captions, said in ((25_000, []), (25_010, []), (24_995, ["24,995 captions, not 25,000 or 25,010"])):
        assert same_evaluation(Measured("coco", "test", 5_000, captions), coco) == said
