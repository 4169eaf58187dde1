"""The model of categories and products by its formulas; training of heads, the trained model, and its run."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import ndtr
from tiny_catalogue import tiny_catalogue

from diptych.commerce.catalogue import Catalogue, category_texts
from diptych.commerce.category_to_image.features import (
    MODALITIES,
    FeatureMaker,
    Modality,
    TrainOptions,
    learning_texts,
)
from diptych.commerce.category_to_image.model import (
    AttentionPooling,
    Bags,
    CategoryProductModel,
    Normalise,
    ProjectionHead,
    category_product_loss,
    pair_losses,
    tree_margins,
)
from diptych.commerce.category_to_image.run import CategoryRun
from diptych.commerce.category_to_image.training import TrainedModel, batches_of, train
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.context import stop_when
from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.encoders.inputs import save_tensors
from tests.support.category_rows import ABOUT, made_shop


def bags_of(counts: list[int], scale: float = 1.0) -> Bags:
    rows = torch.from_numpy(scale * np.random.default_rng(0).standard_normal((sum(counts), 3)))
    return Bags(rows, torch.tensor(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)))


def slow_pooled(bags: Bags, query: list[float]) -> np.ndarray:
    """Attention over each product's attributes, one at a time; a query of zeros is the mean."""
    pooled = np.zeros((len(bags.start) - 1, len(query)))
    for place, (begin, end) in enumerate(pairwise(bags.start.tolist())):
        rows = bags.rows[begin:end].numpy()
        parts = np.array([math.exp(row @ np.array(query) / math.sqrt(len(query))) for row in rows])
        if len(rows):
            pooled[place] = sum(part * row for part, row in zip(parts, rows, strict=True)) / parts.sum()
    return pooled


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_attention_agrees_with_a_loop_and_begins_as_the_mean(counts: list[int]) -> None:
    bags, attention = bags_of(counts), AttentionPooling(3).double()
    for query in ([0.0, 0.0, 0.0], [1.0, -2.0, 0.5]):
        attention.query.data = torch.tensor(query, dtype=torch.float64)
        np.testing.assert_allclose(attention(bags).detach(), slow_pooled(bags, query), atol=1e-12)


def test_attention_does_not_overflow_and_its_gradient_is_that_of_finite_differences() -> None:
    large, attention = bags_of([3, 0, 2, 1], scale=1e4), AttentionPooling(3).double()
    attention.query.data.fill_(50.0)
    pooled = attention(large)
    pooled.sum().backward()
    assert torch.isfinite(pooled).all()
    assert torch.isfinite(attention.query.grad).all()
    assert torch.equal(pooled[3], large.rows[5])  # of one attribute the mean is itself

    def pooled_by(query: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(attention, {"query": query}, (bags_of([3, 1, 0, 2]),))

    query = torch.tensor([0.3, -0.1, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(pooled_by, query)


def at_random(model: Any) -> Any:
    chance = torch.Generator().manual_seed(1)
    for value in model.double().parameters():
        value.data = torch.randn(value.shape, generator=chance, dtype=torch.float64)
    return model.eval()


def test_two_hidden_layers_by_the_formula() -> None:
    modes: tuple[Normalise, ...] = ("before", "after")
    for normalise in modes:
        head, x = (
            at_random(ProjectionHead(5, 4, 3, normalise)),
            np.random.default_rng(0).standard_normal((6, 5)),
        )
        linear = [one for one in head.modules() if isinstance(one, torch.nn.Linear)]
        norms = [one for one in head.modules() if isinstance(one, torch.nn.LayerNorm)]

        def slow(layer: Any, x: np.ndarray) -> np.ndarray:
            return x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()

        def slow_norm(layer: Any, x: np.ndarray) -> np.ndarray:
            spread = np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
            scaled = (x - x.mean(axis=1, keepdims=True)) / spread
            return scaled * layer.weight.detach().numpy() + layer.bias.detach().numpy()

        expected = x
        for layer, norm in zip(linear[:2], norms, strict=True):
            expected = slow(layer, expected)
            before = slow_norm(norm, expected) if normalise == "before" else expected
            activated = before * ndtr(before)
            expected = activated if normalise == "before" else slow_norm(norm, activated)
        found = head(torch.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(found, slow(linear[2], expected), rtol=1e-10)


WIDTHS: dict[Modality, int] = {"image": 5, "title": 3, "attributes": 3}


def random_model(
    modalities: tuple[Modality, ...], attributes: Literal["mean", "attention"] = "mean"
) -> CategoryProductModel:
    widths = {one: WIDTHS[one] for one in modalities}
    return at_random(CategoryProductModel(widths, 4, hidden=6, width=2, attributes=attributes))


def random_rows(n: int = 6) -> dict[Modality, torch.Tensor]:
    chance = torch.Generator().manual_seed(4)
    return {
        one: torch.randn(n, width, generator=chance, dtype=torch.float64) for one, width in WIDTHS.items()
    }


def test_products_by_the_formula() -> None:
    """Eq. 7.6: image, title and attributes end to end; a learned shift of the first layer for what is missing."""
    model, rows = random_model(MODALITIES, "attention"), random_rows()
    bags = Bags(rows["attributes"][:4], torch.tensor([0, 1, 1, 3, 3, 4, 4]))
    present = {
        "image": torch.tensor([True, False, True, False, False, True]),
        "attributes": bags.start.diff() > 0,
    }
    found = model.products({**rows, "attributes": bags}, present)
    image = rows["image"] * present["image"][:, None]
    assert model.attention is not None
    joined = torch.cat([image, rows["title"], model.attention(bags)], dim=1)
    lacks = torch.stack([~present["image"], torch.zeros(6, dtype=torch.bool), ~present["attributes"]], dim=1)
    hidden = model.product_head.first(joined) + lacks.double() @ model.missing
    torch.testing.assert_close(found, torch.nn.functional.normalize(model.product_head.rest(hidden), dim=1))
    found.sum().backward()
    assert model.missing.grad is not None
    assert model.missing.grad.abs().amax(dim=1).bool().tolist() == [True, False, True]


def test_what_lies_in_the_place_of_a_missing_row_does_not_count() -> None:
    model, rows = random_model(MODALITIES), random_rows()
    present = {one: torch.zeros(6, dtype=torch.bool) for one in MODALITIES}
    with torch.no_grad():
        nothing = model.products(rows, present)
        spoiled = {**rows, "image": torch.full((6, 5), torch.nan, dtype=torch.float64)}
        torch.testing.assert_close(model.products(spoiled, present), nothing)
    assert torch.isfinite(nothing).all()  # a product with nothing at all has a row
    torch.testing.assert_close(nothing, nothing[:1].expand(6, 2))


C = np.random.default_rng(0).standard_normal((5, 3))

P = np.random.default_rng(1).standard_normal((5, 3))


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / math.sqrt((left @ left) * (right @ right)))


def slow_pairs(scores: np.ndarray, temperature: float, masked: np.ndarray | None = None) -> list[float]:
    """Eq. 7.7 and 7.8, letter by letter: the loss of every row's own pair, c→p; other pairs can be masked."""
    losses = []
    for j, row in enumerate(scores):
        own = math.exp(row[j] / temperature)
        others = [k for k in range(len(row)) if k != j and (masked is None or not masked[j, k])]
        losses.append(-math.log(own / (own + sum(math.exp(row[k] / temperature) for k in others))))
    return losses


def test_the_published_loss_letter_by_letter() -> None:
    cosines = np.array([[cosine(c, p) for p in P] for c in C])
    for temperature, balance in product((1.0, 0.07), (0.0, 0.3, 1.0)):
        found = category_product_loss(torch.from_numpy(C), torch.from_numpy(P), temperature, balance)
        to_product, to_category = (np.mean(slow_pairs(one, temperature)) for one in (cosines, cosines.T))
        assert float(found) == pytest.approx(balance * to_category + (1 - balance) * to_product, rel=1e-12)


def test_pairs_of_one_category_and_margins() -> None:
    for strength, is_masked in product((0.0, 0.4), (False, True)):
        check_pairs(is_masked, strength)


def check_pairs(is_masked: bool, strength: float) -> None:
    """A margin is added to its score; and gradients are those of finite differences."""
    same, margins = NODES[:, None] == NODES, tree_margins(TREE, NODES, strength)
    given = (torch.from_numpy(same), torch.from_numpy(margins).double())
    if not is_masked:
        same, given = None, (None, given[1])
    found, scores = pair_losses(SCORES, 0.5, *given), SCORES.numpy()
    for losses, one in zip(found, (scores.T, scores), strict=True):
        np.testing.assert_allclose(losses, slow_pairs(one + margins, 0.5, same), rtol=1e-6)

    def loss(c: torch.Tensor, p: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        cosines = torch.nn.functional.cosine_similarity(c[:, None], p[None], dim=2)
        to_category, to_product = pair_losses(cosines, t, *given)
        return (0.3 * to_category + 0.7 * to_product).mean()

    inputs = (torch.tensor(C[:4]), torch.tensor(P[:4]), torch.tensor(0.5, dtype=torch.float64))
    assert torch.autograd.gradcheck(loss, tuple(one.requires_grad_() for one in inputs))


def test_what_cannot_be() -> None:
    two = torch.eye(2)
    for refused, said in (
        *((lambda t=t: pair_losses(two, t), "temperature") for t in (0.0, -1.0, math.nan, math.inf)),
        (lambda: pair_losses(torch.ones(2, 3)), r"\(2, 3\)"),
        (lambda: category_product_loss(torch.ones(2, 3), torch.ones(3, 3)), r"\(2, 3\)"),
        (lambda: category_product_loss(two, two, balance=1.5), r"balance 1\.5"),
    ):
        with pytest.raises(UsageError, match=said):
            refused()
    with pytest.raises(NumericalError, match="learned temperature is nan"):
        pair_losses(two, torch.tensor(math.nan))


# Clothes(0) > Shirts(1), Trousers(2); Home(3) > Lamps(4)
TREE = CategoryTree([("Clothes", "Shirts"), ("Clothes", "Trousers"), ("Home", "Lamps")])

NODES = np.array([1, 2, 4, 1])

SCORES = torch.tensor(
    [[0.9, 0.5, 0.1, 0.6], [0.4, 0.8, 0.0, 0.2], [0.3, 0.2, 0.7, 0.1], [0.9, 0.5, 0.1, 0.6]],
    dtype=torch.float64,
)


def test_margins_by_hand() -> None:
    # Siblings are 2 edges apart, other trees 4, which is as far as it goes.
    expected = [[0, 0.1, 0.2, 0], [0.1, 0, 0.2, 0.1], [0.2, 0.2, 0, 0.2], [0, 0.1, 0.2, 0]]
    np.testing.assert_allclose(tree_margins(TREE, NODES, 0.2), expected, rtol=1e-6)


@given(st.integers(2, 60), st.integers(2, 20), st.integers(0, 5))
def test_an_epoch_has_every_pair_once_and_no_batch_of_one(n: int, size: int, epoch: int) -> None:
    batches = list(batches_of(n, size, 0, epoch))
    assert sorted(np.concatenate(batches).tolist()) == list(range(n))
    assert min(map(len, batches)) > 1
    assert max(map(len, batches)) <= size + 1


SMALL = TrainOptions(hidden=12, width=6, epochs=3, batch_size=10, learning_rate=5e-3)


def same(one: TrainedModel, other: TrainedModel) -> bool:
    left, right = one.model.state_dict(), other.model.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_it_learns_what_the_rows_hold() -> None:
    shop = made_shop(150)
    before = train(*shop, SMALL.model_copy(update={"epochs": 1, "learning_rate": 1e-9}), validation=shop[0])
    after = train(*shop, SMALL.model_copy(update={"epochs": 10}), validation=shop[0])
    first, last = before.about["metrics"][0], after.about["metrics"][-1]
    assert last["loss"] < 0.6 * first["loss"]
    assert max(line["mAP@10"] for line in after.about["metrics"]) > first["mAP@10"] + 0.3


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    shop = made_shop()
    one = train(*shop, SMALL, tmp_path / "run")
    with stop_when(lambda: True):
        assert same(one, train(*shop, SMALL, tmp_path / "run"))
    with pytest.raises(MismatchError, match="begun with epochs = 3, requested is 5"):
        train(*shop, SMALL.model_copy(update={"epochs": 5}), tmp_path / "run")
    with pytest.raises(MismatchError, match="products"):
        train(*made_shop(70), SMALL, tmp_path / "run")
    mended = replace(shop[0], pictured=np.ones_like(shop[0].pictured))  # an image that came later
    with pytest.raises(MismatchError, match="begun with pictures = "):
        train(mended, shop[1], SMALL, tmp_path / "run")


def test_the_best_epoch_is_kept_and_patience_ends() -> None:
    shop = made_shop(80)
    hasty = SMALL.model_copy(update={"epochs": 40, "learning_rate": 0.05, "patience": 3})
    made = train(*shop, hasty, validation=shop[0])
    values = [line["mAP@10"] for line in made.about["metrics"]]
    best = made.about["best_epoch"]
    assert best == 1 + int(np.argmax(values))
    assert made.about["epochs"] in (best + 3, 40)
    assert made.about["temperature"] == made.about["metrics"][best - 1]["temperature"]
    shorter = train(*shop, hasty.model_copy(update={"epochs": best, "patience": None}), validation=shop[0])
    assert same(made, shorter)


def test_what_does_not_belong_together() -> None:
    features, categories = made_shop()
    other = replace(categories, about={**ABOUT, "text": {"fingerprint": "another"}})
    bare = replace(features, pictured=np.zeros(60, bool))
    place = features.catalogue.place
    some = features.part(np.flatnonzero(place == place[0]))
    rows = np.array(features.title)
    rows[7, 2] = np.nan
    titles = SMALL.model_copy(update={"modalities": ("image", "title")})
    for shop, options, error, match in (
        ((replace(features, title=rows), categories), SMALL, NumericalError, "the loss is nan"),
        ((features, other), SMALL, MismatchError, "made-text.*another"),
        ((bare, categories), SMALL, DataError, "no product has a row of image"),
        (made_shop(60, uncategorised=59), SMALL, DataError, "1 of 60 products have a category"),
        ((some, categories), titles, DataError, "have the query 'Long sleeves'"),
    ):
        with pytest.raises(error, match=match):
            train(*shop, options)


def test_rows_are_unit_rows_whatever_a_product_lacks(product_head: TrainedModel) -> None:
    features, categories = made_shop()
    bare = replace(
        features,
        pictured=np.zeros(60, bool),
        catalogue=replace(features.catalogue, titles=[""] * 60),
        attributes=csr_array(features.attributes.shape, dtype=np.float32),
    )
    made = [product_head.product_rows(one) for one in (features, bare)]
    for rows in (*made, product_head.category_rows(categories)):
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


def test_a_share_of_zero_shot_is_that_share_of_every_score(product_head: TrainedModel) -> None:
    features, categories = made_shop()
    options = product_head.options.model_copy(update={"zero_shot": 0.3})
    mixed = TrainedModel(product_head.model, options, product_head.encoders, product_head.about)
    own = product_head.category_rows(categories) @ product_head.product_rows(features).T
    found = mixed.category_rows(categories) @ mixed.product_rows(features).T
    wanted = 0.7 * own + 0.3 * (categories.text @ features.title.T)
    there = features.present["title"]
    np.testing.assert_allclose(found[:, there], wanted[:, there], atol=1e-6)
    np.testing.assert_allclose(found[:, ~there], np.sqrt(0.7) * own[:, ~there], atol=1e-6)
    assert TrainOptions(modalities=("image",), zero_shot=0.3).share_of_zero_shot == 0


RUN_OPTIONS = TrainOptions(hidden=8, width=4, epochs=2, batch_size=8, query="path")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Catalogue, Path]:
    """A run over the shop of 24 products."""
    folder = tmp_path_factory.mktemp("run")
    catalogue = tiny_catalogue(folder / "pictures")
    part = catalogue.split("train")
    maker = FeatureMaker.of("grid", "lsa:8", learn_from=learning_texts(part), cache=folder / "cache")
    categories = maker.categories(category_texts(catalogue.tree, range(len(catalogue.tree)), "path"))
    model = train(maker.products(part), categories, RUN_OPTIONS, folder / "run")
    CategoryRun.finish(folder / "run", model, maker, catalogue, {"data": "tiny"})
    return catalogue, folder / "run"


def test_a_run_holds_all_that_using_it_takes(made: tuple[Catalogue, Path]) -> None:
    catalogue, folder = made
    run = CategoryRun.open(folder)
    assert (run.options, run.tree.paths) == (RUN_OPTIONS, catalogue.tree.paths)
    assert run.about["data"] == {"data": "tiny"}
    assert run.splits == dict(zip(catalogue.ids, catalogue.splits, strict=True))
    assert [line["epoch"] for line in run.model.about["metrics"]] == [1, 2]
    assert not (folder / "checkpoint").exists()
    with run.embeddings(catalogue) as embedded:
        assert np.array_equal(embedded.rows, run.model.product_rows(run.maker.products(catalogue)))
        assert (embedded.kind, list(embedded.ids)) == ("product", list(catalogue.ids))
    whole = run.category_rows(run.texts(run.tree))
    np.testing.assert_allclose(run.category_rows([run.tree.text(1), "Women > Hats"])[0], whole[1], atol=1e-6)


def test_weights_of_another_run(made: tuple[Catalogue, Path], tmp_path: Path) -> None:
    shutil.copytree(made[1], tmp_path / "run")
    run = CategoryRun.open(tmp_path / "run")
    other = train(*made_shop(image=768), RUN_OPTIONS)
    save_tensors(other.model.state_dict(), tmp_path / "run" / "model.safetensors")
    with pytest.raises(MismatchError, match=r"model.safetensors has the fingerprint"):
        _ = run.model
