"""Claims: comparisons on made-up figures, and what the papers' own numbers say of their text."""

from __future__ import annotations

import pytest

from diptych.studies import STUDIES, judged_in_the_paper
from diptych.studies.claims import (
    Claim,
    all_of,
    at_most,
    beats,
    best_of,
    clear_gain,
    judge,
    no_clear_gain,
    not_better,
    similar,
)
from diptych.studies.evidence import Evidence, Figure, difference, side_by_side

EVIDENCE = Evidence(
    {
        "a": {"rsum": Figure(300.0, 3.0, 3), "R@1": Figure(40.0, 1.0, 3)},
        "b": {"rsum": Figure(290.0, 4.0, 3), "R@1": Figure(40.5, 1.0, 3)},
        "c": {"rsum": Figure(280.0)},
    }
)


def status(check: object) -> str:
    return judge(Claim("x", "y", check), EVIDENCE).status  # type: ignore[arg-type]


def test_a_difference_carries_the_spread_of_both() -> None:
    apart = difference(Figure(300.0, 3.0, 3), Figure(290.0, 4.0, 3))
    assert (apart.mean, apart.spread) == (10.0, 5.0)
    assert apart.beyond_spread is False  # twice the spread is not beyond it
    assert str(apart) == "+10.0 ± 5.0, within the seed spread"
    single = difference(Figure(1.0), Figure(2.5, 1.0, 3))
    assert (single.spread, single.beyond_spread, str(single)) == (None, None, "-1.5")


def test_beats_needs_every_column() -> None:
    assert status(beats("a", "b", "rsum")) == "holds"
    assert status(beats("a", "b", "rsum", "R@1")) == "fails"
    assert status(beats("b", "a", "rsum")) == "fails"


def test_equal_does_not_beat_but_is_not_better_either() -> None:
    same = Evidence({"a": {"rsum": Figure(1.0)}, "b": {"rsum": Figure(1.0)}})
    assert judge(Claim("x", "y", beats("a", "b", "rsum")), same).status == "fails"
    assert judge(Claim("x", "y", not_better("a", "b", "rsum")), same).status == "holds"


def test_what_is_missing_is_not_run_and_does_not_decide() -> None:
    assert status(beats("a", "nobody", "rsum")) == "not run"
    both = judge(Claim("x", "y", all_of(beats("a", "nobody", "rsum"), beats("a", "b", "rsum"))), EVIDENCE)
    assert both.status == "holds"
    assert [finding.holds for finding in both.findings] == [None, True]
    assert both.findings[0].detail == "needs rsum of nobody"


def test_the_deciding_figure_is_the_first_failure_or_the_tightest() -> None:
    failing = judge(Claim("x", "y", beats("a", "b", "rsum", "R@1")), EVIDENCE)
    assert failing.figure.startswith("1 of 2 comparisons hold; the first that does not: a beats b in R@1")
    holding = judge(Claim("x", "y", best_of("a", ["b", "c"], "rsum")), EVIDENCE)
    assert "the closest: a beats b in rsum: +10.0" in holding.figure


def test_similar_by_spread_or_by_share() -> None:
    assert status(similar("a", "b", "rsum", "R@1")) == "holds"
    assert status(similar("a", "c", "rsum")) == "not run"  # c has no spread
    assert status(similar("a", "c", "rsum", share=0.1)) == "holds"
    assert status(similar("a", "c", "rsum", share=0.05)) == "fails"


def test_the_tightest_is_found_among_figures_of_any_size() -> None:
    near = all_of(similar("a", "c", "rsum", share=0.075), beats("a", "b", "rsum"))
    assert "the closest: a is similar to c" in judge(Claim("x", "y", near), EVIDENCE).figure


@pytest.mark.parametrize(("gain", "small", "clear"), [(1.0, "holds", "fails"), (2.0, "fails", "holds")])
def test_a_gain_is_small_or_clear(gain: float, small: str, clear: str) -> None:
    columns = ("i2t R@1", "t2i R@1")
    evidence = Evidence(
        {
            "ours": {"i2t R@1": Figure(70 + 2 * gain), "t2i R@1": Figure(30.0)},
            "theirs": {"i2t R@1": Figure(70.0), "t2i R@1": Figure(30.0)},
        }
    )
    for check, expected in ((no_clear_gain, small), (clear_gain, clear)):
        claim = Claim("x", "y", check("ours", "theirs", columns, 0.03))
        assert judge(claim, evidence).status == expected
        assert judge(Claim("x", "y", check("ours", "nobody", columns, 0.03)), evidence).status == "not run"


def test_at_most() -> None:
    assert status(at_most("c", "a", 0.95, "rsum")) == "holds"
    assert status(at_most("c", "a", 0.9, "rsum")) == "fails"


@pytest.mark.parametrize(
    ("study", "claim", "dataset", "expected"),
    [
        ("metric-learning.table-1", "(1)", "flickr30k", "holds"),
        ("metric-learning.table-1", "(1)", "coco", "holds"),
        ("metric-learning.table-1", "(4)", "flickr30k", "holds"),
        # The text says it of both datasets; on COCO 30.8 ± .3 is not similar to 32.5 ± .2.
        ("metric-learning.table-1", "(4)", "coco", "fails"),
        ("metric-learning.table-3", "more than one", "flickr30k-train", "not run"),
        ("metric-learning.table-4", "about one", "flickr30k-train", "fails"),  # 2.33 for VSRN
        ("convse.table-3", "(a)", "coco", "holds"),
        # "always": on COCO, VSE++ has the better t2i R@5 and R@10.
        ("convse.table-3", "(c)", "coco", "fails"),
        ("convse.table-3", "(c)", "flickr30k", "holds"),
        ("convse.table-3", "(d)", "flickr30k", "holds"),
        ("convse.table-1", "stable", "coco", "holds"),
        ("convse.table-1", "stable", "flickr30k", "fails"),
        ("metric-learning.table-2", "many negatives", "coco-train", "holds"),
        ("ltd.table-1", "dual LTD", "flickr30k", "holds"),
        ("ltd.table-1", "dual LTD", "coco", "holds"),
        ("ltd.table-1", "constrained LTD", "flickr30k", "holds"),
        ("ltd.table-1", "constrained LTD", "coco", "holds"),
        ("ltd.table-1", "dual ITD", "coco", "fails"),  # better in 4 of 6 recalls
        ("ltd.table-2", "triplet over InfoNCE", "coco", "holds"),
        ("ltd.table-3", "as VSE++", "coco", "holds"),
    ],
)
def test_the_papers_numbers_and_the_papers_text(study: str, claim: str, dataset: str, expected: str) -> None:
    found = {one.name: judgements for one, judgements in judged_in_the_paper(STUDIES.get(study))}
    assert found[claim][dataset].status == expected


def test_of_rows_with_the_same_recall_one_with_the_best_precision_is_enough() -> None:
    claim = next(one for one in STUDIES.get("metric-learning.table-1").claims if one.name == "(6)")
    recall = dict.fromkeys(("i2t R@1", "i2t R@5", "i2t R@10"), Figure(40.0))
    rows = {
        "vsepp-triplet": {**recall, "i2t mAP@5": Figure(0.4)},
        "vsepp-smoothap": {**recall, "i2t mAP@5": Figure(0.5)},
    }
    assert judge(claim, Evidence(rows)).status == "holds"


@pytest.mark.parametrize("study", list(STUDIES), ids=lambda study: study.name)
def test_claims_ask_for_rows_and_columns_that_exist(study: object) -> None:
    """With every figure of the study at hand, no comparison is left without one."""
    columns = [column.name for column in study.columns]  # type: ignore[attr-defined]
    if study.name in ("ltd.figure-2", "ltd.table-3"):  # type: ignore[attr-defined]
        return  # judged on trajectories; on a row that is quoted
    figures = {name: Figure(2.0 if name.startswith("chance") else 50.0, 1.0, 2) for name in columns}
    rows = {row.name: figures for row in study.rows}  # type: ignore[attr-defined]
    if study.of_logs or study.of_catalogues:  # type: ignore[attr-defined]
        # Two equal numbers of a log or a catalogue decide nothing. Average precision stands in a table of its own.
        besides = [f"AP {step}" for step in range(11)] if study.name == "intent.figure-6.7" else []  # type: ignore[attr-defined]
        rows = {
            name: {
                column: Figure(50.0 + row + row**2 / 1000 + place / 100)
                for place, column in enumerate([*columns, *besides])
            }
            for row, name in enumerate(rows)
        }
    tables = study.published  # type: ignore[attr-defined]
    rows |= {row.row: figures for table in tables for row in table.rows if row.config is None}
    evidence = Evidence(rows)
    if study.several:  # type: ignore[attr-defined]
        on = {one.dataset: one.centric for table in tables for one in table.evaluated_on}
        assert set(on.values()) <= {"scene", "object"}
        on |= {"shop": "object", "street": "scene"}  # another of each kind
        evidence = side_by_side(dict.fromkeys([*on, "coco", "flickr30k"], evidence), on)
    for claim in study.claims:  # type: ignore[attr-defined]
        undecided = [finding for finding in judge(claim, evidence).findings if finding.holds is None]
        assert not undecided, f"{claim.name}: {undecided[0]}"
