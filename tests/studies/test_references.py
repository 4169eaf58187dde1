"""References to printed rows."""

from __future__ import annotations

import pytest

from diptych.core.errors import UnknownNameError, UsageError
from diptych.studies.published.references import published_row, target_of

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


@pytest.mark.parametrize("reference", ["reproducibility", "reproducibility:table-2.1", "a::b", ""])
def test_another_form(reference: str) -> None:
    with pytest.raises(UsageError, match=r"is no reference to a printed row .*PAPER:TABLE:ROW"):
        published_row(reference)


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
