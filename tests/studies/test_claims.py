"""Claims of all papers on figures made up by hand, the observations of figure 2, and when a cell is reproduced."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import NumericalError, UsageError
from diptych.studies import STUDIES, Evidence, Figure, cell_verdict, judge
from diptych.studies.evidence import side_by_side
from diptych.studies.published import EvaluatedOn, Measured, PrintedCell, same_evaluation

FIGURE_2 = "ltd.figure-2"  # judged on trajectories
NAMES = [study.name for study in STUDIES]


class Everything(Evidence):
    """With a number for whatever is measured of a known column besides: its interval, at the start, moved."""

    def figure(self, row, column):
        own = super().figure(row, column)
        known = self.figures.get(row, {})
        begins = (name for name in known if column.startswith((f"{name} ", f"{name},")))
        return own or known.get(max(begins, key=len, default=""))


def everything(study):
    """Return a number of every row and column, no two alike; the least of what chance gives."""
    tables, columns = study.published, [column.name for column in study.columns]
    names = [row.name for row in study.rows]
    names += [row.row for table in tables for row in table.rows if row.config is None]
    # What is measured besides, and stands in tables of its own.
    columns += [f"{which}{step}" for which in ("AP ", "gain ", "gain AP ") for step in range(11)]
    columns += [] if "rsum" in columns else ["rsum"]
    figures = {name: {} for name in names}
    for row, name in enumerate(names):
        for place, column in enumerate(columns):
            value = 0.01 if column.startswith("chance") else 50 + row + row**2 / 1000 + place / 100
            figures[name][column] = Figure(value, 1.0, 2)
    evaluated = [one for table in tables for one in table.evaluated_on]
    on = {}
    if study.several:
        on = {one.dataset: one.centric for one in evaluated}
        on |= {"shop": "object", "street": "scene", "coco": "scene", "flickr30k": "scene"}
        figures = dict(side_by_side(dict.fromkeys(on, Evidence(figures)), on).figures)
    tasks = {name: dict.fromkeys(figures, "test, 100 images, 500 captions, full") for name in on}
    whole = Everything(figures, centric=on, tasks=tasks)
    sources = [one.by if study.several else one.key for one in evaluated]
    return replace(whole, sources=dict.fromkeys(sources, whole))


def test_claims_ask_for_rows_and_columns_that_exist():
    """With every figure of the study at hand, no comparison is left without one."""
    for name in [name for name in NAMES if name != FIGURE_2]:
        study = STUDIES.get(name)
        evidence = everything(study)
        for claim in study.claims:
            found = [str(one) for one in claim.findings(evidence) if one.status == "not tested"]
            assert not found, claim.name


def test_without_numbers_nothing_is_judged():
    for name in NAMES:
        claims = STUDIES.get(name).claims
        assert {judge(claim, Evidence()).status for claim in claims} <= {"not tested"}


def test_a_claim_that_is_about_models_is_not_tested_on_their_stand_ins():
    """Whatever the numbers are: they are of other models."""
    about = [(study, claim) for study in STUDIES for claim in study.claims if claim.about]
    assert about
    for study, claim in about:
        known = {row.name for row in study.rows}
        assert set(claim.about) <= known, claim.name
        assert judge(claim, everything(study), claim.about[:1]).status == "not tested"


# When a cell is reproduced -------------------------------------------------------------------------------

ON = EvaluatedOn("flickr30k", "test", 1_000, 5_000, key="flickr30k")
CELL = PrintedCell("1.1 i2t R@1", 40.0)
OURS = Measured("flickr30k", "test", 1_000, 5_000)


def test_distance_and_spread():
    for values, printed, verdict in [
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
    ]:
        assert cell_verdict(values, replace(CELL, **printed)) == verdict


@given(st.floats(1, 500), st.floats(0, 100), st.floats(0, 100))
def test_nearer_is_never_worse(value, near, far):
    order = {"reproduced": 0, "close": 1, "not reproduced": 2}
    near, far = sorted((near, far))
    cell = replace(CELL, value=value)
    assert order[cell_verdict([value + near], cell)] <= order[cell_verdict([value + far], cell)]


def test_no_verdict_on_nothing_or_on_nan():
    with pytest.raises(UsageError, match="no value"):
        cell_verdict([], CELL)
    with pytest.raises(NumericalError, match=r"1\.1 i2t R@1"):
        cell_verdict([40.0, float("nan")], CELL)


def test_what_differs_is_said():
    for change, said in [
        ({"dataset": "Flickr30k"}, ""),
        ({"dataset": "flickr8k"}, "dataset flickr8k, not flickr30k"),
        ({"split": "val"}, "split val, not test"),
        ({"images": 1_014}, "1,014 images, not 1,000"),
        ({"captions": 5_070}, "5,070 captions, not 5,000"),
        ({"protocol": "coco-1k"}, "protocol coco-1k, not full"),
        ({"positives": "cxc"}, "positives cxc, not own"),
        ({"chosen": "first"}, "captions first, not all"),
        ({"reranked": 128}, "128 candidates re-ranked, not none"),
    ]:
        assert same_evaluation(replace(OURS, **change), ON) == [said] * bool(said)


def test_coco_counts_with_five_or_all_captions():
    coco = EvaluatedOn("coco", "test", 5_000, 25_000, readings={"captions": (25_000, 25_010)})
    for captions, said in ((25_000, []), (25_010, []), (24_995, ["24,995 captions, not 25,000 or 25,010"])):
        assert same_evaluation(Measured("coco", "test", 5_000, captions), coco) == said
