"""Thesis chapter 7 held against itself: printed cells, what its text derives from them, how claims are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from printed_arithmetic import (
    arithmetic_faults,
)

from diptych.studies import STUDIES, published_table
from diptych.studies.claims import Check, judge
from diptych.studies.cti_checks import (
    ahead,
    below,
    best_in,
    comparable,
    gains_most,
    keeps_more_points,
    keeps_more_share,
    mostly,
    mostly_at,
    none_found,
    seen_over_unseen,
    share_above,
)
from diptych.studies.cti_rows import MEASURES, row_name
from diptych.studies.cti_tables import (
    depth_bars,
    model_dots,
    seen_bars,
    tree_bars,
)
from diptych.studies.page import notes_of
from diptych.studies.study import SettingName
from diptych.studies.verdict import Evidence, Figure, Measured, same_evaluation

CHAPTER_7 = [study for study in STUDIES if study.paper.key == "cti"]


# The tables against each other ----------------------------------------------------------------------------------


def test_every_table_is_a_study() -> None:
    names = {study.name for study in CHAPTER_7}
    assert names == {*(f"cti.table-7.{n}" for n in (1, 2, 3)), "cti.figure-7.2"}
    for study in CHAPTER_7:
        assert study.of_catalogues
        assert not study.of_logs
        assert list(study.settings) == ["paper", "data", "quick"]
        printed = {row.config for row in study.published[0].rows}
        assert printed <= {row.name for row in study.rows}


def test_the_models_that_the_thesis_does_not_have_say_so() -> None:
    printed = {row.config for row in published_table("cti", "table-7.1").rows}
    rows = {row.name: row for row in STUDIES.get("cti.table-7.1").rows}
    assert len(rows) == 30
    assert {name for name, row in rows.items() if row.extra} == rows.keys() - printed
    assert "clip-ta-most-general" in rows.keys() - printed


def test_an_altered_cell_is_found() -> None:
    table = published_table("cti", "table-7.2")
    row = table.rows[0]
    more = replace(row, cells={name: replace(one, value=one.value + 2) for name, one in row.cells.items()})
    right = replace(table, rows=(more, *table.rows[1:]))
    assert arithmetic_faults(right) == [("Most general", "same tree"), ("Total", "different tree")]
    text = published_table("cti", "text-table-7.3")
    first = text.rows[2]
    wrong = replace(first, cells={"stated": replace(first.cells["stated"], value=29.0)})
    assert arithmetic_faults(replace(text, rows=(wrong,))) == [(first.row, "stated")]


# What is printed beside it ---------------------------------------------------------------------------------------


def test_errata_stand_with_every_study() -> None:
    notes = {study.name: "\n".join(notes_of(study)) for study in CHAPTER_7}
    assert "row CLIP-I, most general, P@1 does not add up: 17.85 is 5 of 28" in notes["cti.table-7.1"]
    assert "211 % is R-precision's" in notes["cti.table-7.1"]
    assert "1,655 + 2 + 127 = 1,784" in notes["cti.table-7.2"]
    assert "is below both parts" in notes["cti.table-7.3"]
    assert "68 + 21 + 7 + 5 = 101" in notes["cti.figure-7.2"]
    assert all("CLIP-I … works slightly better" in one for one in notes.values())


def test_a_catalogue_is_described_by_its_products() -> None:
    on = published_table("cti", "table-7.1").rows[0].on
    assert on.describe() == "xmarket-us test: 38,921 products, 5,471 or 34 or 4,100 categories, by label"
    same = Measured("xmarket-US", "test", protocol="by label", products=38_921, categories=34)
    assert same_evaluation(same, on) == []
    assert same.task == "test, 38,921 products, 34 categories, by label"
    other = replace(same, products=40_000, categories=28, protocol="by path")
    assert same_evaluation(other, on) == [
        "protocol by path, not by label",
        "40,000 products, not 38,921",
        "28 categories, not 5,471 or 34 or 4,100",
    ]


@pytest.mark.parametrize("setting", ["paper", "data", "quick"])
def test_settings_can_be_measured(setting: SettingName) -> None:
    from diptych.studies.catalogues import CatalogueOptions

    for study in CHAPTER_7:
        own = study.settings[setting]
        options = CatalogueOptions.of(own.measure, published=setting == "paper")
        assert (options.training() is None) == (setting == "paper")
        assert (own.products is not None) == (setting == "quick")


GENERAL, SPECIFIC = "most-general", "most-specific"


def evidence(rows: Mapping[str, float | Mapping[str, float]]) -> Evidence:
    """One number for all measures of a row, or its columns."""
    return Evidence(
        {
            row: {
                column: Figure(value)
                for column, value in (
                    dict.fromkeys(MEASURES, given) if isinstance(given, int | float) else given
                ).items()
            }
            for row, given in rows.items()
        }
    )


def held(check: Check, rows: Mapping[str, float | Mapping[str, float]]) -> list[bool | None]:
    return [finding.holds for finding in check(evidence(rows))]


def test_one_is_ahead_or_not() -> None:
    rows = {"clip-i-all": 3.0, "clip-all": 2.0, "clip-i-most-general": 1.0, "clip-most-general": 2.0}
    assert held(ahead("clip-i", "clip", ("all",)), rows) == [True] * 6
    assert held(ahead("clip-i", "clip", (GENERAL,)), rows) == [False] * 6
    assert held(below("clip-i", "clip", (GENERAL,)), rows) == [True] * 6
    assert held(below("clip-i", "clip", ("all",), ("P@1",)), rows) == [False]
    assert held(ahead("clip-i", "clip", (SPECIFIC,), ("P@1",)), rows) == [None]
    assert held(best_in("all", "clip-i", ("clip", "bm25"), ("P@1",)), rows) == [True, None]


def test_equal_numbers_decide_nothing() -> None:
    rows = {
        **{
            row_name(model, setting): 100.0
            for model in ("clip-i", "clip-ita")
            for setting in (GENERAL, SPECIFIC)
        },
        **{"seen-all": 5.0, "unseen-all": 5.0, "all": {"same tree": 3.0, "different tree": 3.0}},
    }
    for check in (
        ahead("clip-ita", "clip-i", (GENERAL,), ("P@1",)),
        below("clip-ita", "clip-i", (GENERAL,), ("P@1",)),
        keeps_more_share("clip-i", GENERAL, SPECIFIC, ("P@1",)),
        seen_over_unseen("all", ("P@1",)),
        mostly("all", "same tree", "different tree"),
    ):
        assert held(check, rows) == [None]
    (finding,) = ahead("clip-ita", "clip-i", (GENERAL,), ("P@1",))(evidence(rows))
    assert finding.detail == "equal, 100.00"


def test_comparable_is_a_factor() -> None:
    rows = {"bm25-all": 1.0, "clip-all": 2.0, "sentence-all": 1.5}
    check = comparable(("bm25", "clip", "sentence"), "all", 2, ("P@1",))
    assert held(check, rows) == [True]
    assert held(check, rows | {"clip-all": 2.1}) == [False]
    (finding,) = check(evidence(rows | {"clip-all": 2.1}))
    assert finding.detail == "2.10 (clip-all) and 1.00 (bm25-all)"
    assert held(check, {"bm25-all": 1.0}) == [None]


def test_pictures_by_share_and_by_points_are_two_readings() -> None:
    # 30 of 60 and 10 of 30: half is more than a third, and 30 points behind are more than 20.
    rows = {
        **{row_name("clip-i", GENERAL): 30.0, row_name("clip-ita", GENERAL): 60.0},
        **{row_name("clip-i", SPECIFIC): 10.0, row_name("clip-ita", SPECIFIC): 30.0},
    }
    assert held(keeps_more_share("clip-i", GENERAL, SPECIFIC), rows) == [True] * 6
    assert held(keeps_more_points("clip-i", GENERAL, SPECIFIC), rows) == [False] * 6
    assert held(keeps_more_share("clip-i", SPECIFIC, GENERAL), rows) == [False] * 6
    assert held(keeps_more_points("clip-i", SPECIFIC, GENERAL), rows) == [True] * 6
    (finding,) = keeps_more_share("clip-i", GENERAL, SPECIFIC, ("P@1",))(evidence(rows))
    assert finding.detail == "50 % against 33 %"
    nothing = rows | {row_name("clip-ita", SPECIFIC): 0.0}
    assert held(keeps_more_share("clip-i", GENERAL, SPECIFIC, ("P@1",)), nothing) == [None]


def test_gains_are_relative() -> None:
    rows = {
        **{"clip-i-all": 10.0, "clip-ia-all": 11.0},
        **{"clip-i-most-general": 50.0, "clip-ia-most-general": 60.0},
        **{"clip-i-most-specific": 2.0, "clip-ia-most-specific": 3.0},
    }
    check = gains_most("clip-ia", "clip-i", SPECIFIC, ("all", GENERAL), ("P@1",))
    assert held(check, rows) == [True, True]
    assert held(check, rows | {"clip-ia-all": 16.0}) == [False, True]
    assert held(check, rows | {"clip-i-most-general": 0.0}) == [True, None]


def test_errors_by_tree() -> None:
    rows = {
        "all": {"same tree": 7.0, "different tree": 3.0},
        GENERAL: {"same tree": 0.0, "different tree": 0.0},
    }
    assert held(mostly("all", "same tree", "different tree"), rows) == [True]
    assert held(mostly("all", "different tree", "same tree"), rows) == [False]
    assert held(mostly(GENERAL, "different tree", "same tree"), rows) == [None]
    assert held(mostly(SPECIFIC, "different tree", "same tree"), rows) == [None]


def test_errors_by_depth() -> None:
    rows = {SPECIFIC: {"d = -2": 20.0, "d = -1": 60.0, "d = 0": 20.0, "more general": 80.0}}
    assert held(mostly_at(SPECIFIC, -1), rows) == [True]
    assert held(mostly_at(SPECIFIC, 0), rows) == [False]
    (finding,) = mostly_at(SPECIFIC, 0)(evidence(rows))
    assert finding.detail == "20.0 %, d = -1 has 60.0 %"
    assert held(share_above(SPECIFIC, "more general", 80), rows) == [True]
    assert held(share_above(SPECIFIC, "more general", 90), rows) == [False]
    assert held(share_above("all", "more general", 90), rows) == [None]
    assert held(mostly_at("all", -1), rows) == [None]


def test_seen_and_unseen() -> None:
    rows = {"seen-all": 4.0, "unseen-all": 5.0}
    assert held(seen_over_unseen("all"), rows) == [False] * 6
    assert held(seen_over_unseen("all", ("P@1",), "unseen", "seen"), rows) == [True]
    assert held(seen_over_unseen(GENERAL, ("P@1",)), rows) == [None]
    assert held(none_found("unseen-all", ("P@1",)), rows) == [False]
    assert held(none_found("unseen-all", ("P@1",)), rows | {"unseen-all": 0.0}) == [True]
    assert held(none_found("unseen-most-general", ("P@1",)), rows) == [None]


@pytest.mark.parametrize("name", ["cti.table-7.1", "cti.table-7.2", "cti.table-7.3", "cti.figure-7.2"])
def test_every_claim_can_hold_and_fail(name: str) -> None:
    """On numbers of rows that rise and that fall, every claim holds on one of several and fails on one."""
    study = STUDIES.get(name)
    columns = [column.name for column in study.columns]
    rows = [row.name for row in study.rows]
    statuses: dict[str, set[str]] = {claim.name: set() for claim in study.claims}
    printed = {row.config: row.cells for row in study.published[0].rows}
    known = {
        row: {
            column: Figure(printed[row][column].value) for column in columns if column in printed.get(row, {})
        }
        for row in rows
    }
    made = [
        Evidence({row: {c: Figure(1 + 90 * abs(hash_of(row, c, n)) ** 2) for c in columns} for row in rows})
        for n in range(60)
    ]
    rising = {row: dict.fromkeys(columns, Figure(1.0 + place)) for place, row in enumerate(rows)}
    falling = {row: dict.fromkeys(columns, Figure(99.0 - place)) for place, row in enumerate(rows)}
    level = {row: dict.fromkeys(columns, Figure(60.0)) for row in rows}
    for one in (*made, Evidence(known), Evidence(rising), Evidence(falling), Evidence(level)):
        for claim in study.claims:
            statuses[claim.name].add(judge(claim, one).status)
    assert all("fails" in found for found in statuses.values()), statuses
    never = {name for name, found in statuses.items() if "holds" not in found}
    assert never <= {"pictures, conclusion"}, never


def hash_of(row: str, column: str, seed: int) -> float:
    """A share in [0, 1) that is the same in every process."""
    import zlib

    return zlib.crc32(f"{row}|{column}|{seed}".encode()) / 2**32


def test_figures_draw_what_is_there() -> None:
    nothing = Evidence()
    for panels in (model_dots(), tree_bars(), seen_bars(), depth_bars()):
        assert panels.draw(nothing, {}) == []
    (dots,) = model_dots().draw(evidence({"clip-ita-all": 12.5, "bm25-all": 3.25}), {})
    assert "mAP@10, all categories: BM25 3.2; CLIP-ITA 12.5." in dots
    (trees,) = tree_bars().draw(evidence({"all": {"same tree": 3.0, "different tree": 1.0}}), {})
    assert "all categories: 75.0 same tree, 25.0 different tree." in trees
    (seen,) = seen_bars().draw(evidence({"seen-all": 4.0}), {})
    assert "all categories: 4.0 seen." in seen
    depths = {"all": {"d = -6": 25.0, "d = 0": 75.0}}  # a deeper tree than the table has columns for
    (bars,) = depth_bars().draw(evidence(depths), {})
    assert "all categories: d = -6: 25.0 %; d = 0: 75.0 %." in bars
