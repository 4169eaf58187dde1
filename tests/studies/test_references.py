"""References to printed rows."""

from __future__ import annotations

import pytest

from diptych.core.errors import UnknownNameError, UsageError
from diptych.evaluation.printed import read_digits
from diptych.studies.published import published_papers, published_tables
from diptych.studies.published.references import (
    other_data,
    published_row,
    row_references,
    target_of,
)

CLIP = "reproducibility:table-2.1:Repr. CLIP, Flickr30k"


def test_a_row_of_the_thesis() -> None:
    row = published_row(CLIP)
    target, left = target_of(row)
    assert target.to_dict() == {
        "t2i R@1": "74.95",
        "t2i R@5": "93.09",
        "t2i R@10": "96.15",
        "i2t R@1": "77.02",
        "i2t R@5": "94.18",
        "i2t R@10": "96.84",
        "t2i rsum": "264.19",
        "i2t rsum": "268.04",
        "rsum": "532.23",
    }
    assert target.label == "reproducibility table-2.1, row Repr. CLIP, Flickr30k"
    assert not left
    assert row.on.images == 1_014


def test_zeros_at_the_end_of_all_cells_are_no_digits() -> None:
    """The thesis prints the originals' one decimal as two: 37.80."""
    target, _ = target_of(published_row("reproducibility:table-2.1:Orig. CLIP, COCO"))
    assert str(target.cells["t2i R@1"]) == "37.8"


def test_other_columns_are_left_out_and_named() -> None:
    target, left = target_of(published_row("d2s:table-3.1:C9"))
    assert list(target.cells) == ["t2i R@1", "t2i R@5", "t2i MRR@10"]
    assert left == ("FLOPs",)


def test_a_row_of_several_evaluations_needs_one() -> None:
    with pytest.raises(UsageError, match=r"4 evaluations: coco-blip, coco-albef, .*@coco-blip"):
        published_row("d2s:table-3.1:COTS (5.3M)")
    row = published_row("d2s:table-3.1:COTS (5.3M)@coco-albef")
    assert (row.on.key, row.cells["t2i R@1"].value) == ("coco-albef", 50.5)
    with pytest.raises(UnknownNameError, match=r"unknown evaluation .* 'cxc'"):
        published_row("d2s:table-3.1:COTS (5.3M)@cxc")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("", r"names no paper .*PAPER:TABLE:ROW.*papers: brittleness, convse, cti, d2s"),
        ("ltd", r"'ltd' names no table .*tables of ltd: table-1, table-2, table-3"),
        ("ltd:", r"'ltd:' names no table"),
        ("reproducibility:table-2.1", r"names no row .*rows of .*Repr\. X-VLM, COCO \(X-VLM\)"),
        ("reproducibility:table-2.1:", "names no row"),
        ("d2s:table-3.6", r"1 \(Dense .*\) \[no measure of retrieval\]"),
    ],
)
def test_a_part_of_a_reference_says_what_could_follow(reference: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        published_row(reference)


def test_upper_and_lower_case_are_the_same() -> None:
    row = published_row("Reproducibility:TABLE-2.1:repr. x-vlm, flickr30K")
    assert row is published_row("reproducibility:table-2.1:Repr. X-VLM, Flickr30k")
    assert published_row("d2s:table-3.1:cots (5.3m)@COCO-BLIP").on.key == "coco-blip"


@pytest.mark.parametrize(
    "table", [f"{paper}:{table}" for paper in published_papers() for table in published_tables(paper)]
)
def test_every_row_that_prints_retrieval_is_a_target(table: str) -> None:
    for reference, row in row_references(*table.split(":")):
        assert published_row(reference) is row
        target, _ = target_of(row)
        for name, cell in target.cells.items():
            printed = row.cells[name].value
            # A precision that is a fraction of 1 in print is in per cent here.
            assert cell.value == pytest.approx(printed) or cell.value == pytest.approx(100 * printed)
        read_digits(target)


def test_measures_with_other_digits_lend_them_to_nobody() -> None:
    """metric-learning table 1 prints recalls with one digit and mAP@5, a fraction of 1, with two."""
    target, left = target_of(published_row("metric-learning:table-1:1.1"))
    assert target.to_dict() == {
        "i2t R@1": "30.8",
        "i2t R@5": "62.6",
        "i2t R@10": "74.1",
        "i2t mAP@5": "41",
        "t2i R@1": "23.4",
        "t2i R@5": "52.8",
        "t2i R@10": "65.7",
        "rsum": "309.4",
    }
    assert left == ("i2t average recall", "t2i average recall")
    ltd, _ = target_of(published_row("ltd:table-1:1.1"))
    assert (str(ltd.cells["i2t R@1"]), str(ltd.cells["i2t R-precision"])) == ("45.0", "34")
    mrr, _ = target_of(published_row("d2s:table-3.1:C9"))
    assert str(mrr.cells["t2i MRR@10"]) == "61.4"  # in per cent already


def test_means_over_runs_say_nothing_of_queries() -> None:
    """309.4 is a mean of five runs: its recalls are shares of no number of queries."""
    target, _ = target_of(published_row("metric-learning:table-1:1.1"))
    said = read_digits(target).sentences()
    assert said == [
        "These are means of 5 runs: of how many queries they are shares, their digits do not say."
    ]


ON = published_row(CLIP).on


def about(dataset: str, split: str = "test") -> dict[str, str]:
    return {"dataset": dataset, "split": split}


def test_other_data_is_pointed_out() -> None:
    assert other_data(ON, {"test": (about("flickr30k", "val"), 1_014)}) == ()
    (said,) = other_data(ON, {"test": (about("flickr8k"), 1_000)})
    assert said.startswith("OTHER DATA: printed of flickr30k val (1,014 images), computed from flickr8k test")
    (said,) = other_data(ON, {"test": (about("my-own"), 1_014)})
    assert said.startswith("OTHER DATA")
    (said,) = other_data(ON, {"test": (about("flickr30k_karpathy"), 1_000)})
    assert said.startswith("Printed of 1,014 images; given are 1,000 (test)")
    assert other_data(ON, {"test": (about("Flickr30K"), 1_000), "val": (about("f30k"), 1_014)}) == ()


def test_unknown_names_list_the_known() -> None:
    with pytest.raises(UnknownNameError, match="unknown published paper 'reproducability'"):
        published_row("reproducability:table-2.1:x")
    with pytest.raises(UnknownNameError, match=r"table-2\.1"):
        published_row("reproducibility:table-9:x")
    with pytest.raises(UnknownNameError, match="Repr. CLIP, COCO"):
        published_row("reproducibility:table-2.1:CLIP")


def test_a_row_without_a_measure_of_retrieval() -> None:
    from diptych.studies.published import published_table

    rows = [row for row in published_table("d2s", "table-3.3").rows if row.cells]
    with pytest.raises(UsageError, match="prints no measure of retrieval"):
        target_of(rows[0])
