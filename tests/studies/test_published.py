"""The papers' numbers as data: complete, readable, and arithmetically what their notes say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from printed_arithmetic import arithmetic_faults

from diptych.core.errors import UnknownNameError
from diptych.studies import STUDIES, published_papers, published_table
from diptych.studies.published import PublishedTable
from diptych.studies.shortcut_rows import MODELS, SETUPS, ifm_candidates, ltd_candidates
from diptych.studies.verdict import Measured, cell_verdict, same_evaluation

NAMES = [
    *(("metric-learning", f"table-{n}") for n in range(1, 5)),
    *(("convse", f"table-{n}") for n in range(1, 5)),
    *(("ltd", f"table-{n}") for n in range(1, 4)),
    *(("svl", f"table-4.{n}") for n in (1, 2)),
    *(("d2s", f"table-3.{n}") for n in range(1, 7)),
    ("d2s", "figure-3.2"),
    *(("reproducibility", f"table-2.{n}") for n in (1, 2)),
    *(("brittleness", f"table-5.{n}") for n in range(1, 5)),
    *(("intent", f"table-6.{n}") for n in range(1, 8)),
    *(("intent", f"figure-6.{n}") for n in range(2, 8)),
    ("intent", "section-6.4.5"),
    *(
        ("intent", f"text-{name}")
        for name in ("table-6.1", "figure-6.3", "table-6.2", "table-6.3", "table-6.4")
    ),
    *(("cti", name) for n in (1, 2, 3) for name in (f"table-7.{n}", f"text-table-7.{n}")),
    ("cti", "figure-7.2"),
]
TABLES = [published_table(*name) for name in NAMES]


def names(table: PublishedTable) -> str:
    return f"{table.paper.key}.{table.name}"


def test_there_are_nine_papers() -> None:
    assert published_papers() == [
        "brittleness",
        "convse",
        "cti",
        "d2s",
        "intent",
        "ltd",
        "metric-learning",
        "reproducibility",
        "svl",
    ]


def test_what_does_not_add_up_is_said() -> None:
    for table in TABLES:
        said = [(row, column) for row, column, _ in table.inconsistent]
        assert arithmetic_faults(table) == said


def test_every_cell_carries_where_it_is_from() -> None:
    for table in TABLES:
        rows = [(row.row, row.on.key) for row in table.rows]  # one that is quoted stands beside several
        assert len(set(rows)) == len(rows)
        for row in table.rows:
            for column, cell in row.cells.items():
                assert column in table.columns
                assert (cell.paper, cell.table, cell.row, cell.column) == (
                    table.paper.key,
                    table.name,
                    row.row,
                    column,
                )
                if table.paper.key == "reproducibility":
                    assert cell.on.images in (1_000, 1_014, 2_856, 2_938, 5_000, 10_210, 29_789)
                elif table.paper.key == "intent":  # of a log, or of nothing that is counted
                    assert (cell.on.images, cell.on.captions) == (0, ())
                    assert set(cell.on.sessions) <= {94_402_590, 95_757_177, 22_982, 6_319}
                elif table.paper.key == "cti":  # of a catalogue
                    assert (cell.on.images, cell.on.captions) == (0, ())
                    assert (cell.on.products, cell.on.categories) == (38_921, (5_471, 34, 4_100))
                else:
                    assert cell.on.images in (1_000, 5_000, 29_000, 113_287, 123_287)
                assert cell.on.captions or table.paper.key in ("intent", "cti")
                assert math.isfinite(cell.value)
                assert cell.value >= 0 or column == "standardised"
                assert (cell.sd is None) == (cell.spread == "none")
                assert cell.tolerance == 0.05


@pytest.mark.parametrize(
    ("paper", "table", "row", "column", "value", "sd"),
    [
        ("metric-learning", "table-1", "1.2", "i2t R@1", 42.4, 0.5),
        ("metric-learning", "table-1", "2.8", "rsum", 382.0, 1.1),
        ("metric-learning", "table-1", "1.6", "i2t mAP@5", 0.73, 0.01),
        ("metric-learning", "table-2", "1.1", "t2i C^0", 1.14, 1.22),
        ("metric-learning", "table-2", "2.6", "i2t C^B", 33.24, 5.39),
        ("metric-learning", "table-3", "2.7", "t2i W^qv-", 0.09, 0.02),
        ("metric-learning", "table-4", "1.8", "t2i C^0", 636.49, 18.65),
        ("convse", "table-1", "ConVSE++, Flickr30K", "i2t R@5", 83.4, 0.72),
        ("convse", "table-2", "d 64", "rsum", 475.4, None),
        ("convse", "table-3", "MVN, MS-COCO", "t2i R@1", 44.9, None),
        ("convse", "table-4", "Dual-path II, Flickr30K", "rsum", 416.2, None),
        ("ltd", "table-1", "2.5.2", "t2i R-precision", 0.24, None),
        ("ltd", "table-2", "3.1.3", "i2t R@1", 58.0, None),
        ("ltd", "table-3", "Ours", "t2i R@10", 71.7, None),
        ("svl", "table-4.1", "F3", "rsum", 436.2, 145.0**0.5),
        ("svl", "table-4.1", "F8", "i2t R@5", 51.8, 0.7**0.5),
        ("svl", "table-4.1", "C8", "rsum", 71.3, 3.6**0.5),
        ("svl", "table-4.2", "F6", "t2i R@5", 68.8, 0.1**0.5),
        ("svl", "table-4.2", "C4", "rsum", 235.5, 43.8**0.5),
        ("d2s", "table-3.1", "C11", "FLOPs", 11.5, None),
        ("d2s", "table-3.1", "STAIR (zero-shot)", "t2i R@5", 56.4, None),
        ("d2s", "table-3.2", "C13", "t2i MRR@10", 83.0, None),
        ("d2s", "table-3.2", "F6", "FLOPs", 213.0, None),
        ("d2s", "table-3.3", "F5", "Semantic@20", 59.8, None),
        ("d2s", "table-3.5", "F8", "ρ-R@5", 72.5, None),
        ("d2s", "table-3.6", "4", "latency @1000", 54.05, None),
        ("d2s", "table-3.6", "5", "latency @100", 600.0, None),
        ("d2s", "figure-3.2", "1e-2", "t2i MRR@10", 58.5, None),
        ("reproducibility", "table-2.1", "Orig. X-VLM, COCO", "t2i R@5", 82.7, None),
        ("reproducibility", "table-2.1", "Repr. X-VLM, COCO", "t2i R@1", 42.79, None),
        ("reproducibility", "table-2.1", "Repr. CLIP, Flickr30k", "i2t R@10", 96.84, None),
        ("reproducibility", "table-2.1", "Orig. CLIP, Flickr30k", "rsum", 540.6, None),
        ("reproducibility", "table-2.2", "X-VLM, Fashion200k", "i2t rsum", 9.84, None),
        ("reproducibility", "table-2.2", "CLIP, ABO", "i2t R@5", 18.96, None),
        ("reproducibility", "table-2.2", "X-VLM, CUB-200", "t2i R@10", 2.45, None),
        ("brittleness", "table-5.1", "MS-COCO", "complement-phrases", 1.56, None),
        ("brittleness", "table-5.1", "Flickr30k-FG", "concept-diversity", 10.68, None),
        ("brittleness", "table-5.2", "GroupViT, Flickr30k-FG", "i2t R@5", 53.88, None),
        ("brittleness", "table-5.2", "CLIP, MS-COCO-FG", "t2i DCG_CM@10", 1.66, None),
        ("brittleness", "table-5.3", "CLIP, Flickr30k-FG", "synonyms", 139.32, None),
        ("brittleness", "table-5.3", "ALIGN, MS-COCO", "shuffle-all-words", 85.78, None),
        ("brittleness", "table-5.4", "CLIP, Flickr30k", "unchanged", 0.6510, None),
        ("intent", "table-6.1", "Logged-in or recognized customers", "total", 6_125_781, None),
        ("intent", "table-6.2", "Other", "non-purchase", 1.05, None),
        ("intent", "table-6.3", "2 devices", "purchasers", 22.23, None),
        ("intent", "table-6.4", "TV", "standardised", -1.25, None),
        ("intent", "table-6.5", "Tablet", "non-purchase %", 0.05, None),
        ("intent", "table-6.6", "PC", "non-purchase count", 312_855, None),
        ("intent", "table-6.7", "switch probability", "baseline", 0, None),
        ("intent", "figure-6.3", "Non-purchase sessions", "difference", 17.11, None),
        ("intent", "figure-6.5", "TV", "to pc", 43.75, None),
        ("intent", "text-table-6.3", "several devices, section 6.4.4", "stated", 45.28, None),
        ("cti", "table-7.1", "CLIP-ITA, all categories", "mAP@5", 20.3, None),
        ("cti", "table-7.1", "MPNet, most general", "P@10", 15.01, None),
        ("cti", "table-7.1", "CLIP-I, most specific", "R-precision", 11.22, None),
        ("cti", "table-7.2", "Total", "same tree", 1_786, None),
        ("cti", "table-7.3", "CLIP-ITA, unseen, all categories", "P@1", 13.3, None),
        ("cti", "figure-7.2", "Most specific", "d = -1", 68, None),
        (
            "cti",
            "text-table-7.1",
            "CLIP-ITA over CLIP-IA, all, P@1, the most, section 7.5.4",
            "stated",
            310,
            None,
        ),
    ],
)
def test_cells_read_by_hand(
    paper: str, table: str, row: str, column: str, value: float, sd: float | None
) -> None:
    found = next(one for one in published_table(paper, table).rows if one.row == row).cells[column]
    assert (found.value, found.sd) == (value, sd)


def test_what_cannot_be_read_is_absent_and_said() -> None:
    table = published_table("metric-learning", "table-3")
    mangled = [row for row in table.rows if row.on.dataset == "flickr30k"]
    assert [row.row for row in mangled] == ["1.3", "1.7"]
    assert all(not row.cells for row in mangled)
    assert any("mangled" in note for note in table.notes)
    # "-": the paper prints no R-precision for captions asking for one image.
    assert "t2i R-precision" not in published_table("ltd", "table-1").rows[0].cells


@pytest.mark.parametrize("name", [("convse", "table-1")])
def test_runs_behind_a_mean_are_kept(name: tuple[str, str]) -> None:
    for row in published_table(*name).rows:
        assert len(row.each) == 5
        assert all(list(run) == list(row.cells) for run in row.each)


def test_an_altered_cell_is_found() -> None:
    """The arithmetic can fail: one wrong digit in any recall of a row with a sum is noticed."""
    table = published_table("convse", "table-3")
    row = table.rows[0]
    for column in ("i2t R@1", "t2i R@10"):
        cell = row.cells[column]
        wrong = replace(row, cells={**row.cells, column: replace(cell, value=cell.value + 1)})
        assert arithmetic_faults(replace(table, rows=(wrong,))) == [(row.row, "rsum")]


def test_unknown_names_list_those_there_are() -> None:
    with pytest.raises(
        UnknownNameError,
        match="known: brittleness, convse, cti, d2s, intent, ltd, metric-learning, reproducibility",
    ):
        published_table("nobody", "table-1")
    with pytest.raises(UnknownNameError, match="table-1"):
        published_table("ltd", "table-9")


def test_every_printed_row_has_a_row_that_trains_it_and_the_other_way_round() -> None:
    trained = {(study.paper.key, row.name) for study in STUDIES for row in (*study.rows, *study.bases)}
    printed = {(table.paper.key, row.config) for table in TABLES for row in table.rows if row.config}
    assert printed <= trained
    extra = {(study.paper.key, row.name) for study in STUDIES for row in study.rows if row.extra}
    only_drawn = {("ltd", f"ltd-eta-{eta}") for eta in (0.05, 0.1, 0.3)}
    drawn = [setup for setup, (_, _, why) in SETUPS.items() if setup not in ("none", "unique") and not why]
    only_drawn |= {("svl", f"{model}-{setup}") for model in MODELS for setup in drawn}
    # Of a grid, the table prints the best.
    not_chosen = {
        ("svl", row)
        for model in MODELS
        for setup in ("none", "unique")
        for row in (*ltd_candidates(model, setup), *ifm_candidates(model, setup))
    }
    starts = {("svl", "pretrained")}
    assert trained - printed - not_chosen == extra | only_drawn | starts


def test_a_printed_bound_is_a_bound() -> None:
    row = next(row for row in published_table("d2s", "table-3.6").rows if row.row == "5")
    rate, latency = row.cells["throughput @10"], row.cells["latency @10"]
    assert (rate.bound, rate.value) == ("<", 1.0)
    assert (latency.bound, latency.value) == (">", 300.0)
    assert (rate.within(0.4), rate.within(1.0), latency.within(900.0)) == (True, False, True)
    assert not row.cells["FLOPs"].within(0.0)
    assert cell_verdict([0.4], rate) == cell_verdict([2000.0], latency) == "reproduced"
    assert cell_verdict([1.5], rate) == cell_verdict([200.0], latency) == "not reproduced"


def test_a_row_that_is_quoted_stands_beside_every_encoder() -> None:
    rows = [row for row in published_table("d2s", "table-3.1").rows if row.row == "LexLIP (14.3M)"]
    assert [row.on.key for row in rows] == ["coco-blip", "coco-albef", "flickr30k-blip", "flickr30k-albef"]
    assert [row.cells["t2i R@1"].value for row in rows] == [53.2, 53.2, 78.4, 78.4]
    assert {row.on.encoder for row in rows} == {"BLIP", "ALBEF"}
    assert "rows of BLIP" in rows[0].on.describe()


def test_a_wrong_digit_of_a_directions_sum_is_found() -> None:
    table = published_table("reproducibility", "table-2.2")
    row = table.rows[2]
    cell = row.cells["t2i R@5"]
    wrong = replace(row, cells={**row.cells, "t2i R@5": replace(cell, value=cell.value + 0.1)})
    assert arithmetic_faults(replace(table, rows=(wrong,))) == [(row.row, "t2i rsum"), (row.row, "rsum")]


def test_an_evaluation_says_who_made_it_and_what_was_re_ranked() -> None:
    rows = {row.row: row.on for row in published_table("reproducibility", "table-2.1").rows}
    assert {on.by for on in rows.values()} == {"original", "thesis"}
    assert rows["Orig. X-VLM, COCO"].reranked == (256,)
    clip, x_vlm = (rows[f"Repr. {model}, Flickr30k"] for model in ("CLIP", "X-VLM"))
    assert "1,014 captions, full, the first of each image" in clip.describe()
    assert "5,000 captions, full, 2 or 4 candidates re-ranked" in x_vlm.describe()
    measured = Measured("flickr30k", "test", 1_000, 5_000, reranked=128)
    assert same_evaluation(measured, rows["Orig. X-VLM, Flickr30k"]) == []
    assert same_evaluation(measured, x_vlm) == ["128 candidates re-ranked, not 2 or 4"]
    assert same_evaluation(measured, rows["Orig. CLIP, Flickr30k"]) == ["128 candidates re-ranked, not none"]
    first = replace(measured, captions=1_000, chosen="first", reranked=0)
    assert same_evaluation(first, clip) == [
        "split test, not val",
        "1,000 images, not 1,014",
        "1,000 captions, not 1,014",
    ]


@pytest.mark.parametrize(
    ("table", "row", "column", "value", "wrong"),
    [
        ("table-3.1", "C11", "t2i MRR@10", 72.0, True),  # 51.8 + 27.5 / 2 + 20.7 / 6 = 69.0
        ("table-3.1", "C11", "t2i MRR@10", 69.0, False),
        ("table-3.1", "C11", "t2i MRR@10", 57.0, True),  # 51.8 + 27.5 / 5 = 57.3
        ("table-3.6", "3", "latency @10", 2.5, True),
        ("table-3.6", "3", "latency @10", 2.22, False),
    ],
)
def test_reciprocals_that_cannot_be_are_found(
    table: str, row: str, column: str, value: float, wrong: bool
) -> None:
    whole = published_table("d2s", table)
    found = next(one for one in whole.rows if one.row == row)
    changed = replace(found, cells={**found.cells, column: replace(found.cells[column], value=value)})
    faults = arithmetic_faults(replace(whole, rows=(changed,)))
    assert ((row, column) in faults) is wrong


def test_columns_of_a_study_are_those_printed() -> None:
    for study in STUDIES:
        assert hasattr(study, "columns")
        columns = [column.name for column in study.columns]
        printed = set(study.published[0].columns)  # type: ignore[attr-defined]
        if study.name == "ltd.figure-2":  # type: ignore[attr-defined]
            assert printed - set(columns) == {"i2t R-precision", "t2i R-precision"}
        elif study.name == "svl.figure-4.5":  # type: ignore[attr-defined]
            assert printed & set(columns) == {"rsum"}
        elif study.name == "svl.information":  # type: ignore[attr-defined]
            assert not printed  # it is ours
        elif study.name == "intent.table-6.1":  # type: ignore[attr-defined]
            assert printed - set(columns) == {"text"}  # the same counts as the text has them
        elif study.paper.key in ("svl", "d2s", "intent", "cti"):  # type: ignore[attr-defined]
            # Candidates are chosen by what the tables do not print; terms are counted and recall is told; so is how
            # many of the queries are different ones.
            assert printed <= set(columns)
        else:
            assert printed == set(columns)
