"""The papers' numbers as data: complete, readable, arithmetically what their notes say, and targets."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from printed_arithmetic import arithmetic_faults

from diptych.cli.analyse import other_data, published_row, retrieval_cells, target_of
from diptych.core.errors import UnknownNameError, UsageError
from diptych.evaluation.printed.digits import read_digits
from diptych.studies import STUDIES, published, published_papers, published_table
from diptych.studies import study as studies_of
from diptych.studies.published import Measured, cell_verdict, published_tables, same_evaluation


def test_a_bad_paper_of_a_plug_in_is_named_and_left_out(tmp_path, monkeypatch, caplog):
    (tmp_path / "more_papers").mkdir()
    (tmp_path / "more_papers" / "__init__.py").touch()
    (tmp_path / "more_papers" / "faulty.toml").write_text("[studies.table-1]\nasks = 'x'\n")
    for name, entry in (("faulty", "faulty"), ("second", "ltd")):
        folder = tmp_path / f"of_{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: of_{name}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[diptych.papers]\n{entry} = more_papers\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(vars(studies_of), "STUDIES")
    monkeypatch.setattr(published, "_FILES", dict(published._FILES))
    published.published_papers.cache_clear()
    try:
        assert studies_of.STUDIES.names() == STUDIES.names()
    finally:
        published.published_papers.cache_clear()
    assert len(caplog.messages) == 2
    for name, why in (("second", "there is a paper 'ltd' already"), ("faulty", "KeyError: 'rows'")):
        assert any(f"plug-in of of_{name} is left out" in one and why in one for one in caplog.messages)


SIZES = {
    **{"metric-learning": 4, "convse": 4, "ltd": 4, "svl": 3, "d2s": 7, "reproducibility": 2},
    **{"brittleness": 4, "intent": 19, "cti": 7},
}
TABLES = [published_table(paper, name) for paper in SIZES for name in published_tables(paper)]


def test_every_cell_carries_where_it_is_from_and_what_does_not_add_up_is_noted():
    assert {paper: len(list(published_tables(paper))) for paper in SIZES} == SIZES
    for table in TABLES:
        assert arithmetic_faults(table) == [(row, column) for row, column, _ in table.inconsistent]
        rows = [(row.row, row.on.key) for row in table.rows]  # one that is quoted belongs to several
        assert len(set(rows)) == len(rows)
        for row in table.rows:
            for column, cell in row.cells.items():
                assert column in table.columns
                assert row.where == f"{table.paper.key} {table.name}, row {row.row}"
                assert cell.name == f"{row.row} {column}"
                # of a log or a catalogue there are no images
                assert bool(row.on.images and row.on.captions) == (table.paper.key not in ("intent", "cti"))
                assert math.isfinite(cell.value)
                assert cell.value >= 0 or column == "standardised"
                assert (cell.sd is None) == (cell.spread == "none")
                assert cell.tolerance == 0.05


LONG = "non-purchase sessions of three days less those of four, section 6.4.2"


def test_an_altered_cell_is_found():
    """The arithmetic can fail: one wrong digit is noticed."""
    for table, row, column, change, fault in [
        ("convse table-3", 0, "i2t R@1", 1, "rsum"),
        ("convse table-3", 0, "t2i R@10", 1, "rsum"),
        ("cti table-7.2", "Total", "different tree", 2, "different tree"),
        ("cti text-table-7.3", 2, "stated", 2, "stated"),
        ("intent table-6.1", "Queries", "total", 1, "total"),
        ("intent table-6.2", "Paid", "standardised", 0.5, "standardised"),
        ("intent table-6.5", "Smartphone", "purchase per session", 1.0, "purchase per session"),
        ("intent table-6.6", "Tablet", "non-purchase %", 0.02, "non-purchase %"),
        ("intent text-figure-6.3", LONG, "stated", 0.1, "stated"),
    ]:
        whole = published_table(*table.split())
        (given,) = (one for place, one in enumerate(whole.rows) if row in (one.row, place))
        cell = given.cells[column]
        wrong = replace(given, cells={**given.cells, column: replace(cell, value=cell.value + change)})
        rows = tuple(wrong if one is given else one for one in whole.rows)
        assert (given.row, fault) not in arithmetic_faults(whole)
        assert (given.row, fault) in arithmetic_faults(replace(whole, rows=rows))


def test_every_printed_row_has_a_row_that_trains_it_and_the_other_way_round():
    """Beyond what is printed a study has what it says is extra, the points of a figure, and grids to choose from."""
    trained = {(study.paper.key, row.name) for study in STUDIES for row in (*study.rows, *study.bases)}
    printed = {(table.paper.key, row.config) for table in TABLES for row in table.rows if row.config}
    assert printed <= trained
    for study in [one for one in STUDIES if not one.ours]:
        others = {
            row.name for row in study.rows if not row.extra and (study.paper.key, row.name) not in printed
        }
        grid = {name for name in others if study.paper.key == "svl" and re.search(r"-(ltd|ifm)-", name)}
        assert others == grid or ".figure-" in study.name, study.name


def test_a_printed_bound_is_a_bound():
    row = next(row for row in published_table("d2s", "table-3.6").rows if row.row == "5")
    rate, latency = row.cells["throughput @10"], row.cells["latency @10"]
    assert (rate.bound, rate.value) == ("<", 1.0)
    assert (latency.bound, latency.value) == (">", 300.0)
    assert (rate.within(0.4), rate.within(1.0), latency.within(900.0)) == (True, False, True)
    assert not row.cells["FLOPs"].within(0.0)
    assert cell_verdict([0.4], rate) == cell_verdict([2000.0], latency) == "reproduced"
    assert cell_verdict([1.5], rate) == cell_verdict([200.0], latency) == "not reproduced"


def test_a_row_that_is_quoted_stands_beside_every_encoder():
    rows = [row for row in published_table("d2s", "table-3.1").rows if row.row == "LexLIP (14.3M)"]
    assert [row.on.key for row in rows] == ["coco-blip", "coco-albef", "flickr30k-blip", "flickr30k-albef"]
    assert [row.cells["t2i R@1"].value for row in rows] == [53.2, 53.2, 78.4, 78.4]
    assert {row.on.encoder for row in rows} == {"BLIP", "ALBEF"}
    assert "rows of BLIP" in rows[0].on.describe()


def test_an_evaluation_says_who_made_it_and_what_was_re_ranked():
    rows = {row.row: row.on for row in published_table("reproducibility", "table-2.1").rows}
    assert {on.by for on in rows.values()} == {"original", "thesis"}
    assert rows["Orig. X-VLM, COCO"].reranked == 256
    clip, x_vlm = (rows[f"Repr. {model}, Flickr30k"] for model in ("CLIP", "X-VLM"))
    assert "1,014 captions, full, the first of each image" in clip.describe()
    assert "5,000 captions, full, 2 or 4 candidates re-ranked" in x_vlm.describe()
    measured = Measured("flickr30k", "test", 1_000, 5_000, reranked=128)
    assert same_evaluation(measured, rows["Orig. X-VLM, Flickr30k"]) == []
    assert same_evaluation(measured, x_vlm) == ["128 candidates re-ranked, not 2 or 4"]


CLIP = "reproducibility:table-2.1:Repr. CLIP, Flickr30k"


def test_rows_are_named_as_printed_and_their_retrieval_columns_are_targets():
    row = published_row(CLIP)
    assert (
        published_row(CLIP.replace("reproducibility:table-2.1", "Reproducibility:TABLE-2.1").lower()) is row
    )
    target, left = target_of(row)
    recalls = [f"{way} R@{k}" for way in ("t2i", "i2t") for k in (1, 5, 10)]
    digits = ["74.95", "93.09", "96.15", "77.02", "94.18", "96.84", "264.19", "268.04", "532.23"]
    names = [*recalls, "t2i rsum", "i2t rsum", "rsum"]
    assert target.to_dict() == dict(zip(names, digits, strict=True))
    assert target.label == "reproducibility table-2.1, row Repr. CLIP, Flickr30k"
    assert not left
    assert row.on.images == 1_014
    target, left = target_of(published_row("d2s:table-3.1:C9"))
    assert (list(target.cells), left) == (["t2i R@1", "t2i R@5", "t2i MRR@10"], ("FLOPs",))
    assert str(target.cells["t2i MRR@10"]) == "61.4"  # in per cent already
    row = published_row("d2s:table-3.1:cots (5.3M)@COCO-albef")  # of several evaluations
    assert (row.on.key, row.cells["t2i R@1"].value) == ("coco-albef", 50.5)


def test_a_reference_to_nothing_says_what_there_is():
    for reference, message in [
        ("", r"names no paper .*PAPER:TABLE:ROW.*papers: brittleness, convse, cti, d2s"),
        ("ltd", r"'ltd' names no table .*tables of ltd: table-1, table-2, table-3"),
        ("ltd:", r"'ltd:' names no table"),
        ("reproducibility:table-2.1", r"names no row .*rows of .*Repr\. X-VLM, COCO \(X-VLM\)"),
        ("reproducibility:table-2.1:", "names no row"),
        ("d2s:table-3.6", r"1 \(Dense .*\) \[no measure of retrieval\]"),
        ("reproducability:table-2.1:x", "unknown published paper 'reproducability'"),
        ("reproducibility:table-9:x", r"unknown .*table-2\.1"),
        ("reproducibility:table-2.1:CLIP", "unknown .*Repr. CLIP, COCO"),
        ("d2s:table-3.1:COTS (5.3M)@cxc", r"unknown evaluation .* 'cxc'"),
        ("d2s:table-3.1:COTS (5.3M)", r"4 evaluations: coco-blip, coco-albef, .*@coco-blip"),
    ]:
        error = UnknownNameError if message.startswith("unknown") else UsageError
        with pytest.raises(error, match=message):
            published_row(reference)


def test_every_row_that_prints_retrieval_is_a_target():
    for table in [f"{paper}:{table}" for paper in published_papers() for table in published_tables(paper)]:
        for row in published_table(*table.split(":")).rows:
            assert published_row(f"{table}:{row.row}@{row.on.key}") is row
            if not retrieval_cells(row):
                continue
            target, _ = target_of(row)
            for name, cell in target.cells.items():
                printed = row.cells[name].value
                # A precision that is a fraction of 1 in print is in per cent here.
                assert cell.value == pytest.approx(printed) or cell.value == pytest.approx(100 * printed)
            read_digits(target)


def test_measures_with_other_digits_and_means_over_runs():
    """metric-learning table 1 prints recalls with one digit and mAP@5, a fraction of 1, with two; means of five."""
    target, left = target_of(published_row("metric-learning:table-1:1.1"))
    i2t = {"i2t R@1": "30.8", "i2t R@5": "62.6", "i2t R@10": "74.1", "i2t mAP@5": "41"}
    t2i = {"t2i R@1": "23.4", "t2i R@5": "52.8", "t2i R@10": "65.7"}
    assert target.to_dict() == {**i2t, **t2i, "rsum": "309.4"}
    assert left == ("i2t average recall", "t2i average recall")
    ltd, _ = target_of(published_row("ltd:table-1:1.1"))
    assert (str(ltd.cells["i2t R@1"]), str(ltd.cells["i2t R-precision"])) == ("45.0", "34")
    assert read_digits(target).sentences() == [
        "These are means of 5 runs: of how many queries they are shares, their digits do not say."
    ]


ON = published_row(CLIP).on


def about(dataset, split="test"):
    return {"dataset": dataset, "split": split}


def test_other_data_is_pointed_out():
    for given, said in [
        ({"test": (about("flickr30k", "val"), 1_014)}, []),
        ({"test": (about("Flickr30K"), 1_000), "val": (about("f30k"), 1_014)}, []),
        (
            {"test": (about("flickr8k"), 1_000)},
            ["OTHER DATA: printed of flickr30k val (1,014 images), computed from flickr8k test"],
        ),
        ({"test": (about("my-own"), 1_014)}, ["OTHER DATA"]),
        ({"test": (about("flickr30k_karpathy"), 1_000)}, ["Printed of 1,014 images; given are 1,000 (test)"]),
    ]:
        found = other_data(ON, given)
        assert [line[: len(start)] for line, start in zip(found, said, strict=True)] == said
