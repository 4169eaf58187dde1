"""Checks about shortcuts on made-up figures, and the figure drawn from them."""

from __future__ import annotations

import pytest

from diptych.studies import STUDIES, judged_in_the_paper
from diptych.studies.claims import Check, Claim, beats, judge
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.shortcut_checks import (
    at_least,
    chosen_of,
    collapsed,
    in_order,
    less,
    reaches,
    recovers,
    with_chosen,
)
from diptych.studies.shortcut_rows import chosen_remarks
from diptych.studies.svl import GroupedBars


def status(check: Check, rows: dict[str, dict[str, float]], sd: float | None = None) -> str:
    figures = {
        row: {name: Figure(value, sd, 1 if sd is None else 3) for name, value in values.items()}
        for row, values in rows.items()
    }
    return judge(Claim("x", "y", check), Evidence(figures)).status


@pytest.mark.parametrize(("rsum", "expected"), [(90.0, "holds"), (89.9, "fails")])
def test_at_least(rsum: float, expected: str) -> None:
    rows = {"a": {"rsum": rsum}, "none": {"rsum": 100.0}}
    assert status(at_least("a", "none", 0.9, "rsum"), rows) == expected
    assert status(at_least("a", "nobody", 0.9, "rsum"), rows) == "not run"


@pytest.mark.parametrize(("chance", "expected"), [(5.0, "holds"), (10.0, "not run")])
def test_nothing_is_kept_of_what_is_near_chance(chance: float, expected: str) -> None:
    """27 beside 30 where chance is 10: a model that learned nothing keeps nothing."""
    rows = {"a": {"rsum": 27.0}, "none": {"rsum": 30.0, "chance rsum": chance}}
    assert status(at_least("a", "none", 0.9, "rsum"), rows) == expected
    rows = {"a": {"rsum": 27.0, "zero-shot rsum": 30.0, "chance rsum": chance}}
    assert status(less("a", "rsum", "zero-shot rsum"), rows) == expected
    # Shares of information have no chance.
    shares = {"a": {"image specific": 1.0, "image shared": 2.0, "chance rsum": chance}}
    assert status(less("a", "image specific", "image shared"), shares) == "holds"


@pytest.mark.parametrize(
    ("rsum", "fallen", "whole", "expected"),
    [
        (90.0, 30.0, 400.0, "holds"),
        (89.9, 30.0, 400.0, "fails"),
        (31.0, 9.0, 400.0, "holds"),  # the fallen row may be at chance
        (30.0, 9.0, 400.0, "fails"),  # more than 3 times as much, and a collapse still: 3 times chance
        (39.0, 9.0, 800.0, "fails"),  # 5 % of what there is to recover
        (90.0, 9.0, 30.0, "not run"),  # nothing was learned without shortcuts either
    ],
)
def test_a_recovery(rsum: float, fallen: float, whole: float, expected: str) -> None:
    rows = {
        "ltd": {"rsum": rsum, "chance rsum": 10.0},
        "unique": {"rsum": fallen, "chance rsum": 10.0},
        "none": {"rsum": whole, "chance rsum": 10.0},
    }
    assert status(recovers("ltd", "unique", "none", 3.0), rows) == expected
    for absent in rows:
        some = {row: values for row, values in rows.items() if row != absent}
        assert status(recovers("ltd", "unique", "none", 3.0), some) == "not run"


def test_a_level_and_two_columns_of_one_row() -> None:
    rows = {"a": {"with rsum": 570.0, "rsum": 3.0, "zero-shot rsum": 4.0}}
    assert status(reaches("a", "with rsum", 570), rows) == "holds"
    assert status(reaches("a", "with rsum", 570.1), rows) == "fails"
    assert status(less("a", "rsum", "zero-shot rsum"), rows) == "holds"
    assert status(less("a", "zero-shot rsum", "rsum"), rows) == "fails"
    assert status(less("a", "rsum", "nothing"), rows) == "not run"


@pytest.mark.parametrize(
    ("rsum", "chance", "whole", "expected"),
    [
        (20.0, 1.0, 400.0, "holds"),  # 5 % of 400
        (20.1, 1.0, 400.0, "fails"),
        (29.0, 10.0, 400.0, "holds"),  # 3 times chance, on a small test set
        (31.0, 10.0, 400.0, "fails"),
        (5.0, 10.0, 30.0, "not run"),  # nothing was learned without shortcuts either
    ],
)
def test_a_collapse(rsum: float, chance: float, whole: float, expected: str) -> None:
    rows = {"unique": {"rsum": rsum, "chance rsum": chance}, "none": {"rsum": whole}}
    assert status(collapsed("unique", "none"), rows) == expected


def test_a_collapse_in_print_has_no_chance() -> None:
    assert status(collapsed("unique", "none"), {"unique": {"rsum": 3.4}, "none": {"rsum": 409}}) == "holds"


@pytest.mark.parametrize(
    ("values", "sd", "expected"),
    [
        ([400, 300, 100], None, "holds"),
        ([400, 410, 100], None, "holds"),  # 10 points the wrong way are a run's own
        ([400, 413, 100], None, "fails"),
        ([400, 420, 100], 10.0, "holds"),  # within twice the spread of the difference, 28
        ([400, 399, 395], None, "fails"),  # never the wrong way, but nowhere either
    ],
)
def test_a_fall_from_row_to_row(values: list[float], sd: float | None, expected: str) -> None:
    rows = {f"bits-{n}": {"rsum": value, "with rsum": 600 - value} for n, value in enumerate(values)}
    names = [f"bits-{n}" for n in range(5)]  # the last two were not run
    assert status(in_order(names, "rsum", rising=False), rows, sd) == expected
    assert status(in_order(names, "with rsum", rising=True), rows, sd) == expected
    assert status(in_order(names[2:], "rsum", rising=False), rows, sd) == "not run"


def evidence(**validation: float | None) -> Evidence:
    """Rows with an rsum of 10, 20, … and the given validation rsum."""
    figures = {}
    for number, (row, value) in enumerate(validation.items(), 1):
        figures[row] = {"rsum": Figure(10.0 * number)}
        if value is not None:
            figures[row]["validation rsum"] = Figure(value)
    return Evidence(figures)


def test_the_candidate_is_chosen_by_validation_not_by_test() -> None:
    found = evidence(a=5.0, b=7.0, c=6.0)
    assert chosen_of(found, ["a", "b", "c"]) == "b"
    assert chosen_of(found, ["a", "c", "absent"]) == "c"
    assert chosen_of(found, ["absent"]) is None
    claim = Claim("x", "y", with_chosen(["a", "b"], lambda row: beats(row, "c", "rsum")))
    assert judge(claim, found).findings[0].what == "b beats c in rsum"
    nothing = Claim("x", "y", with_chosen(["absent"], lambda row: beats(row, "c", "rsum")))
    assert judge(nothing, found).status == "not run"
    remarks = chosen_remarks(["a", "b"], ["absent"])(found)
    assert remarks == ["Chosen by validation rsum without shortcuts: b; of a 5.0, b 7.0."]


def test_in_print_the_only_candidate_is_the_chosen_one() -> None:
    assert chosen_of(evidence(a=None), ["a", "b"]) == "a"
    assert chosen_of(evidence(a=None, b=None), ["a", "b"]) is None
    assert chosen_remarks(["a"])(evidence(a=None)) == []


@pytest.mark.parametrize(
    ("study", "claim", "flickr30k", "coco"),
    [
        ("svl.figure-4.5", "unique, without", "holds", "holds"),
        ("svl.figure-4.5", "bits, without", "not run", "not run"),
        *(
            ("svl.table-4.1", name, "holds", "holds")
            for name in (
                "collapse",
                "from scratch",
                "fine-tuned",
                "only partly",
                "without shortcuts",
                "no gain",
            )
        ),
        *(
            ("svl.table-4.2", name, "holds", "holds")
            for name in ("from scratch", "fine-tuned", "only partly", "without shortcuts")
        ),
        # "across all recall@k": t2i R@5 is the same on one, two recalls rise on the other.
        ("svl.table-4.2", "every recall", "fails", "fails"),
    ],
)
def test_the_thesis_numbers_and_its_text(study: str, claim: str, flickr30k: str, coco: str) -> None:
    found = {one.name: judgements for one, judgements in judged_in_the_paper(STUDIES.get(study))}
    assert {key: one.status for key, one in found[claim].items()} == {"flickr30k": flickr30k, "coco": coco}


BARS = GroupedBars(
    groups={"One": [("a", "first"), ("b", "second")], "Other": [("c", "third")]},
    columns=(("rsum", "without"), ("with rsum", "with")),
    limit=600.0,
    chance="chance rsum",
    reference="zero-shot rsum",
)


def test_bars_say_what_they_show() -> None:
    found = Evidence(
        {
            "a": {"rsum": Figure(400.0, 2.0, 3), "chance rsum": Figure(3.2)},
            "b": {"rsum": Figure(5.0), "with rsum": Figure(599.0), "zero-shot rsum": Figure(450.0)},
        }
    )
    (panel,) = BARS.draw(found, {})  # nothing of the other group was run
    assert (
        "One, rsum of at most 600: first 400.0 without; second 5.0 without, 599.0 with; "
        "before fine-tuning 450.0; chance 3.2." in panel
    )
    for word in ("first", "second", "before fine-tuning", "chance"):
        assert f">{word}</text>" in panel
    assert BARS.draw(Evidence({}), {}) == []
