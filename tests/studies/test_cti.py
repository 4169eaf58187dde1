"""Thesis chapter 7: claims, and its studies run: one evaluation for all, its tables, what is left out or refused."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from study_runs import run_study
from tiny_catalogue import tiny_collection

from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.commerce.scenes.products import make_product_scenes
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.studies import STUDIES, Choices, Results, collect, compare, judge, published_table
from diptych.studies.catalogues import CatalogueOptions, split_products
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.page import study_page
from diptych.studies.published import Measured, printed_evidence, same_evaluation
from tests.encoders.tiny_pretrained import transformers_folder

CHAPTER_7 = [STUDIES.get(f"cti.{name}") for name in ("table-7.1", "table-7.2", "table-7.3", "figure-7.2")]
TABLE_7_1, TABLE_7_2, TABLE_7_3, FIGURE_7_2 = CHAPTER_7
SMALL = {"train.epochs": 2, "train.hidden": 16, "train.width": 8, "features.text": "lsa:8"}


def test_a_catalogue_is_described_by_its_products():
    on = published_table("cti", "table-7.1").rows[0].on
    assert on.describe() == "xmarket-us test: 38,921 products, 5,471 or 34 or 4,100 categories, by label"
    same = Measured("xmarket-US", "test", protocol="by label", products=38_921, categories=34)
    assert same.task == "test, 38,921 products, 34 categories, by label"
    other, said = replace(same, categories=28), ["28 categories, not 5,471 or 34 or 4,100"]
    assert (same_evaluation(same, on), same_evaluation(other, on)) == ([], said)


def test_every_claim_can_hold_and_fail():
    """On the printed numbers, on equal ones, and on numbers drawn for rows, and for rows and columns."""

    def made(study):
        columns, rows = [column.name for column in study.columns], [row.name for row in study.rows]
        yield printed_evidence(study.published, "thesis").figures
        for value in (0.0, 60.0):
            yield {row: dict.fromkeys(columns, Figure(value)) for row in rows}
        for n in range(200):
            one = np.random.default_rng(n).random((len(rows), len(columns) if n % 2 else 1))
            drawn = 1 + 90 * np.broadcast_to(one, (len(rows), len(columns))) ** 2
            yield {
                row: dict(zip(columns, map(Figure, of), strict=True))
                for row, of in zip(rows, drawn, strict=True)
            }

    for study in CHAPTER_7:
        found = {claim.name: set() for claim in study.claims}
        for figures in made(study):
            left = [claim for claim in study.claims if not {"holds", "fails"} <= found[claim.name]]
            for claim in left:
                found[claim.name].add(judge(claim, Evidence(figures, exact=True)).status)
            if not left:
                break
        assert all({"holds", "fails"} <= statuses for statuses in found.values()), found


# 30 of 60 and 10 of 30: half is more than a third, and 30 points behind are more than 20.
KEPT = {"clip-i-most-general": 30, "clip-ita-most-general": 60}
KEPT |= {"clip-i-most-specific": 10, "clip-ita-most-specific": 30}
GAINS = KEPT | {"clip-i-all": 10, "clip-ia-all": 11, "clip-ia-most-general": 36, "clip-ia-most-specific": 15}
TEXTS = {"bm25-all": 1, "clip-all": 2, "sentence-all": 1.5}


def test_claims_by_hand():
    for claim, holds, fails in [
        ("pictures, share", KEPT, KEPT | {"clip-i-most-specific": 16}),
        ("pictures, points", KEPT | {"clip-i-most-general": 41}, KEPT),
        ("attributes", GAINS, GAINS | {"clip-ia-all": 16}),
        ("baselines, all", TEXTS, TEXTS | {"clip-all": 2.1}),
    ]:
        (asked,) = (one for one in TABLE_7_1.claims if one.name == claim)
        for expected, rows in (("holds", holds), ("fails", fails), ("not tested", {"bm25-all": 1.0})):
            figures = {
                row: {one.name: Figure(value) for one in TABLE_7_1.columns} for row, value in rows.items()
            }
            assert judge(asked, Evidence(figures, exact=True)).status == expected


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop") / "products"
    return make_product_scenes(folder, 120, levels=(2, 3), size=32, seed=3)


@pytest.fixture(scope="module")
def home(shop, tmp_path_factory):
    home = tmp_path_factory.mktemp("home") / "studies"
    rows = [f"{model}-{of}" for model in ("bm25", "clip-i", "clip-ita") for of in ("all", "most-specific")]
    run(TABLE_7_1, home, shop, *rows, seeds=(0, 1))
    return home


def choices(shop, **values):
    return Choices(data={"path": str(shop)}, values={**SMALL, **values})


def run(study, home, shop, *rows, chosen=None, **some):
    some["features_root"] = shop.parent / "features"
    return run_study(study, home / study.name, chosen or choices(shop), rows=rows, **some)


def evaluation_in(home):
    (folder,) = (home / "cti.catalogues").iterdir()
    return ModelsEvaluation.open(folder / "evaluation")


def test_rows_are_read_from_one_evaluation(home):
    evaluation, (results,) = evaluation_in(home), collect([home / TABLE_7_1.name])
    assert evaluation.models == ("bm25", "clip-i", "clip-ita")
    seeds = {row: [entry.seed for entry in results.of(row)] for row in ("clip-ita-all", "bm25-all")}
    assert seeds == {"clip-ita-all": [0, 1], "bm25-all": [0]}  # nothing of BM25 is drawn
    for seed in (0, 1):
        per_query = evaluation.cells("all", "clip-ita")[seed].result.per_query["t2i"]
        for column, name in (("P@5", "P@5"), ("mAP@10", "mAP@10"), ("mAP@10|published", "mAP-hits@10")):
            assert results.values("clip-ita-all", column)[seed] == pytest.approx(100 * per_query[name].mean())
    measured, asked = (
        results.of("clip-ita-all")[0].measurements[0],
        evaluation.numbers["settings"]["all"]["categories"],
    )
    assert measured.on.task == f"test, 120 products, {asked} categories, by label"
    assert "with train.epochs 2" in measured.protocol


def test_printed_numbers_stand_beside_and_have_no_verdict(home):
    found = compare(TABLE_7_1, *collect([home / TABLE_7_1.name]))
    assert found.label.startswith("Not a reproduction: on product-scenes: 120 products")
    (row,) = (one for one in found.blocks[0].rows if one.row.name == "clip-ita-most-specific")
    cells = {cell.column: cell for cell in row.cells}
    assert (cells["mAP@5"].published.value, cells["mAP@5"].verdict) == (50.04, "other data")
    assert cells["mAP@5"].right.mean <= cells["mAP@5"].measured.mean  # over min(k, R), and over the hits
    assert cells["P@5"].right is None
    said = {claim.name: judgement for claim, judgement, _ in found.claims}
    assert said["training"].status == said["multimodal, all categories"].status == "not tested"
    tested = [one for one in said["multimodal, all categories"].findings if one.status != "not tested"]
    assert len(tested) == 12  # of the five others two were run
    assert all(", p " in one.detail or one.detail.endswith("equal") for one in tested)  # paired by category
    assert "17.85 is 5 of 28" in study_page(found).html()


def test_the_studies_share_what_is_made(shop, home, tmp_path):
    told = []
    two, both = {"seeds": (0, 1), "tell": told.append}, ("all", "most-specific")
    errors, counted = (run(study, home, shop, *both, **two) for study in (TABLE_7_2, FIGURE_7_2))
    seen, evaluation = run(TABLE_7_3, home, shop, "seen-all", "unseen-all", **two), evaluation_in(home)
    assert told == []
    settings = evaluation.numbers["settings"]
    of_both = [settings[setting]["errors"]["clip-ita"]["all"] for setting in both]  # both seeds together
    for row, counts in zip(both, of_both, strict=True):
        assert sum(errors.values(row, "same tree")) == counts["same_tree"]
        assert sum(errors.values(row, "different tree")) == counts["other_tree"]
        values = counted.of(row)[0].measurements[0].values
        assert sum(value for name, value in values.items() if name.startswith("d = ")) == pytest.approx(100)
        assert values["more general"] + values["d = 0"] + values["more specific"] == pytest.approx(100)
    scores = settings["all"]["scores"]
    for group in (one for one in scores if (one["model"], one["part"]) == ("clip-ita", "seen")):
        own = seen.values("seen-all" if group["group"] else "unseen-all", "P@1")
        assert np.mean(own) == pytest.approx(100 * group["values"]["P@1"]["mean"])
    found = compare(TABLE_7_2, errors)
    (shares,) = (table for table in found.further.tables if table.caption == "Errors in the tree")
    printed = [(f"{of['wrong'] / 2:.1f}", f"{100 * of['same_tree'] / of['wrong']:.1f}") for of in of_both]
    assert [row[1:] for row in shares.texts if row[0] == "CLIP-ITA"] == printed
    captions = {table.caption for table in compare(TABLE_7_3, seen).further.tables}
    assert captions == {"Categories that training saw"}
    moved = collect([shutil.copytree(home / TABLE_7_2.name, tmp_path / TABLE_7_2.name)])
    without = compare(TABLE_7_2, *moved).further  # numbers are the rows' own
    assert (list(without.tables), without.charts) == ([], found.further.charts)
    again = run(TABLE_7_3, home, shop, "seen-all", "unseen-most-general", **two)
    assert "no categories of the kind" in again.left_out["unseen-most-general"]
    assert told == ["product-scenes: evaluating 3 models, 3 settings, 2 seeds"]  # it has grown


def test_a_row_without_its_encoder_is_left_out(shop, tmp_path):
    rows, without = ("bm25-all", "clip-all", "clip-i-all"), choices(shop, **{"features.image": None})
    results = run(TABLE_7_1, tmp_path, shop, *rows, chosen=without)
    assert [entry.row for entry in results.entries] == ["bm25-all"]
    assert "a dual encoder" in results.left_out["clip-all"]
    assert results.left_out["clip-i-all"] == "needs image, which no product has"
    assert Results.open(tmp_path / TABLE_7_1.name / "results.json").left_out == results.left_out


def test_the_published_setting_and_the_row_of_clip(shop, tmp_path):
    clip = transformers_folder("clip", tmp_path / "clip", limit=48)
    values = {"features.image": str(clip), "features.text": "lsa:8", "measure.split": "product"}
    chosen = Choices(setting="published", data={"path": str(shop)}, values=values)
    results = run(TABLE_7_1, tmp_path, shop, "clip-all", "clip-i-all", chosen=chosen, seeds=(0,))
    assert "as the chapter says (compat published)" in results.of("clip-i-all")[0].measurements[0].protocol
    found = compare(TABLE_7_1, results)
    assert not found.reproduces  # other products than the chapter's
    (training,) = (judgement for claim, judgement, _ in found.claims if claim.name == "training")
    assert training.count("not tested") == len(training.findings) - 6


def test_products_are_split_or_refused(tmp_path, shop, scenes_folder):
    plain = replace(tiny_collection(tmp_path), splits=["train"] * 24)
    assert {"train", "test"} <= set(split_products(plain, CatalogueOptions()).split_sizes)
    with pytest.raises(DataError, match=r"no split 'test', only train.*measure\.split=product"):
        split_products(plain, CatalogueOptions(split="given"))
    assert "red" in split_products(plain, CatalogueOptions(attributes="values")).attributes[0]
    with pytest.raises(DataError, match="no products"):
        run(TABLE_7_1, tmp_path, shop, chosen=choices(scenes_folder))


def test_what_cannot_be(shop, tmp_path):
    for changed, error, said in [
        ({"values": {"model.width": 3}}, UnknownNameError, "section of a study of a catalogue"),
        ({"values": {"measure.gpa": 3}}, UsageError, "measure: unknown key 'gpa'"),
        ({"values": {"measure.query": "title"}}, UsageError, "query: Input should be 'name' or 'path'"),
        ({"values": {"train.setting": "all"}}, UnknownNameError, "key of train"),
        ({"values": {"features.text": ""}}, UsageError, "features.text is ''"),
        ({"setting": "paper", "values": {"train.epochs": 3}}, UsageError, "as the thesis says"),
        ({"setting": "published", "values": {"train.epochs": 3}}, UsageError, "as the thesis says"),
        ({"data": None, "setting": "data"}, DataError, "no products given"),
        ({}, UsageError, r"no row of cti\.table-7\.1 can be run: clip-all needs an image encoder"),
    ]:
        with pytest.raises(error, match=said):
            run(TABLE_7_1, tmp_path, shop, "clip-all", chosen=replace(choices(shop), **changed))
