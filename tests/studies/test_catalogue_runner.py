"""A study of a catalogue, run: one evaluation for all studies, rows read from it, what is left out, what is refused."""

from __future__ import annotations

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
from diptych.studies import STUDIES, Choices, Results, collect, compare
from diptych.studies.catalogues import CatalogueOptions, by_hand, catalogue_with_splits
from diptych.studies.page import study_page
from diptych.studies.study import Study
from tests.encoders.tiny_pretrained import transformers_folder

TABLE_7_1, TABLE_7_2, TABLE_7_3 = (STUDIES.get(f"cti.table-7.{n}") for n in (1, 2, 3))
FIGURE_7_2 = STUDIES.get("cti.figure-7.2")
SMALL = {"train.epochs": 2, "train.hidden": 16, "train.width": 8, "features.text": "lsa:8"}


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
    assert said["training"].status == "not run"
    assert said["multimodal, all categories"].status != "not run"
    tested = [one for one in said["multimodal, all categories"].decided if "p " in one.detail]
    assert tested  # values per category are there: differences are tested
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
    assert len(claim.decided) == 6
    assert measured.commands == (
        f"diptych categories evaluate {shop} --out evaluation --model clip,clip-i --setting all --seeds 1 "
        f"--image-encoder {clip} --text-encoder lsa:8 --published --split-by product",
    )


# Products and splits ---------------------------------------------------------------------------------------------


def test_products_without_a_test_split_get_one(tmp_path: Path) -> None:
    collection = tiny_collection(tmp_path)
    plain = replace(collection, splits=["train"] * len(collection.splits))
    catalogue = catalogue_with_splits(plain, CatalogueOptions())
    assert {"train", "test"} <= set(catalogue.split_sizes)
    with pytest.raises(DataError, match=r"no split 'test', only train.*measure\.split=product"):
        catalogue_with_splits(plain, CatalogueOptions(split="given"))
    values = catalogue_with_splits(plain, CatalogueOptions(attributes="values"))
    assert any("red" in given for given in values.attributes)


def test_the_command_that_makes_the_like_of_it() -> None:
    features = {"features.image": "backbone:x", "features.timm.pad_type": "same", "features.size": 96}
    training = {"train.epochs": 3, "train.learn_temperature": False}
    options = CatalogueOptions.of({**features, **training, "measure.query": "path", "measure.draw": 4})
    data = {"path": "my shop", "reader": "feed", "options": {"language": "en"}, "skip_bad_images": False}
    assert by_hand(data, options, ["bm25", "clip-i"], ["all"], (0, 1)) == (
        "diptych categories evaluate 'my shop' --out evaluation --model bm25,clip-i --setting all --seeds 2 "
        "--image-encoder backbone:x --text-encoder lsa --image-option timm.pad_type=same --image-option size=96 "
        "--set epochs=3 --set learn_temperature=false --reader feed --reader-option language=en --query path "
        "--judged-seed 4"
    )
    strict = options.model_copy(update={"missing": "error"})
    for given, chosen, seeds in ((None, options, (0,)), (data, options, (1,)), (data, strict, (0,))):
        assert by_hand(given, chosen, ["bm25"], ["all"], seeds) == ""


# What is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"values": {"model.width": 3}}, UnknownNameError, "section of a study of a catalogue"),
        ({"values": {"measure.gpa": 3}}, UnknownNameError, "key of measure"),
        ({"values": {"measure.query": "title"}}, UsageError, "query: Input should be 'name' or 'path'"),
        ({"values": {"measure.jobs": 0}}, UsageError, "jobs: Input should be greater"),
        ({"values": {"train": 3}}, UsageError, "is a section"),
        ({"values": {"train.setting": "all"}}, UnknownNameError, "key of train"),
        ({"values": {"train.epochs": "many"}}, UsageError, r"train: epochs"),
        ({"values": {"features.text": ""}}, UsageError, "text: String should have at least 1"),
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
