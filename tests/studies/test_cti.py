"""Thesis chapter 7: claims, and its studies run: one evaluation for all, what is left out or refused."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_runs import run_study
from tiny_catalogue import tiny_collection

from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.core.errors import DataError, Interrupted, UnknownNameError, UsageError
from diptych.data.scenes import make_product_scenes
from diptych.studies import STUDIES, Choices, Results, collect, compare, judge, published_table
from diptych.studies.catalogues import MeasureOptions, split_products
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.page import study_page
from diptych.studies.study import AS_PAPER, Study
from diptych.studies.verdict import Measured, same_evaluation
from tests.encoders.tiny_pretrained import transformers_folder

TABLE_7_1, TABLE_7_2, TABLE_7_3 = (STUDIES.get(f"cti.table-7.{n}") for n in (1, 2, 3))
FIGURE_7_2 = STUDIES.get("cti.figure-7.2")
CHAPTER_7 = (TABLE_7_1, TABLE_7_2, TABLE_7_3, FIGURE_7_2)
SMALL = {"train.epochs": 2, "train.hidden": 16, "train.width": 8, "features.text": "lsa:8"}


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


def test_only_settings_of_the_paper_train_as_the_thesis_says() -> None:
    for study in CHAPTER_7:
        for name, setting in study.settings.items():
            assert any(key.startswith("train.") for key in setting.measure) is (name == "quick"), study.name
            assert (setting.generated is not None) is (name == "quick"), study.name
            assert bool(setting.deviations) is (name == "published"), study.name
    assert "published" in AS_PAPER


@pytest.mark.parametrize("name", [study.name for study in CHAPTER_7])
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
    for one in (*made, *map(Evidence, (known, rising, falling, level))):
        for claim in study.claims:
            statuses[claim.name].add(judge(claim, replace(one, exact=True)).status)
    assert all("fails" in found for found in statuses.values()), statuses
    never = {name for name, found in statuses.items() if "holds" not in found}
    assert never <= {"pictures, conclusion"}, never


def hash_of(row: str, column: str, seed: int) -> float:
    """A share in [0, 1) that is the same in every process."""
    return zlib.crc32(f"{row}|{column}|{seed}".encode()) / 2**32


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "products"
    return make_product_scenes(folder, 120, levels=(2, 3), size=32, seed=3)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("features")


@pytest.fixture(scope="module")
def home(shop: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of studies with table 7.1 of two models and two seeds in it."""
    home = tmp_path_factory.mktemp("home") / "studies"
    models, settings = ("bm25", "clip-i", "clip-ita"), ("all", "most-specific")
    rows = [f"{model}-{setting}" for model in models for setting in settings]
    run_study(TABLE_7_1, home / TABLE_7_1.name, choices(shop), rows=rows, seeds=(0, 1), features_root=cache)
    return home


def choices(shop: Path, **values: Any) -> Choices:
    return Choices(data={"path": str(shop)}, values={**SMALL, **values})


def test_rows_are_read_from_one_evaluation(home: Path) -> None:
    (folder,) = (home / "cti.catalogues").iterdir()
    evaluation = ModelsEvaluation.open(folder / "evaluation")
    assert evaluation.models == ("bm25", "clip-i", "clip-ita")
    assert evaluation.settings == ("all", "most-specific")
    (results,) = collect([home / TABLE_7_1.name])
    assert results.setting == "data"
    assert [entry.seed for entry in results.of("clip-ita-all")] == [0, 1]
    assert [entry.seed for entry in results.of("bm25-all")] == [0]  # nothing of it is drawn
    for seed in (0, 1):
        per_query = evaluation.cells("all", "clip-ita")[seed].result.per_query["t2i"]
        for column, name in (("P@5", "P@5"), ("mAP@10", "mAP@10"), ("mAP@10|published", "mAP-hits@10")):
            expected = 100 * float(np.mean(per_query[name]))
            assert results.values("clip-ita-all", column)[seed] == pytest.approx(expected)
    on = results.of("clip-ita-all")[0].measurements[0].on
    assert (on.dataset, on.split, on.protocol, on.products) == ("product-scenes", "test", "by label", 120)
    assert on.categories == len(evaluation.judged("all").nodes)
    assert "with train.epochs 2" in results.of("clip-ita-all")[0].measurements[0].protocol


def test_printed_numbers_stand_beside_and_have_no_verdict(home: Path) -> None:
    (results,) = collect([home / TABLE_7_1.name])
    found = compare(TABLE_7_1, results)
    assert not found.reproduces
    assert found.label.startswith("Not a reproduction: on product-scenes: 120 products")
    row = next(one for one in found.blocks[0].rows if one.row.name == "clip-ita-most-specific")
    cells = {cell.column: cell for cell in row.cells}
    assert (cells["mAP@5"].published.value, cells["mAP@5"].verdict) == (50.04, "other data")  # type: ignore[union-attr]
    assert cells["mAP@5"].right is not None  # over min(k, R), beside what is held against the printed one
    assert cells["mAP@5"].right.mean <= cells["mAP@5"].measured.mean  # type: ignore[union-attr]
    assert cells["P@5"].right is None
    said = {claim.name: judgement for claim, judgement, _ in found.claims}
    assert said["training"].status == "not tested"
    multimodal = said["multimodal, all categories"]
    assert multimodal.status == "not tested"  # of the five others three were not run
    tested = [one for one in multimodal.findings if one.status != "not tested"]
    assert len(tested) == 12
    assert all(", p " in one.detail or one.detail.endswith("equal") for one in tested)  # paired by category
    page = study_page(found).html()
    assert "17.85 is 5 of 28" in page
    assert "<svg" in page


def test_the_studies_share_what_is_made(shop: Path, cache: Path, home: Path) -> None:
    told: list[str] = []

    def run(study: Study, rows: list[str]) -> Results:
        some: dict[str, Any] = {"seeds": (0, 1), "features_root": cache, "tell": told.append}
        return run_study(study, home / study.name, choices(shop), rows=rows, **some)

    errors, counted = (run(study, ["all", "most-specific"]) for study in (TABLE_7_2, FIGURE_7_2))
    seen = run(TABLE_7_3, ["seen-all", "unseen-all"])
    assert told == []
    (folder,) = (home / "cti.catalogues").iterdir()
    evaluation = ModelsEvaluation.open(folder / "evaluation")
    for setting in ("all", "most-specific"):
        counts = evaluation.errors(setting, "clip-ita")  # of both seeds together
        assert sum(errors.values(setting, "same tree")) == counts.same_tree
        assert sum(errors.values(setting, "different tree")) == counts.other_tree
        if counted.of(setting):
            values = counted.of(setting)[0].measurements[0].values
            shares = [value for name, value in values.items() if name.startswith("d = ")]
            assert sum(shares) == pytest.approx(100)
            assert values["more general"] + values["d = 0"] + values["more specific"] == pytest.approx(100)
    groups = {one.group: one for one in evaluation.seen("all", "clip-ita", "P@1")}
    for name, group in (("seen-all", 1), ("unseen-all", 0)):
        if group in groups:
            own = seen.values(name, "P@1")
            assert np.mean(own) == pytest.approx(100 * groups[group].spread.mean)
        else:
            assert "no categories of the kind" in seen.left_out[name]
    for study, results in ((TABLE_7_2, errors), (FIGURE_7_2, counted), (TABLE_7_3, seen)):
        assert "<svg" in study_page(compare(study, results)).html()


@pytest.fixture
def run(shop: Path, cache: Path, tmp_path: Path) -> Callable[..., Results]:
    """Table 7.1 in a folder of its own, of the shop if nothing else is said."""

    def given(*rows: str, chosen: Choices | None = None, **some: Any) -> Results:
        folder = tmp_path / "studies" / TABLE_7_1.name
        return run_study(TABLE_7_1, folder, chosen or choices(shop), rows=rows, features_root=cache, **some)

    return given


def test_a_row_without_its_encoder_is_left_out(
    shop: Path, tmp_path: Path, run: Callable[..., Results]
) -> None:
    without = choices(shop, **{"features.image": None})
    results = run("bm25-all", "clip-all", "clip-i-all", chosen=without)
    assert [entry.row for entry in results.entries] == ["bm25-all"]
    assert "features.image=MODEL" in results.left_out["clip-all"]
    assert results.left_out["clip-i-all"] == "needs image, which no product has"
    kept = Results.open(tmp_path / "studies" / TABLE_7_1.name / "results.json")
    assert kept.left_out == results.left_out


def test_what_is_asked_to_stop_goes_on(run: Callable[..., Results]) -> None:
    calls = iter(range(10_000))
    rows = ("clip-a-all", "clip-t-all")
    with pytest.raises(Interrupted):
        run(*rows, seeds=(0,), should_stop=lambda: next(calls) > 3)
    assert {entry.row for entry in run(*rows, seeds=(0,)).entries} == set(rows)


def test_the_papers_setting_and_the_row_of_clip(
    shop: Path, tmp_path_factory: pytest.TempPathFactory, run: Callable[..., Results]
) -> None:
    clip = transformers_folder("clip", tmp_path_factory.mktemp("pretrained") / "clip", limit=48)
    values = {"features.image": str(clip), "features.text": "lsa:8", "measure.split": "product"}
    chosen = Choices(setting="paper", data={"path": str(shop)}, values=values)
    results = run("clip-all", "clip-i-all", chosen=chosen, seeds=(0,))
    assert not results.left_out
    assert results.setting == "paper"
    measured = results.of("clip-i-all")[0].measurements[0]
    assert "as the chapter says (compat published)" in measured.protocol
    found = compare(TABLE_7_1, results)
    assert not found.reproduces  # other products than the chapter's
    claim = next(judgement for claim, judgement, _ in found.claims if claim.name == "training")
    assert sum(one.status != "not tested" for one in claim.findings) == 6
    (command,) = measured.commands
    assert command.startswith(
        f"diptych categories evaluate {shop} --out evaluation --published --model clip "
    )
    assert f"--image-encoder {clip} --text-encoder lsa:8" in command
    assert "--seeds 1" in command


def test_products_without_a_test_split_get_one(tmp_path: Path) -> None:
    collection = tiny_collection(tmp_path)
    plain = replace(collection, splits=["train"] * len(collection.splits))
    catalogue = split_products(plain, MeasureOptions())
    assert {"train", "test"} <= set(catalogue.split_sizes)
    with pytest.raises(DataError, match=r"no split 'test', only train.*measure\.split=product"):
        split_products(plain, MeasureOptions(split="given"))
    values = split_products(plain, MeasureOptions(attributes="values"))
    assert any("red" in given for given in values.attributes)


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"values": {"model.width": 3}}, UnknownNameError, "section of a study of a catalogue"),
        ({"values": {"measure.gpa": 3}}, UsageError, "measure: unknown key 'gpa'"),
        ({"values": {"measure.query": "title"}}, UsageError, "query: Input should be 'name' or 'path'"),
        ({"values": {"measure.jobs": 0}}, UsageError, "jobs: Input should be greater"),
        ({"values": {"train": 3}}, UsageError, "is a section"),
        ({"values": {"train.setting": "all"}}, UnknownNameError, "key of train"),
        ({"values": {"train.epochs": "many"}}, UsageError, r"train: epochs"),
        ({"values": {"features.text": ""}}, UsageError, "features.text is ''"),
        ({"setting": "paper", "values": {"train.epochs": 3}}, UsageError, "trains as the thesis says"),
        ({"targets": "lsa"}, UsageError, "--targets lsa"),
        ({"setting": "everything"}, UnknownNameError, r"setting of cti\.table-7\.1"),
        ({"data": None, "setting": "data"}, DataError, "no products given"),
        ({"data": {"path": "nowhere"}}, DataError, "nowhere"),
    ],
)
def test_what_cannot_be(
    shop: Path, tmp_path: Path, changed: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        run_study(TABLE_7_1, tmp_path / "s" / TABLE_7_1.name, replace(choices(shop), **changed))


def test_what_cannot_be_run(scenes_folder: Path, run: Callable[..., Results]) -> None:
    with pytest.raises(DataError, match="no products"):
        run("bm25-all", chosen=choices(scenes_folder))
    with pytest.raises(UsageError, match=r"no row of cti\.table-7\.1 can be run: clip-all needs an encoder"):
        run("clip-all")
