"""Evaluations of models of categories, and the errors of their first products."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_evaluation import SMALL, evaluated, shop_and_maker

from diptych.commerce.catalogue import Catalogue, judge
from diptych.commerce.category_to_image.evaluation import ModelsEvaluation, evaluate_models
from diptych.commerce.category_to_image.features import CategoryFeatures, FeatureMaker
from diptych.commerce.category_to_image.rankers import (
    CATEGORY_MEASURES,
    MIXED,
    RANKERS,
    Mixed,
    learn_mixed,
    measure_ranker,
)
from diptych.commerce.category_to_image.results import (
    choose_examples,
    confused_siblings,
    count_errors,
    scores_of,
)
from diptych.commerce.category_to_image.training import TrainedModel, train
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.core.job import Job

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
    return train(shop[1].products(learned), rows, options), rows


def test_a_cell_is_what_training_and_measuring_by_hand_give(shop: Shop, found: ModelsEvaluation) -> None:
    catalogue, maker = shop
    test = held_out(catalogue)
    model, rows = trained(shop, seed=1)
    judged = judge(test, "most-specific")
    expected = measure_ranker(model, maker.products(test), rows, judged)
    cell = found.cells("most-specific", "clip-ita")[1]
    for name in CATEGORY_MEASURES:
        assert np.array_equal(cell.result.per_query["t2i"][name], expected.per_query["t2i"][name])
    assert cell.result.value("R@1", "i2t") == expected.value("R@1", "i2t")
    assert cell.about["fingerprint"] == model.fingerprint
    assert np.array_equal(test.place[cell.first], cell.found)
    assert np.array_equal(cell.right, cell.result.per_query["t2i"]["P@1"] == 1)
    guessed = cell.guess == judged.labels
    assert guessed.mean() == pytest.approx(cell.result.value("R@1", "i2t"))


def test_numbers_agree_with_values_per_category(shop: Shop, found: ModelsEvaluation) -> None:
    depth = shop[0].tree.depth
    for setting, numbers in found.numbers["settings"].items():
        for row in scores_of(numbers):
            cells, model = found.cells(setting, row["model"]), row["model"]
            each = np.mean([cell.result.per_query["t2i"]["mAP@10"] for cell in cells], axis=0)
            value = row["values"]["mAP@10"]
            assert value["mean"] == pytest.approx(each.mean())
            assert value["low"] <= value["mean"] + 1e-9
            assert value["chance"] == cells[0].result.score("mAP@10", "t2i").chance
            groups = depth[cells[0].nodes]
            for level in (one for one in scores_of(numbers, "levels") if one["model"] == model):
                here = groups == level["group"]
                assert level["categories"] == here.sum()
                assert level["values"]["mAP@10"]["mean"] == pytest.approx(each[here].mean())
            errors = numbers["errors"][model]
            assert errors["runs"] == len(cells)
            assert errors["all"]["asked"] == len(cells) * len(groups)
            assert errors["all"]["right"] == sum(int(cell.right.sum()) for cell in cells)
            for name in ("asked", "wrong"):
                assert errors["all"][name] == errors["seen"][name] + errors["unseen"][name]
            lines = (one for one in scores_of(numbers, "seen") if one["model"] == model)
            seen = {bool(one["group"]): one for one in lines}
            for is_seen, group in seen.items():
                parts = [cell.result.per_query["t2i"]["P@1"][cell.seen == is_seen] for cell in cells]
                means = [part.mean() for part in parts if len(part)]
                assert group["values"]["P@1"]["mean"] == pytest.approx(np.mean(means))
    unseen = found.numbers["settings"]["all"]["unseen"]
    masks = [cell.seen for model in found.models for cell in found.cells("all", model)]
    rows = np.flatnonzero(~np.any(masks, axis=0))
    nodes = found.cells("all", "bm25")[0].nodes[rows]
    assert [tuple(one["category"]) for one in unseen] == [shop[0].tree.paths[node] for node in nodes]
    specific = found.numbers["settings"]["most-specific"]
    assert {one["run"] for one in specific["differences"]} == {"bm25", "sentence", "clip-i"}
    assert (specific["baseline"], "Holm over 24 comparisons" in specific["tests"]) == ("clip-ita", True)
    assert all(one["right"] == (one["category"] == one["found"]) for one in specific["examples"]["clip-ita"])
    assert "1 products without a category are no candidates" in specific["line"]
    for part in ("relevance by label", "seeds 0, 1", "train 12, test 12", "grid", "lsa"):
        assert part in found.line(), part


def test_finished_units_are_kept_and_a_process_gives_the_same_bits(
    shop: Shop, found: ModelsEvaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    def run(job: Job[Any], units: Any, work: Any, **given: Any) -> None:
        sent.append(pickle.loads(pickle.dumps((given["setup"], given["setup_args"], work, units))))  # noqa: S301

    monkeypatch.setattr(Job, "run", run)
    again = evaluated(*shop, found.folder)
    assert again.numbers == found.numbers
    assert again.tables()[0].texts == found.tables()[0].texts
    setup, given, work, units = sent[0]  # what a worker is sent
    made, kept = work(setup(*given), units["all-clip-ita-seed-0"]), found.cells("all", "clip-ita")[0]
    assert made.about["fingerprint"] == kept.about["fingerprint"]
    assert np.array_equal(made.score, kept.score)


def test_it_grows_by_models_and_seeds_and_refuses_another_protocol(shop: Shop, folder: Path) -> None:
    small = {"settings": ["most-general"], "models": ["sentence", "clip-t"]}
    first = evaluated(*shop, folder, **{**small, "seeds": (0,)})
    before = {file: file.stat().st_mtime_ns for file in folder.glob("units/*.npz")}
    assert len(before) == 2
    grown = evaluated(*shop, folder, **{**small, "models": ["sentence", "clip-t", "clip-a"]})
    assert grown.models == ("sentence", "clip-t", "clip-a")
    assert len(grown.cells("most-general", "clip-t")) == 2
    assert all(file.stat().st_mtime_ns == when for file, when in before.items())
    assert grown.value("most-general", "sentence", "P@1") == first.value("most-general", "sentence", "P@1")
    with pytest.raises(MismatchError, match="query 'name', requested 'path'"):
        evaluated(*shop, folder, **small, query="path")
    with pytest.raises(MismatchError, match="options.epochs 2, requested 3"):
        evaluated(*shop, folder, **{**small, "options": SMALL.model_copy(update={"epochs": 3})})


def test_what_the_features_do_not_allow_is_left_out_or_refused(shop: Shop, folder: Path) -> None:
    without = replace(shop[1], image=None)
    made = evaluated(shop[0], without, folder, settings=["most-general"], seeds=(0,), models=None)
    assert set(made.about["left_out"]) == {"clip", "clip-i", "clip-it", "clip-ia", "clip-ita"}
    assert "needs image" in made.about["left_out"]["clip-ita"]
    assert made.baseline == "clip-ta"
    with pytest.raises(UsageError, match="dual encoder"):
        evaluated(*shop, folder / "other", models=["clip"])
    bare = shop[0].subset(range(len(shop[0])))
    bare = replace(bare, attributes=[() if name == "train" else ("red",) for name in bare.splits])
    with pytest.raises(UsageError, match="clip-ta needs attributes, which no product has"):
        evaluated(bare, shop[1], folder / "bare", models=["clip-ta"], settings=["most-specific"], seeds=(0,))


def test_odd_calls_are_refused_before_any_work(shop: Shop, folder: Path) -> None:
    for error, match, said in (
        (UnknownNameError, "clip-x", {"models": ["clip-x"]}),
        (UnknownNameError, "setting", {"settings": ["some"]}),
        (UsageError, "no model is given", {"models": []}),
    ):
        with pytest.raises(error, match=match):
            evaluated(*shop, folder, **said)


def test_a_trained_model_is_measured_as_it_is(shop: Shop, found: ModelsEvaluation, folder: Path) -> None:
    ready = (trained(shop, seed=0)[0], "a model")
    made = evaluate_models(None, None, held_out(shop[0]), shop[1], folder, given=ready)
    first, mine = (one.value("most-specific", "clip-ita", "P@5").values[0] for one in (found, made))
    assert (made.models, made.seeds, mine) == (("clip-ita",), (), pytest.approx(first))
    assert "nothing fitted" in made.line()


class TestMixed:
    def test_scores_are_mixed_by_whether_training_saw_the_words(self, shop: Shop) -> None:
        catalogue, maker = shop
        test, (model, rows) = held_out(catalogue), trained(shop, seed=0)
        products = maker.products(test)
        frozen, nodes = RANKERS["sentence"](products), judge(test, "most-specific").nodes
        queries = rows.part(nodes)
        seen = frozenset(queries.texts[:2])
        mixed = Mixed(model, frozen, seen, (0.0, 0.5), ((0.2, 0.5), (0.1, 2.0)))
        scores = mixed.category_rows(queries) @ mixed.product_rows(products).T
        mine = (model.category_rows(queries) @ model.product_rows(products).T - 0.2) / 0.5
        theirs = (
            (queries.text @ products.title.T - 0.1) / 2 * products.present["title"]
        )  # without a title: an average one
        np.testing.assert_allclose(scores[:2], (mine[:2] + theirs[:2]) / 2, atol=1e-5)
        known = queries.text[2:].any(axis=1)  # words that the encoder does not know have trained scores alone
        np.testing.assert_allclose(scores[2:], np.where(known[:, None], theirs[2:], mine[2:]), atol=1e-5)

    def test_the_rule_is_learned_on_categories_held_out_of_training(self, shop: Shop, folder: Path) -> None:
        made = evaluated(*shop, folder, settings=["all"], models=[MIXED], seeds=(0,))
        about = made.cells("all", MIXED)[0].about["ranker"]
        assert sum(about["validation categories"]) > 0
        assert set(about["weights of the trained"]) == {"never seen", "seen"}
        assert "mixed" in {row[0].text for row in made.tables()[0].rows}
        # Too few categories to hold one out.
        features, rows = shop[1].products(shop[0].split("train")), trained(shop, 0)[1]
        options = SMALL.model_copy(update={"setting": "most-specific", "seed": 1})
        mixed = learn_mixed(features, rows, options)
        assert mixed.weights == (0.0, 1.0)
        assert "at least two are needed" in mixed.describe()["rule"]


# Two trees; "Bags" stands under both.
TREE = CategoryTree(
    [
        ("Men", "Shoes", "Boots"),
        ("Men", "Shoes", "Trainers"),
        ("Men", "Bags"),
        ("Women", "Shoes", "Boots"),
        ("Women", "Bags", "Totes", "Canvas"),
    ]
)


def node(*path: str) -> int:
    return TREE.node(path)


MEN, WOMEN = node("Men"), node("Women")
SHOES, BOOTS, TRAINERS = node("Men", "Shoes"), node("Men", "Shoes", "Boots"), node("Men", "Shoes", "Trainers")
MEN_BAGS, TOTES = node("Men", "Bags"), node("Women", "Bags", "Totes")


def test_by_paths_a_product_below_is_right() -> None:
    asked, found = np.array([SHOES, BOOTS]), np.array([BOOTS, SHOES])
    assert count_errors(TREE, asked, found)["wrong"] == 2
    judged = count_errors(TREE, asked, found, np.array([True, False]))
    assert (judged["right"], judged["wrong"], judged["kinds"]) == (1, 1, {"ancestor": 1})
    assert count_errors(TREE, np.array([MEN]), np.array([MEN]))["same_tree_share"] is None


@given(data=st.data())
def test_counts_agree_with_paths_read_one_by_one(data: st.DataObject) -> None:
    nodes = st.integers(0, len(TREE) - 1)
    asked = data.draw(st.lists(nodes, min_size=1, max_size=12))
    found = data.draw(st.lists(st.integers(-1, len(TREE) - 1), min_size=len(asked), max_size=len(asked)))
    counts = count_errors(TREE, np.array(asked), np.array(found))
    same = other = 0
    kinds, depths, distances = Counter[str](), Counter[int](), Counter[int]()
    for c, p in zip(asked, found, strict=True):
        if p < 0 or c == p:
            continue
        a, b = TREE.paths[c], TREE.paths[p]
        same, other = same + (a[0] == b[0]), other + (a[0] != b[0])
        shared = sum(a[:level] == b[:level] for level in range(1, min(len(a), len(b)) + 1))
        distances[len(a) + len(b) - 2 * shared] += 1  # two roots hang under nothing: 2 edges apart
        if a[0] == b[0]:
            depths[len(b) - len(a)] += 1
        rules = {"other tree": a[0] != b[0], "ancestor": a[: len(b)] == b, "descendant": b[: len(a)] == a}
        rules |= {"sibling": a[:-1] == b[:-1], "same tree": True}
        kinds[next(kind for kind, holds in rules.items() if holds)] += 1
    wrong, nothing = same + other, found.count(-1)
    assert counts == {
        "asked": len(asked),
        "right": len(asked) - wrong - nothing,
        "nothing": nothing,
        "same_tree": same,
        "other_tree": other,
        "depths": depths,
        "distances": distances,
        "kinds": kinds,
        "wrong": wrong,
        "same_tree_share": pytest.approx(same / wrong) if wrong else None,
    }


def path(node: int) -> list[str]:
    return list(TREE.paths[node])


def test_siblings_by_hand() -> None:
    truth = np.array([BOOTS, BOOTS, BOOTS, TRAINERS, TRAINERS, SHOES, MEN, MEN_BAGS])
    guess = np.array([TRAINERS, TRAINERS, BOOTS, BOOTS, -1, MEN_BAGS, WOMEN, MEN_BAGS])
    first, second = confused_siblings(TREE, truth, guess)
    assert (first["left"], first["right"], first["products"]) == (path(BOOTS), path(TRAINERS), 5)
    assert (first["left_as_right"], first["right_as_left"], first["confused"]) == (2, 1, 3)
    # two roots are of two trees, and no siblings
    assert sorted([second["left"], second["right"]]) == sorted([path(SHOES), path(MEN_BAGS)])
    assert confused_siblings(TREE, truth, truth) == []


def test_examples_show_every_kind_and_never_nothing() -> None:
    asked = np.array([BOOTS, BOOTS, SHOES, MEN, TRAINERS, TOTES, BOOTS])
    found = np.array([TRAINERS, SHOES, MEN_BAGS, WOMEN, TRAINERS, -1, BOOTS])
    score = np.array([0.9, 0.2, 0.8, 0.95, 0.7, 0.0, 0.6])
    # the surest of two siblings and of two right ones in a tree
    assert choose_examples(TREE, asked, found, asked == found, score) == [3, 0, 4, 1]
