from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_evaluation import SMALL, evaluated, shop_and_maker

from diptych.commerce.catalogue import Catalogue, judge
from diptych.commerce.category_to_image.evaluation import (
    CATEGORY_MEASURES,
    GridProtocol,
    ModelsEvaluation,
    evaluate_given,
    evaluate_models,
    measure_ranker,
)
from diptych.commerce.category_to_image.evaluation.evaluate import usable_models
from diptych.commerce.category_to_image.evaluation.grid import features_of_nodes, ready_ranker
from diptych.commerce.category_to_image.features import CategoryFeatures, FeatureMaker
from diptych.commerce.category_to_image.trained import TrainedModel
from diptych.commerce.category_to_image.training import train
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError, MismatchError, UnknownNameError, UsageError

Shop = tuple[Catalogue, FeatureMaker]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return shop_and_maker(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def found(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> ModelsEvaluation:
    return evaluated(*shop, tmp_path_factory.mktemp("evaluations") / "one")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "evaluation"


def held_out(shop: Catalogue) -> Catalogue:
    return shop.subset([row for row, name in enumerate(shop.splits) if name != "train"])


def trained(shop: Shop, seed: int) -> tuple[TrainedModel, CategoryFeatures]:
    learned, rows = shop[0].split("train"), shop[1].categories([path[-1] for path in shop[0].tree.paths])
    options = SMALL.model_copy(update={"setting": "most-specific", "seed": seed})
    return train(learned, shop[1].products(learned, missing="none"), rows, options), rows


def test_a_cell_is_what_training_and_measuring_by_hand_give(shop: Shop, found: ModelsEvaluation) -> None:
    catalogue, maker = shop
    test = held_out(catalogue)
    model, rows = trained(shop, seed=1)
    judged = judge(test, "most-specific")
    expected = measure_ranker(
        model, maker.products(test, missing="none"), features_of_nodes(rows, judged.nodes), judged
    )
    cell = found.cells("most-specific", "clip-ita")[1]
    for name in CATEGORY_MEASURES:
        assert np.array_equal(cell.result.per_query["t2i"][name], expected.per_query["t2i"][name])
    assert cell.result.value("R@1", "i2t") == expected.value("R@1", "i2t")
    assert cell.about["fingerprint"] == model.fingerprint
    first = judged.labels[cell.first[:, 0]] == judged.nodes
    assert np.array_equal(first, cell.result.per_query["t2i"]["P@1"] == 1)
    guessed = judged.nodes[cell.guess] == judged.labels
    assert guessed.mean() == pytest.approx(cell.result.value("R@1", "i2t"))


def test_untrained_models_are_measured_once_and_say_so(shop: Shop, found: ModelsEvaluation) -> None:
    catalogue, maker = shop
    assert len(found.cells("all", "bm25")) == 1
    assert len(found.cells("all", "clip-i")) == 2
    products = maker.products(held_out(catalogue), missing="none")
    ranker = ready_ranker("bm25", products)
    judged = found.judged("most-general")
    asking = maker.categories([catalogue.tree.paths[node][-1] for node in judged.nodes])
    expected = measure_ranker(ranker, products, asking, judged)
    assert found.value("most-general", "bm25", "P@1").mean == expected.value("P@1", "t2i") == 0
    assert found.left_out == {}


def test_tables_levels_and_errors_agree_with_values_per_category(found: ModelsEvaluation) -> None:
    for setting in found.settings:
        nodes = found.judged(setting).nodes
        for row in found.table(setting):
            each, value = found.per_category(setting, row.model, "mAP@10"), row.values["mAP@10"]
            assert value.mean == pytest.approx(each.mean())
            assert value.low is not None
            assert value.low <= value.mean + 1e-9
            levels = found.levels(setting, row.model, "mAP@10")
            groups, sizes = np.unique(found.tree.depth[nodes], return_counts=True)
            assert [(one.group, one.categories) for one in levels] == list(zip(groups, sizes, strict=True))
            means = [each[found.tree.depth[nodes] == group].mean() for group in groups]
            assert [one.spread.mean for one in levels] == pytest.approx(means)
            counts, cells = found.errors(setting, row.model), found.cells(setting, row.model)
            assert counts.asked == len(cells) * len(nodes)
            hits = sum(float(cell.result.per_query["t2i"]["P@1"].sum()) for cell in cells)
            ties = any((np.diff(cell.scores[:, :2]) == 0).any() for cell in cells)
            assert ties or counts.right == pytest.approx(hits)
            seen, unseen = (found.errors(setting, row.model, seen=flag) for flag in (True, False))
            assert (seen.asked + unseen.asked, seen.wrong + unseen.wrong) == (counts.asked, counts.wrong)
    assert {one.run for one in found.compare("most-specific")} == {"bm25", "sentence", "clip-i"}


def test_numbers_hold_protocol_examples_and_chance(found: ModelsEvaluation) -> None:
    said = found.numbers["settings"]["most-specific"]
    assert [row["label"] for row in said["table"]] == ["BM25", "sentence encoder", "CLIP-I", "CLIP-ITA"]
    assert said["baseline"] == "clip-ita"
    assert "Holm over 24 comparisons" in said["comparison"]
    assert all(one["right"] == (one["category"] == one["found"]) for one in said["examples"]["clip-ita"])
    for part in ("relevance by label", "seeds 0, 1", "12 products to train on", "12 to find", "grid", "lsa"):
        assert part in found.line(), part
    assert "1 products without a category are no candidates" in said["line"]


def test_opened_again_it_is_the_same_and_nothing_is_made_twice(
    shop: Shop, found: ModelsEvaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diptych.commerce.category_to_image.evaluation.grid import Work

    again = ModelsEvaluation.open(found.folder)
    assert again.numbers == found.numbers
    assert np.array_equal(again.judged("all").labels, found.judged("all").labels)

    def run(self: Work, *_: object) -> None:
        raise AssertionError("a cell was made again")

    monkeypatch.setattr(Work, "run", run)
    assert evaluated(*shop, found.folder).numbers == found.numbers


def test_it_grows_by_models_and_seeds_and_refuses_another_protocol(shop: Shop, folder: Path) -> None:
    small = {"settings": ["most-general"], "models": ["sentence", "clip-t"]}
    first = evaluated(*shop, folder, **{**small, "seeds": (0,)})
    before = {file: file.stat().st_mtime_ns for file in folder.glob("cells/units/*.npz")}
    assert len(before) == 2
    grown = evaluated(*shop, folder, **{**small, "models": ["sentence", "clip-t", "clip-a"]})
    assert grown.models == ("sentence", "clip-t", "clip-a")
    assert len(grown.cells("most-general", "clip-t")) == 2
    assert all(file.stat().st_mtime_ns == when for file, when in before.items())
    assert grown.value("most-general", "sentence", "P@1") == first.value("most-general", "sentence", "P@1")
    with pytest.raises(MismatchError, match="query name and path"):
        evaluated(*shop, folder, **small, query="path")
    with pytest.raises(MismatchError, match="epochs 2 and 3"):
        evaluated(*shop, folder, **{**small, "options": SMALL.model_copy(update={"epochs": 3})})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="slow to start elsewhere")
def test_processes_give_the_same_bits(shop: Shop, found: ModelsEvaluation, folder: Path) -> None:
    made = evaluated(*shop, folder, settings=["all"], models=["clip-ita"], jobs=2)
    for mine, theirs in zip(made.cells("all", "clip-ita"), found.cells("all", "clip-ita"), strict=True):
        assert mine.about["fingerprint"] == theirs.about["fingerprint"]
        assert np.array_equal(mine.scores, theirs.scores)


def test_what_the_features_do_not_allow_is_left_out_or_refused(shop: Shop, folder: Path) -> None:
    without = replace(shop[1], image=None)
    made = evaluated(shop[0], without, folder, settings=["most-general"], seeds=(0,), models=None)
    assert set(made.left_out) == {"clip", "clip-i", "clip-it", "clip-ia", "clip-ita"}
    assert "needs image" in made.left_out["clip-ita"]
    assert made.baseline == "clip-ta"
    with pytest.raises(UsageError, match="dual encoder"):
        evaluated(*shop, folder / "other", models=["clip"])


def test_a_setting_with_nothing_to_tell_apart_is_left_out_or_refused(shop: Shop, folder: Path) -> None:
    women = shop[0].subset(range(12))
    few = {"models": ["bm25", "clip-t"], "seeds": (0,)}
    made = evaluated(women, shop[1], folder, **few)
    assert made.settings == ("all", "most-specific")
    assert "ask with the words 'Women'" in made.left_out["most-general"]
    with pytest.raises(DataError, match="'Women'"):
        evaluated(women, shop[1], folder / "other", settings=["most-specific", "most-general"], **few)


def test_what_training_products_lack_no_model_can_learn(shop: Shop) -> None:
    catalogue, maker = shop
    tested, rows = maker.products(held_out(catalogue), missing="none"), maker.categories(["Women"])
    bare = replace(
        tested,
        attribute_start=np.zeros_like(tested.attribute_start),
        attribute_items=tested.attribute_items[:0],
    )
    usable, left_out = usable_models(["clip-t", "clip-ta"], tested, rows, bare, named=False)
    assert (usable, list(left_out)) == (["clip-t"], ["clip-ta"])
    with pytest.raises(UsageError, match="attributes, which no training product has"):
        usable_models(["clip-ta"], tested, rows, bare, named=True)


def test_a_picture_that_came_later_makes_another_evaluation(shop: Shop, folder: Path) -> None:
    catalogue, maker = shop
    small = {"models": ["sentence"], "settings": ["most-specific"]}
    made = evaluated(catalogue, maker, folder, **small)
    assert made.protocol.pictures.startswith("1 missing")
    rows = catalogue.picture_rows.copy()
    rows[0] = -1
    other = replace(catalogue, picture_rows=rows)
    assert other.fingerprint == catalogue.fingerprint
    with pytest.raises(MismatchError, match="pictures 1 missing .* and 2 missing"):
        evaluated(other, maker, folder, **small)
    whole = replace(made.protocol, pictures="")
    assert whole.differences(made.protocol) == [f"pictures none and {made.protocol.pictures}"]


def test_odd_calls_are_refused_before_any_work(shop: Shop, folder: Path) -> None:
    for error, match, said in (
        (UnknownNameError, "clip-x", {"models": ["clip-x"]}),
        (UnknownNameError, "setting", {"settings": ["some"]}),
        (UsageError, "no seed", {"seeds": ()}),
        (UsageError, "no model", {"models": []}),
        (UsageError, "own options", {"published": True}),
        (UsageError, "0 jobs", {"jobs": 0}),
    ):
        with pytest.raises(error, match=match):
            evaluated(*shop, folder, **said)
    other = replace(shop[0], tree=CategoryTree([*shop[0].tree.paths, ("Home",)]))
    with pytest.raises(MismatchError, match="another category tree"):
        evaluate_models(shop[0].split("train"), None, other.split("test"), shop[1], folder)
    with pytest.raises(DataError, match="no evaluation of categories"):
        ModelsEvaluation.open(folder / "nothing")
    strange = folder / "mine"
    strange.mkdir(parents=True)
    (strange / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="holds other things"):
        evaluated(*shop, strange, models=["sentence"])


def test_published_training_is_said_and_has_its_own_options(shop: Shop, folder: Path) -> None:
    from diptych.commerce.category_to_image.evaluation.grid import CellName, options_for

    protocol = GridProtocol(
        ("clip-ia",), ("most-general",), (3,), "", "", "", "", "label", "path", True, {}, 0
    )
    options = options_for(protocol, CellName("most-general", "clip-ia", 3))
    assert (options.temperature, options.batch_size, options.duplicates) == (1.0, 8, "negatives")
    assert (options.model, options.seed, options.query) == ("clip-ia", 3, "path")
    assert "compat published" in protocol.line()


def test_a_trained_model_is_measured_as_it_is(shop: Shop, found: ModelsEvaluation, folder: Path) -> None:
    catalogue, maker = shop
    test, (model, rows) = held_out(catalogue), trained(shop, seed=0)
    tested = maker.products(test, missing="none")
    made = evaluate_given(model, test, tested, rows, folder, given="a model", query="name")
    assert (made.models, made.protocol.seeds) == (("clip-ita",), ())
    first, mine = (one.value("most-specific", "clip-ita", "P@5").values[0] for one in (found, made))
    assert mine == pytest.approx(first)
    assert "nothing fitted" in made.line()
    with pytest.raises(DataError, match="features of 12 products"):
        evaluate_given(model, test.subset([0, 1]), tested, rows, folder, given="")
