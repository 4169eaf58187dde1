"""Published beside measured: verdicts only on the same thing, an honest label on everything else."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

import pytest

from diptych.studies import STUDIES, Results, compare, published_table
from diptych.studies.page import study_page
from diptych.studies.results import Entry
from diptych.studies.study import PUBLISHED, Measurement, SettingName, Study
from diptych.studies.tables import claims_tables, compared_tables
from diptych.studies.verdict import Measured

FLICKR30K = Measured("flickr30k", "test", 1_000, 5_000)
FLICKR8K = replace(FLICKR30K, dataset="flickr8k")
TABLE_1 = STUDIES.get("metric-learning.table-1")


def made_up(
    study: Study,
    on: Measured = FLICKR30K,
    setting: SettingName = "paper",
    changed: tuple[str, ...] = (),
    factor: float = 1.0,
    seeds: int = 2,
) -> Results:
    """Results that are the printed numbers times ``factor``, seeds 0.2 apart."""
    entries = []
    for row in study.published[0].rows:
        if row.config is None or row.on.dataset != "flickr30k":
            continue
        for seed in range(seeds):
            values = {column: cell.value * factor + 0.2 * seed for column, cell in row.cells.items()}
            if "i2t mAP@5" in values:
                values["i2t mAP@5" + PUBLISHED] = row.cells["i2t mAP@5"].value
                values["i2t mAP@5"] = values["i2t mAP@5"] / 2
            measurement = Measurement(values, on, "the protocol <line>", ("diptych evaluate {run}",))
            run, data = f"out/{row.config}/seed-{seed}", f"{on.dataset}: all of it"
            made = (measurement,), "key", run, data, (30, 20), 60.0, changed
            entries.append(Entry(study.name, row.config, seed, setting, *made))
    return Results(study.name, tuple(entries))


def test_the_papers_own_numbers_are_reproduced() -> None:
    comparison = compare(TABLE_1, made_up(TABLE_1))
    assert comparison.reproduces
    assert comparison.label.startswith("A reproduction: on flickr30k")
    assert comparison.counts() == {"reproduced": 8 * 10}
    (block,) = comparison.blocks
    assert [row.printed.row for row in block.rows if row.printed] == [f"1.{n}" for n in range(1, 9)]
    first = block.rows[0]
    assert first.seeds == (0, 1)
    assert first.cpu_seconds == 120.0
    assert first.commands == ("diptych evaluate out/vsepp-triplet/seed-0",)
    precision = next(cell for cell in first.cells if cell.column == "i2t mAP@5")
    assert precision.measured is not None
    assert precision.right is not None
    assert precision.measured.mean == 0.41  # counted as printed; the plain one stands beside it
    assert precision.right.mean == pytest.approx((0.41 + 0.2 / 2) / 2 + 0.0, abs=0.06)


@pytest.mark.parametrize(
    ("results", "verdict", "said"),
    [
        (made_up(TABLE_1, on=FLICKR8K), "other data", "dataset flickr8k, not flickr30k"),
        (made_up(TABLE_1, on=replace(FLICKR30K, images=500)), "other data", "500 images, not 1,000"),
        (made_up(TABLE_1, on=replace(FLICKR30K, split="val")), "other data", "split val, not test"),
        (made_up(TABLE_1, setting="data"), "other training", ""),
        (made_up(TABLE_1, changed=("stages.0.epochs",)), "other training", ""),
    ],
)
def test_anything_else_is_never_a_reproduction(results: Results, verdict: str, said: str) -> None:
    comparison = compare(TABLE_1, results)
    assert not comparison.reproduces
    assert comparison.label.startswith("Not a reproduction")
    assert set(comparison.counts()) == {verdict}
    assert comparison.blocks[0].differences == ((said,) if said else ())
    page = study_page(comparison).html()
    assert "Not a reproduction" in page
    assert "Cells have no verdict" in page
    assert "✓ within 5 %" not in page
    # Claims are judged on whatever data there is.
    statuses = {claim.name: judgement.status for claim, judgement, _ in comparison.claims}
    assert "not run" not in statuses.values()
    assert statuses["(1)"] == "holds"


def test_where_things_are_is_not_another_training() -> None:
    changed = ("model.image.weights", "checkpoints.every_steps")
    assert compare(TABLE_1, made_up(TABLE_1, changed=changed)).reproduces
    assert not compare(TABLE_1, made_up(TABLE_1, changed=("checkpoints.patience",))).reproduces


CLIP = "open_clip:RN50/somebody (fingerprint 0123456789abcdef)"


def fine_tuned(results: Results, given: str, changed: tuple[str, ...] = ("fine_tune",)) -> Results:
    """With the rows of CLIP gone on from an encoder that was given."""
    entries = [
        replace(entry, fine_tuned_from=given, changed=changed) if entry.row.startswith("clip") else entry
        for entry in results.entries
    ]
    return Results(results.study, tuple(entries))


def test_what_went_on_from_any_encoder_is_no_reproduction() -> None:
    study = STUDIES.get("svl.table-4.1")
    results = fine_tuned(made_up(study), CLIP)
    both = compare(study, results)
    scratch = "A reproduction where trained from scratch, else the paper's training, fine-"
    assert both.label.startswith(scratch)
    verdicts = {row.row.name: {cell.verdict for cell in row.cells} for row in both.blocks[0].rows}
    assert verdicts["clip-unique"] == {"unchecked start", "not run"}  # no validation is printed
    assert verdicts["vse-unique"] == {"reproduced", "not run"}
    assert both.counts() == {"reproduced": 4 * 7}
    only = Results(study.name, tuple(entry for entry in results.entries if entry.row.startswith("clip")))
    alone = compare(study, only)
    assert alone.label.startswith(f"The paper's training, fine-tuned from {CLIP}: on flickr30k")
    assert not alone.reproduces
    assert alone.counts() == {}
    assert "A reproduction" not in study_page(alone).html()
    assert "start from an encoder that cannot be checked" in study_page(alone).html()
    # Entries of earlier versions say that one was given and not which.
    older = compare(study, fine_tuned(only, ""))
    assert older.label.startswith("The paper's training, fine-tuned from an encoder without a name: on")
    small = compare(study, fine_tuned(made_up(study, setting="data"), CLIP))
    assert small.label.startswith("Not a reproduction: on the paper's data")
    assert f"fine-tuned from {CLIP}" in small.label


@pytest.mark.parametrize(
    ("dataset", "r_at_1", "status"),
    [("coco", 38.9, "holds"), ("coco", 30.0, "fails"), ("f8k", 38.9, "not run")],
)
def test_a_row_that_the_paper_quotes_stands_beside_ours(dataset: str, r_at_1: float, status: str) -> None:
    """Table 3 of LTD holds its own row against what VSE++'s authors print, on the same images."""
    study = STUDIES.get("ltd.table-3")
    values = {name: cell.value for name, cell in study.published[0].rows[0].cells.items()}
    measured = Measurement(
        {**values, "i2t R@1": r_at_1}, Measured(dataset, "test", 5_000, 25_010), "protocol"
    )
    entry = Entry(study.name, "vsepp-like", 0, "paper", (measured,), "k", "run", dataset, (45, 40), 1.0)
    ((_, judgement, _),) = compare(study, Results(study.name, (entry,))).claims
    assert judgement.status == status


@pytest.mark.parametrize(
    ("dataset", "images", "captions", "status"),
    [("coco", 5_000, 25_010, "fails"), ("flickr30k", 1_000, 5_000, "not run")],
)
def test_a_claim_about_one_dataset_is_not_judged_on_another(
    dataset: str, images: int, captions: int, status: str
) -> None:
    """Table 3.1 of D2S names shares of its numbers on MS-COCO; Flickr30k's are no others."""
    study = STUDIES.get("d2s.table-3.1")
    rows = {(row.config, row.on.key): row for row in study.published[0].rows}
    row = rows["d2s-1e-5-c+w", f"{dataset}-blip"]
    values = {name: cell.value for name, cell in row.cells.items()}
    measured = Measurement(values, Measured(dataset, "test", images, captions), "protocol")
    entry = Entry(study.name, "d2s-1e-5-c+w", 0, "paper", (measured,), "k", "run", dataset, (200, 9), 1.0)
    comparison = compare(study, Results(study.name, (entry,)))
    judged = {claim.name: judgement.status for claim, judgement, _ in comparison.claims}
    assert judged["named shares"] == status
    assert judged["baselines"] == "holds"


def test_rows_that_were_not_run_say_why() -> None:
    all_of_it = made_up(TABLE_1)
    some = Results(
        TABLE_1.name,
        tuple(entry for entry in all_of_it.entries if entry.row.startswith("vsepp")),
        {f"vsrn-{loss}": "needs region features" for loss in ("triplet", "nt-xent")},
    )
    rows = {row.row.name: row for row in compare(TABLE_1, some).blocks[0].rows}
    assert rows["vsrn-triplet"].why == "needs region features"
    assert rows["vsrn-smoothap"].why == "not run"
    assert {cell.verdict for cell in rows["vsrn-smoothap"].cells} == {"not run"}
    first = next(judgement for claim, judgement, _ in compare(TABLE_1, some).claims if claim.name == "(1)")
    assert first.status == "holds"
    assert len(first.decided) == 21
    assert len(first.findings) == 42


def test_further_judgements_have_a_table_of_their_own() -> None:
    study = STUDIES.get("ltd.table-1")
    coco = Measured("coco", "test", 5_000, 25_010)
    values = {column: 40.0 for column in study.published[0].columns}
    own = Measurement(values, coco, "protocol")
    by_cxc = Measurement({**values, "i2t R@1": 35.5}, replace(coco, positives="cxc"), "protocol")

    def entry(*measurements: Measurement) -> Entry:
        return Entry(study.name, "baseline", 0, "paper", measurements, "k", "run", "coco", (60, 60), 1.0)

    comparison = compare(study, Results(study.name, (entry(own, by_cxc),)))
    assert [block.on.key for block in comparison.blocks] == ["coco", "cxc"]
    row = comparison.blocks[1].rows[0]
    assert row.printed is not None
    assert row.printed.row == "2.1.2"
    assert row.cells[0].verdict == "reproduced"  # 35.4 is printed
    without = compare(study, Results(study.name, (entry(own),)))
    assert without.blocks[1].rows[0].why == "needs --positives cxc:PATH"


def test_the_page_shows_both_tables_the_claims_and_the_commands() -> None:
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
    words = {"holds": "✓ holds", "fails": "✗ fails", "not run": "· not run"}
    judged = [words[judgement.status] for _, judgement, _ in comparison.claims]
    assert [row[2].text for row in claims.rows] == judged
    assert "cells reproduced" in page
    assert "80 of 80" in page
    assert "diptych study run metric-learning.table-1 --data f30k" in page
    assert "diptych evaluate out/vsrn-smoothap/seed-0" in page
    assert "the protocol &lt;line&gt;" in page  # other people's text is escaped
    assert page.count("<svg") == 1
    assert "does not add up" in page  # row 2.7
    for claim in TABLE_1.claims:
        assert escape(claim.text) in page
    assert not re.search(r"""(src|href)=["']https?:""", page)


def test_what_no_paper_prints_stands_alone() -> None:
    """Rows of our own: measured, their claims judged, and nothing is called a reproduction."""
    study = replace(TABLE_1, published=(published_table("svl", "information"),), remarks=lambda _: ["Said."])
    comparison = compare(study, made_up(TABLE_1))
    assert comparison.label.startswith("Not in the paper: on flickr30k")
    assert not comparison.reproduces
    assert comparison.counts() == {}
    (block,) = comparison.blocks
    assert block.differences == ()
    assert [row.row.name for row in block.rows] == [row.name for row in TABLE_1.rows]
    assert all(row.printed is None and row.seeds == (0, 1) for row in block.rows)
    assert {judgement.status for _, judgement, _ in comparison.claims} <= {"holds", "fails"}
    page = study_page(comparison).html()
    assert "Measured on flickr30k test: 1,000 images" in page
    assert "The paper prints nothing of it." in page
    assert "Said." in page
    assert "as printed." not in page
    assert "Nothing has been run." in study_page(compare(study, Results(TABLE_1.name, ()))).html()
