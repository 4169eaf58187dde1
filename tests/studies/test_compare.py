"""Published beside measured: verdicts only on the same thing, an honest label on everything else; pages and JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from diptych.studies import STUDIES, Claim, Entry, Measurement, Results, compare, published_table
from diptych.studies.page import (
    PLANTED,
    STATUSES,
    claims_tables,
    compared_tables,
    content_of,
    matrix_page,
    matrix_table,
    study_page,
)
from diptych.studies.published import Measured
from diptych.studies.study import PUBLISHED

FLICKR30K = Measured("flickr30k", "test", 1_000, 5_000)
TABLE_1 = STUDIES.get("metric-learning.table-1")


def made_up(study, on=FLICKR30K, seeds=2, column=None, **about):
    """Return results that are the printed numbers of Flickr30k, seeds 0.2 apart."""
    entries = []
    for row in study.published[0].rows:
        if row.config is None or row.on.dataset != "flickr30k":
            continue
        for seed in range(seeds):
            values = {name: cell.value + 0.2 * seed for name, cell in row.cells.items()}
            if "i2t mAP@5" in values:
                values["i2t mAP@5" + PUBLISHED] = row.cells["i2t mAP@5"].value
                values["i2t mAP@5"] = values["i2t mAP@5"] / 2
            measurement = Measurement(values, on, "the protocol <line>", ("diptych evaluate {run}",))
            run, data = f"out/{row.config}/seed-{seed}", f"{on.dataset}: all of it"
            made = {"setting": "paper", "key": "key", "epochs": (30, 20), "cpu_seconds": 60.0, **about}
            entries.append(
                Entry(study.name, row.config, seed, measurements=(measurement,), run=run, data=data, **made)
            )
    return Results(study.name, tuple(entries))


def statuses(study, results):
    return {claim.name: judgement.status for claim, judgement, _ in compare(study, results).claims}


def test_the_papers_own_numbers_are_reproduced():
    comparison = compare(TABLE_1, made_up(TABLE_1))
    assert comparison.reproduces
    assert comparison.label.startswith("A reproduction: on flickr30k: all of it, as the setting 'paper' says")
    assert comparison.counts() == {"reproduced": 8 * 10}
    assert "protocol: the protocol <line>" in str(comparison)
    (block,) = comparison.blocks
    assert [row.printed.row for row in block.rows if row.printed] == [f"1.{n}" for n in range(1, 9)]
    first = block.rows[0]
    assert (first.seeds, first.cpu_seconds) == ((0, 1), 120.0)
    assert first.commands == ("diptych evaluate out/vsepp-triplet/seed-0",)
    precision = next(cell for cell in first.cells if cell.column == "i2t mAP@5")
    assert precision.measured is not None
    assert precision.right is not None
    # counted as printed; the plain one stands beside it
    assert (precision.measured.mean, precision.right.mean) == pytest.approx((0.41, (0.41 + 0.61) / 4))


def test_anything_else_is_never_a_reproduction():
    for results, verdict, said in [
        ({"on": replace(FLICKR30K, dataset="flickr8k")}, "other data", "dataset flickr8k, not flickr30k"),
        ({"on": replace(FLICKR30K, images=500)}, "other data", "500 images, not 1,000"),
        ({"on": replace(FLICKR30K, split="val")}, "other data", "split val, not test"),
        ({"setting": "data"}, "other training", ""),
        ({"changed": ("stages.0.epochs",)}, "other training", ""),
        ({"stands_for": "a small one"}, "other training", ""),
    ]:
        given = made_up(TABLE_1, **results)
        comparison = compare(TABLE_1, given)
        assert not comparison.reproduces
        assert comparison.label.startswith("Not a reproduction: ")
        assert comparison.counts() == {}
        cells = [cell for row in comparison.blocks[0].rows for cell in row.cells]
        assert {cell.verdict for cell in cells} == {verdict}
        assert comparison.blocks[0].differences == ((said,) if said else ())
        page = study_page(comparison).html()
        assert "Not a reproduction" in page
        assert "Cells have no verdict" in page
        assert "✓ within 5 %" not in page
        assert "cells reproduced" not in page
        # Claims are judged on whatever data there is.
        assert "not tested" not in statuses(TABLE_1, given).values()


def test_the_label_says_what_the_numbers_are():
    """Weights that a user gives get verdicts, and are named; a changed training gets none."""
    for about, begins, ends in (
        ({}, "A reproduction: on flickr30k", ")."),
        ({"given": "w (fingerprint 0123)"}, "A reproduction: on", "taken for what they were given as."),
        ({"changed": ("b", "a")}, "Not a reproduction: on", "for orientation, and only claims are judged."),
    ):
        comparison = compare(TABLE_1, made_up(TABLE_1, **about))
        assert comparison.label.startswith(begins)
        assert comparison.label.endswith(ends)
        assert ("with what was given: w (fingerprint 0123)" in comparison.label) is ("given" in about)
        assert ("with changes of a, b" in comparison.label) is ("changed" in about)
        assert comparison.counts() == ({} if "changed" in about else {"reproduced": 80})


def test_a_stand_in_is_named_and_tests_no_claim_about_what_it_stands_for():
    about = Claim("about", "VSE++ wins", about=("vsepp-triplet",), checks=("[vsepp-triplet: rsum] > 1",))
    study = replace(TABLE_1, claims=(about, replace(about, name="of ours", about=())))
    entries = [
        replace(one, stands_for="a network in small") if one.row == "vsepp-triplet" else one
        for one in made_up(study).entries
    ]
    comparison = compare(study, Results(study.name, tuple(entries)))
    assert "with stand-ins: a network in small for VSE++, Triplet loss" in comparison.label
    first, *others = comparison.blocks[0].rows
    assert first.name == "a network in small"
    assert {cell.verdict for cell in first.cells} == {"other training"}
    assert {cell.verdict for row in others for cell in row.cells} == {"reproduced"}
    assert [judgement.status for _, judgement, _ in comparison.claims] == ["not tested", "holds"]


def test_a_row_that_the_paper_quotes_stands_beside_ours():
    """Table 3 of LTD holds its own row against what VSE++'s authors print, on the same images."""
    for dataset, r_at_1, status in [
        ("coco", 41.3, "holds"),
        ("coco", 38.9, "undecided"),
        ("coco", 55.0, "fails"),
        ("f8k", 41.3, "not tested"),
    ]:
        study = STUDIES.get("ltd.table-3")
        values = {name: cell.value for name, cell in study.published[0].rows[0].cells.items()}
        on = Measured(dataset, "test", 5_000, 25_010)
        measured = Measurement({**values, "i2t R@1": r_at_1}, on, "protocol")
        entry = Entry(study.name, "vsepp-like", 0, "paper", (measured,), "k", "run", dataset, (45, 40), 1.0)
        assert list(statuses(study, Results(study.name, (entry,))).values()) == [status]


def test_rows_that_were_not_run_say_why():
    all_of_it = made_up(TABLE_1)
    vsepp = tuple(entry for entry in all_of_it.entries if entry.row.startswith("vsepp"))
    some = Results(TABLE_1.name, vsepp, {"vsrn-triplet": "needs region features"})
    rows = {row.row.name: row for row in compare(TABLE_1, some).blocks[0].rows}
    assert rows["vsrn-triplet"].why == "needs region features"
    assert rows["vsrn-smoothap"].why == "not run"
    assert {cell.verdict for cell in rows["vsrn-smoothap"].cells} == {"not run"}
    first = next(judgement for claim, judgement, _ in compare(TABLE_1, some).claims if claim.name == "(1)")
    assert (first.status, len(first.findings), first.count("not tested")) == ("not tested", 42, 21)


def test_further_judgements_have_a_table_of_their_own():
    study = STUDIES.get("ltd.table-1")
    coco = Measured("coco", "test", 5_000, 25_010)
    values = dict.fromkeys(study.published[0].columns, 40.0)
    own = Measurement(values, coco, "protocol")
    by_cxc = Measurement({**values, "i2t R@1": 35.5}, replace(coco, positives="cxc"), "protocol")

    def entry(*measurements):
        return Entry(study.name, "baseline", 0, "paper", measurements, "k", "run", "coco", (60, 60), 1.0)

    comparison = compare(study, Results(study.name, (entry(own, by_cxc),)))
    assert [block.on.key for block in comparison.blocks] == ["coco", "cxc"]
    row = comparison.blocks[1].rows[0]
    assert row.printed is not None
    assert (row.printed.row, row.cells[0].verdict) == ("2.1.2", "reproduced")  # 35.4 is printed
    without = compare(study, Results(study.name, (entry(own),)))
    assert without.blocks[1].rows[0].why == "needs --positives cxc:PATH"


# Pages -------------------------------------------------------------------------------------------------


def test_the_page_shows_both_tables_the_claims_and_the_commands():
    comparison = compare(TABLE_1, made_up(TABLE_1))
    page = study_page(comparison, "diptych study run metric-learning.table-1 --data f30k").html()
    (table,) = compared_tables(comparison)
    cells = {row[0].text: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert len(cells) == 2 * 8  # a second line each: what the paper counts otherwise
    cell = cells["1.1  VSE++, Triplet loss"]["i2t R@1"]
    assert (cell.text, cell.note, cell.colour) == ("30.9±0.1", "30.8±0.7 ✓", "right")
    right = cells["1.1  VSE++, Triplet loss, rightly counted"]
    assert [name for name, one in right.items() if one.text] == ["row", "i2t mAP@5"]
    claims = claims_tables(comparison.claims)[0]
    assert [row[0].text for row in claims.rows] == [claim.name for claim in TABLE_1.claims]
    words = {"holds": "✓ holds", "fails": "✗ fails", "undecided": "? undecided", "not tested": "· not tested"}
    assert [row[2].text for row in claims.rows] == [words[one.status] for _, one, _ in comparison.claims]
    assert "80 of 80" in page
    assert "diptych study run metric-learning.table-1 --data f30k" in page
    assert "diptych evaluate out/vsrn-smoothap/seed-0" in page
    assert "the protocol &lt;line&gt;" in page  # other people's text is escaped
    assert page.count("<svg") == 1
    assert "does not add up" in page  # row 2.7
    for claim in TABLE_1.claims:
        assert escape(claim.text) in page
    assert not re.search(r"""(src|href)=["']https?:""", page)


def test_what_generated_data_says_of_claims_is_no_headline():
    names = ["cells reproduced", "claims that hold"]
    for setting, left in (("paper", names), ("data", names[1:]), ("quick", [])):
        comparison = compare(TABLE_1, made_up(TABLE_1, setting=setting))
        page = study_page(comparison)
        assert [one.label for one in page.headlines] == left
        assert (PLANTED in page.html()) is ("holds (planted)" in page.html()) is (setting == "quick")
        assert (PLANTED in content_of(comparison)["lines"]) is (setting == "quick")


def test_what_no_paper_prints_stands_alone():
    """Rows of our own: measured, their claims judged, and nothing is called a reproduction."""
    study = replace(TABLE_1, published=(published_table("svl", "information"),), claims=TABLE_1.claims[:1])
    comparison = compare(study, made_up(TABLE_1))
    assert comparison.label.startswith("Not in the paper: on flickr30k")
    assert comparison.counts() == {}
    (block,) = comparison.blocks
    assert block.differences == ()
    assert [row.row.name for row in block.rows] == [row.name for row in TABLE_1.rows]
    assert all(row.printed is None and row.seeds == (0, 1) for row in block.rows)
    assert "not tested" not in statuses(study, made_up(TABLE_1)).values()
    page = study_page(comparison).html()
    assert "Measured on flickr30k test: 1,000 images" in page
    assert "The paper prints nothing of it." in page
    assert "as printed." not in page
    assert "Nothing has been run." in study_page(compare(study, Results(TABLE_1.name, ()))).html()


def test_a_line_for_every_study_and_for_what_failed():
    other = STUDIES.get("ltd.table-2")
    whole = compare(TABLE_1, made_up(TABLE_1))
    quick = compare(other, made_up(other, setting="quick"))
    compared = [(whole, Path("a b/report.html")), (quick, None)]
    table = matrix_table(compared, {"svl.table-4.1": "no <disk>"})
    lines = {row[0].text: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(lines) == [TABLE_1.name, other.name, "svl.table-4.1"]
    first, second, third = ({name: cell.text for name, cell in line.items()} for line in lines.values())
    judged = ("reproduced", "close", "not reproduced")
    assert [first[name] for name in judged] == ["80", "0", "0"]
    assert [second[name] for name in judged] == [
        "–"
    ] * 3  # of other data: no verdict, which is not none of them
    for line, comparison in ((first, whole), (second, quick)):
        found = list(statuses(comparison.study, comparison.results).values())
        assert [line[name] for name in STATUSES] == [str(found.count(name)) for name in STATUSES]
    assert (first["setting"], first["CPU minutes"]) == ("paper", "16.0")
    assert third["what it asks"] == "failed: no <disk>"
    page = matrix_page(compared, {"svl.table-4.1": "no <disk>"}, ["diptych study verdict out/*"]).html()
    assert 'href="a%20b/report.html"' in page or 'href="a b/report.html"' in page
    assert "no &lt;disk&gt;" in page
    assert PLANTED in page
    assert PLANTED not in matrix_page(compared[:1], {}, []).html()


def test_a_comparison_is_json():
    comparison = compare(TABLE_1, made_up(TABLE_1))
    found = json.loads(json.dumps(content_of(comparison)))
    assert (found["study"], found["label"], found["reproduces"]) == (TABLE_1.name, comparison.label, True)
    assert "cells: 80 reproduced" in found["lines"]
    assert [table["caption"] for table in found["tables"]] == ["Measured, and as printed", "Claims"]
