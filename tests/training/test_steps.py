from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightning_fabric import Fabric
from lightning_fabric.plugins import MixedPrecision, Precision
from pydantic import ValidationError
from refusals import refused
from torch import Tensor, nn

from diptych.analysis.shortcuts.codes import DIGIT_WORDS
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.context import stop_when
from diptych.core.errors import ImageError, Interrupted, MismatchError, RecipeError
from diptych.data.batches import Batch, BatchPlan
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.preprocessing import Augmentation
from diptych.encoders.two_tower import TwoTowerModel
from diptych.objectives.similarity import similarity_of
from diptych.training.averaging import WeightAverage, averaged_steps, batch_norms
from diptych.training.batch_loss import BatchLoss, Losses
from diptych.training.evaluations import shortcuts_to_evaluate
from diptych.training.examples import Examples
from diptych.training.features import FeatureOptions, FeatureStore
from diptych.training.fit import fit
from diptych.training.recipe import Recipe
from diptych.training.run import Run
from diptych.training.sections import Averaging, Stage
from diptych.training.towers import learning_rate
from diptych.training.trainee import Reconstructor, Trainee, make_optimizer
from tests.training.conftest import tiny


def rates(steps_per_epoch: int, **options: object) -> list[float]:
    stage = Stage.model_validate({"epochs": 4, "learning_rate": 1.0, **options})
    return [learning_rate(stage, step, steps_per_epoch) for step in range(4 * steps_per_epoch)]


@given(st.integers(50, 5000), st.integers(1, 5))
def test_exactly_as_many_as_asked_up_to_the_last_step(steps: int, checkpoints: int) -> None:
    averaging = Averaging(checkpoints=checkpoints)
    found = averaged_steps(steps, averaging)
    assert len(found) == checkpoints
    assert found[-1] == steps
    assert found[0] > steps * (1 - averaging.share)
    assert len({after - before for before, after in pairwise(found)}) <= 1


def test_the_mean_of_the_weights_takes_their_place() -> None:
    layer = nn.Linear(1, 1)
    layer.bias.requires_grad = False
    average = WeightAverage(layer, Averaging(share=1.0, checkpoints=2), steps_per_epoch=4)
    for step in range(1, 5):
        nn.init.constant_(layer.weight, float(step))
        nn.init.constant_(layer.bias, float(step))
        average.after_step(step)
    assert average.count == 2  # steps 2 and 4
    average.finish(lambda: pytest.fail("there is no batch norm to refresh"))
    assert layer.weight.item() == 3.0
    assert layer.bias.item() == 4.0  # not trained, not averaged
    assert average.count == 0
    assert not average.mean


@pytest.mark.parametrize("refresh", [True, False])
def test_batch_norm_gets_the_statistics_of_the_mean(refresh: bool) -> None:
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1))
    norm = net[1]
    average = WeightAverage(
        net, Averaging(share=1.0, checkpoints=2, refresh_batch_norm=refresh), steps_per_epoch=2
    )
    for step, weight in ((1, 1.0), (2, 5.0)):
        nn.init.constant_(net[0].weight, weight)  # type: ignore[arg-type]
        average.after_step(step)
    batches = [torch.tensor([[0.0], [2.0]]), torch.tensor([[2.0], [4.0]])]
    stale = norm.running_mean.item()  # type: ignore[operator, union-attr]
    average.finish(lambda: (lambda batch=batch: net(batch) for batch in batches))  # type: ignore[misc]
    # The mean weight is 3; the batches' means are 3·1 and 3·3, and their plain mean is 6.
    assert norm.running_mean.item() == pytest.approx(6.0 if refresh else stale)  # type: ignore[operator, union-attr]
    assert norm.momentum == 0.1


def test_matrices_decay_and_vectors_and_word_embeddings_do_not(recipe: Recipe) -> None:
    values = recipe.model_dump() | {"reconstruction": {"kind": "input", "word_width": 3}}
    recipe = Recipe.model_validate(values | {"optimizer": {"name": "adamw", "weight_decay": 0.5}})
    trainee, _ = trainee_of(recipe)
    groups = make_optimizer(trainee, recipe, recipe.stages[0]).param_groups
    decay = {id(parameter): group["weight_decay"] for group in groups for parameter in group["params"]}
    found = {name: (value.ndim, decay[id(value)]) for name, value in trainee.named_parameters()}
    assert len(decay) == len(found)
    words = {"text.embed.weight", "reconstruction.decoder.embed.weight"}
    assert words < found.keys()
    for name, (dimensions, decayed) in found.items():
        assert decayed == (0.5 if dimensions >= 2 and name not in words else 0.0), name


def test_a_frozen_batch_norm_keeps_its_statistics(recipe: Recipe) -> None:
    values = recipe.model_dump()
    values["model"]["image"]["batch_norm"] = True
    values["model"]["text"] |= {"head": "linear", "batch_norm": True}
    recipe = Recipe.model_validate(values)
    trainee, _ = trainee_of(recipe)
    assert len(batch_norms(trainee.train())) > 2
    assert batch_norms(trainee.eval()) == []
    trainee.begin(recipe.stages[0].model_copy(update={"train": ("text.*",)}))
    assert batch_norms(trainee.train()) == [trainee.text.head[-1]]  # type: ignore[index]
    assert trainee.image.head.training  # its dropout is at work
    with pytest.raises(RecipeError, match="chunk = 4 with batch norm in training"):
        BatchLoss(None, trainee, trainee, similarity_of("cosine"), False, 4)


WIDTH = 5
LATENT = {"kind": "latent", "hidden": [8, 8]}


def gradients(
    recipe: Recipe, section: Any, chunk: int | None, objective: str, precision: Precision | None = None
) -> tuple[Losses, dict[str, Tensor], float]:
    """Losses, gradients, and the share of rows that a single forward pass saw at most."""
    values = {**recipe.model_dump(), "objective": {"name": objective}, "reconstruction": section}
    values["model"]["image"]["freeze_batch_norm"] = True
    trainee, collection = trainee_of(Recipe.model_validate(values), WIDTH)
    fabric = Fabric(accelerator="cpu", devices=1, plugins=precision)
    fabric.launch()
    module, wrapped = fabric.setup(trainee, torch.optim.SGD(trainee.parameters(), lr=0.1))
    seen: list[int] = []
    trainee.text.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    # A batch in which images have several captions, with made-up latent targets.
    targets = torch.randn(collection.n_captions, WIDTH, generator=torch.Generator().manual_seed(1)).numpy()
    plan = BatchPlan(collection.caption_image, collection.n_images, 22, "captions")
    captions = trainee.text.inputs(collection.captions)  # type: ignore[operator]
    batch = Examples(collection, trainee, captions, targets=targets).load(plan.epoch(0)[0], 0)
    losses = BatchLoss(fabric, module, trainee, similarity_of("cosine"), False, chunk)(batch, 0.5, True, 3)
    fabric.clip_gradients(module, wrapped, max_norm=torch.inf)  # takes a loss scale out
    found = {n: p.grad for n, p in trainee.named_parameters() if p.grad is not None}
    return losses, found, max(seen) / len(batch.tokens)


@pytest.mark.parametrize(
    ("objective", "section"),
    [
        ("infonce", {**LATENT, "constraint": {"bound": 0.3}}),
        ("mvn", None),
        ("triplet", {"kind": "input", "beta": 2.0}),
    ],
)
def test_chunks_have_the_gradients_of_the_whole_batch(certain: Recipe, section: Any, objective: str) -> None:
    losses, whole, _ = gradients(certain, section, None, objective)
    chunked, parts, seen = gradients(certain, section, 5, objective)
    assert seen <= 5 / 20
    assert chunked.contrastive == pytest.approx(losses.contrastive, rel=1e-5)
    assert chunked.reconstruction == pytest.approx(losses.reconstruction, rel=1e-5)
    assert (losses.reconstruction > 0) == (section is not None)
    assert whole.keys() == parts.keys()
    for name, gradient in whole.items():
        # Rounding is of the size of a sum's terms: an element near 0 next to others of 200 is a sum of such terms.
        least = 1e-5 * max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(parts[name], gradient, rtol=1e-3, atol=least, msg=name)


def test_chunks_in_mixed_precision(certain: Recipe) -> None:
    """A loss scale is in every gradient once, whether it came in one piece or by way of the rows."""
    whole, parts = (
        gradients(certain, LATENT, chunk, "infonce", MixedPrecision("16-mixed", "cpu", scaler))[1]
        for chunk in (None, 5)
        for scaler in [torch.amp.GradScaler("cpu", init_scale=64.0)]
    )
    assert whole.keys() == parts.keys()
    for name, gradient in whole.items():
        assert (parts[name] - gradient).norm() <= 0.05 * gradient.norm() + 1e-3, name


def test_chunks_drop_the_same_words_both_times(recipe: Recipe) -> None:
    """With dropout a chunk is encoded twice; if the two differed, gradients would not be repeatable."""
    first, second = (gradients(recipe, None, 5, "infonce") for _ in range(2))
    assert first[0] == second[0]
    for name, gradient in first[1].items():
        assert torch.equal(gradient, second[1][name]), name


def test_a_rate_falls_as_its_schedule_says() -> None:
    found = rates(3, schedule="step", step_epochs=2, decay=0.1)
    assert found == pytest.approx([1.0] * 6 + [0.1] * 6)
    found = rates(5, schedule="cosine", final=0.1)
    assert (found[0], found[-1]) == (1.0, pytest.approx(0.1))
    assert found == sorted(found, reverse=True)
    assert found[9] + found[10] == pytest.approx(1.1)
    found = rates(5, schedule="linear", final=0.05)
    assert (found[0], found[-1]) == (1.0, pytest.approx(0.05))
    assert [a - b for a, b in pairwise(found)] == pytest.approx([0.05] * 19)
    assert rates(3, schedule="linear", per="epoch")[::3] == pytest.approx([1.0, 0.75, 0.5, 0.25])
    found = rates(3, schedule="cosine", per="epoch")
    assert found[:3] == [1.0, 1.0, 1.0]
    assert found[6] == pytest.approx(0.5)
    # As the field's per-epoch schedulers: half way down after half of the epochs, never quite at 0.
    assert found[-1] == pytest.approx((1 + math.cos(math.pi * 3 / 4)) / 2)
    for schedule in ("constant", "cosine", "linear"):
        warmed = rates(5, schedule=schedule, warmup=4)
        assert warmed[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_the_published_steps_are_averaged() -> None:
    published = Averaging(compat="published")
    assert averaged_steps(4426, published) == [4048, 4136, 4224, 4312, 4400]  # COCO
    assert averaged_steps(1133, published) == [1034, 1056, 1078, 1100, 1122]  # Flickr30k
    # To a computer the last tenth of 50 steps is not 5 steps in the published expression.
    for averaging, needed in ((Averaging(), 50), (published, 51)):
        message = "takes 5 weights from the last 0.1 .* only 49 steps"
        error = refused(RecipeError, message, averaged_steps, 49, averaging)
        assert f"at least {needed} steps" in error.fix
        assert averaged_steps(needed, averaging)


def trainee_of(recipe: Recipe, width: int | None = None) -> tuple[Trainee, Collection]:
    """What the first stage of a recipe trains, and on what."""
    collection = read_collection(str(recipe.data.path)).split("train")
    torch.manual_seed(0)
    vocabulary = Vocabulary.build(collection.captions, 1)
    model, decoder = TwoTowerModel(recipe.model, vocabulary), None
    if recipe.reconstruction is not None:
        decoder = Reconstructor(recipe.reconstruction, recipe.model.width, width, len(vocabulary))
    trainee = Trainee(model, recipe.make_objective(), decoder)
    trainee.begin(recipe.stages[0])
    return trainee, collection


@pytest.fixture
def certain(recipe: Recipe) -> Recipe:
    """The recipe without dropout."""
    text = recipe.model.text.model_copy(update={"dropout": 0.0})
    return recipe.model_copy(update={"model": recipe.model.model_copy(update={"text": text})})


MODEL = {"image": {"backbone": "test_efficientnet", "preprocessing": {"size": 32, "resize": 32}}}
QUICK = [{"epochs": 1, "learning_rate": 1e-3, "train": ["*"]}]
UNIQUE = {"setup": "unique", "digit_size": 5, "digits": "drawn"}


@pytest.fixture
def collection(scenes_folder: Path) -> Collection:
    return read_collection(scenes_folder)


def examples_of(
    recipe: Recipe, collection: Collection, **more: Any
) -> tuple[Examples, Vocabulary, Shortcuts]:
    train = collection.split("train")
    vocabulary = Vocabulary.build(train.captions, 1, DIGIT_WORDS)
    model = TwoTowerModel(recipe.model, vocabulary)
    assert recipe.shortcuts is not None
    shortcuts = Shortcuts.of(recipe.shortcuts, collection, "train", recipe.seed)
    captions = model.text.inputs(train.captions)
    return Examples(train, model, captions, shortcuts=shortcuts, **more), vocabulary, shortcuts


def test_a_batch_carries_its_numbers_on_both_sides(scenes_folder: Path, collection: Collection) -> None:
    examples, vocabulary, _ = examples_of(tiny(scenes_folder, shortcuts=UNIQUE), collection)
    train = collection.split("train")
    model = TwoTowerModel(tiny(scenes_folder).model, vocabulary)
    plain = Examples(train, model, model.text.inputs(train.captions))
    batch = Batch(np.array([3, 7]), np.array([16, 36]), np.array([0, 1]))
    with_digits, without = examples.load(batch, 0), plain.load(batch, 0)
    changed = (with_digits.images != without.images).any(dim=1)
    assert changed[:, :5].any()
    assert not changed[:, 5:].any(), "digits are in the first five rows only"
    first, bare = (
        [vocabulary.entries[token] for token in loaded.tokens[0, : loaded.lengths[0]].tolist()]
        for loaded in (with_digits, without)
    )
    assert first == [*bare[:-1], "0", "0", "0", "0", "0", "3", "<end>"]


def test_bits_are_drawn_anew_in_every_epoch(scenes_folder: Path, collection: Collection) -> None:
    bits = {**UNIQUE, "setup": "bits", "bits": 10}
    examples, *_ = examples_of(tiny(scenes_folder, shortcuts=bits), collection)
    batch = Batch(np.array([3, 7]), np.array([16, 36]), np.array([0, 1]))
    one, again, later = (examples.load(batch, epoch) for epoch in (0, 0, 1))
    for side in ("tokens", "images"):
        assert torch.equal(getattr(one, side), getattr(again, side))
        assert not torch.equal(getattr(one, side), getattr(later, side))


def test_other_digits_are_refused_on_resume_and_in_an_evaluation(
    scenes_folder: Path, collection: Collection, tmp_path: Path
) -> None:
    run = Run.prepare(tmp_path / "run", tiny(scenes_folder, stages=QUICK, shortcuts=UNIQUE))
    with stop_when(lambda: True), pytest.raises(Interrupted):
        fit(run, collection)
    file = run.folder / "recipe.toml"
    file.write_text(file.read_text().replace('digits = "drawn"', 'digits = "sklearn"'))
    run = Run.open(run.folder)
    refused(MismatchError, "begun with shortcuts", fit, run, collection)
    given = run.recipe, collection, run.begun_with["shortcuts"]
    refused(MismatchError, "was trained on digits", shortcuts_to_evaluate, *given)


def test_a_reconstruction_without_a_constraint_is_weighted_by_beta(scenes_folder: Path) -> None:
    section = {"kind": "input", "word_width": 4, "beta": 0.5}
    reconstructor = Reconstructor(tiny(scenes_folder, reconstruction=section).reconstruction, 8, None, 20)
    assert (reconstructor.weight, reconstructor.total(2.0, 3.0)) == (0.5, 3.5)


def test_impossible_recipes_are_refused(scenes_folder: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"features": {}, "stages": [{"epochs": 1, "learning_rate": 1e-3}]}, "features"),
        ({"shortcuts": {**UNIQUE, "in_targets": True}}, "in_targets"),
        ({"shortcuts": {**UNIQUE, "digit_size": 28}}, "32 × 32"),
        ({"reconstruction": {"kind": "input", "word_width": 8}}, "in_targets"),
        ({"model": {**MODEL, "text": {"word_dropout": 0.1}}}, "word_dropout"),
        ({"shortcuts": {"setup": "bits"}}, "bits"),
        ({"shortcuts": {"setup": "bits", "bits": 14}}, "13"),
        ({"shortcuts": {"setup": "unique", "bits": 3}}, "bits"),
        ({"shortcuts": {"setup": "images", "in_targets": True}}, "captions no numbers"),
        ({"model": {"image": {"kind": "regions"}, "text": {"word_width": 8}}}, "region features"),
    ]
    for changes, message in cases:
        refused(ValidationError, message, tiny, scenes_folder, **{"shortcuts": UNIQUE, **changes})


def _images(examples: Examples, captions: list[int], epoch: int = 0) -> torch.Tensor:
    """The images of captions that are in one batch; image i has captions 5i to 5i + 4."""
    images, place = np.unique(np.array(captions) // 5, return_inverse=True)
    return examples.load(Batch(images, np.array(captions), place), epoch).images


def test_what_does_not_fit_is_refused_before_training(
    run_folder: Path, scenes_folder: Path, collection: Collection, tmp_path: Path
) -> None:
    n = 8 * collection.n_images
    many = replace(
        collection,
        captions=["a"] * n,
        caption_ids=[str(number) for number in range(n)],
        caption_image=np.repeat(np.arange(collection.n_images), 8),
        caption_records=None,
    )
    digits = {**UNIQUE, "setup": "per-caption"}
    run = Run.prepare(tmp_path / "run", tiny(scenes_folder, stages=QUICK, shortcuts=digits))
    refused(ImageError, "8 rows of 6 digits of 5 pixels", fit, run, many)
    assert not run.folder.exists()
    recipe = tiny(scenes_folder, stages=QUICK, warm_start=str(run_folder), shortcuts=UNIQUE)
    run = Run.prepare(tmp_path / "run", recipe)
    refused(RecipeError, "does not know the digits", fit, run, collection)


def test_every_batch_that_an_image_is_in_has_a_view_of_its_own(scenes_folder: Path, tmp_path: Path) -> None:
    """By the first of its captions there, whatever else is in the batch; decoded once per batch, not per caption."""
    train = read_collection(scenes_folder).split("train")
    model = TwoTowerModel(tiny(scenes_folder).model, Vocabulary.build(train.captions, 1))
    captions = model.text.inputs(train.captions)
    cached = FeatureStore.of(model.image, train, tmp_path, FeatureOptions(views=64))
    crops = Examples(train, model, captions, augmentation=Augmentation())
    for examples in (crops, Examples(train, model, captions, features=cached)):
        first, second = _images(examples, [0]), _images(examples, [1])
        assert not torch.equal(first, second)
        assert torch.equal(_images(examples, [0, 3, 7])[0], first[0])
        several = _images(examples, [1, 2, 12, 13])
        assert torch.equal(several[0], second[0])
        assert len(several) == 2
        assert not torch.equal(_images(examples, [0], epoch=1), first)
    plain = Examples(train, model, captions)
    assert torch.equal(_images(plain, [0]), _images(plain, [1], epoch=3))
