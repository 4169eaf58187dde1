from __future__ import annotations

from typing import Any

import pytest
import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins import MixedPrecision, Precision
from torch import Tensor

from diptych.core.errors import RecipeError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.two_tower import TwoTowerModel
from diptych.objectives.similarity import similarity_of
from diptych.training.batch_loss import BatchLoss, Losses
from diptych.training.examples import Examples, Loaded
from diptych.training.recipe import Recipe
from diptych.training.trainee import Reconstructor, Trainee

WIDTH = 5


def example(collection: Collection, model: TwoTowerModel, captions: int) -> Loaded:
    """A batch in which images have several captions, with made-up latent targets."""
    from diptych.data.batches import BatchPlan

    targets = torch.randn(collection.n_captions, WIDTH, generator=torch.Generator().manual_seed(1)).numpy()
    plan = BatchPlan(collection.caption_image, collection.n_images, captions, "captions")
    return Examples(collection, model, model.text.inputs(collection.captions), targets=targets).load(
        plan.epoch(0)[0], 0
    )


def gradients(
    recipe: Recipe,
    section: dict[str, Any] | None,
    chunk: int | None,
    objective: str,
    precision: Precision | None = None,
) -> tuple[Losses, dict[str, Tensor], float]:
    """Losses, gradients, and the share of rows that a single forward pass saw at most."""
    values = {**recipe.model_dump(), "objective": {"name": objective}, "reconstruction": section}
    values["model"]["image"]["freeze_batch_norm"] = True
    recipe = Recipe.model_validate(values)
    collection = read_collection(str(recipe.data.path)).split("train")
    torch.manual_seed(0)
    vocabulary = Vocabulary.build(collection.captions, 1)
    model = TwoTowerModel(recipe.model, vocabulary)
    reconstructor = None
    if recipe.reconstruction is not None:
        reconstructor = Reconstructor(recipe.reconstruction, recipe.model.width, WIDTH, len(vocabulary))
    trainee = Trainee(model, recipe.make_objective(), reconstructor)
    trainee.begin(recipe.stages[0])
    fabric = Fabric(accelerator="cpu", devices=1, plugins=precision)
    fabric.launch()
    optimizer = torch.optim.SGD(trainee.parameters(), lr=0.1)
    module, wrapped = fabric.setup(trainee, optimizer)
    seen: list[int] = []
    trainee.text.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    batch = example(collection, model, 22)
    losses = BatchLoss(fabric, module, trainee, similarity_of("cosine"), False, chunk)(batch, 0.5, True, 3)
    fabric.clip_gradients(module, wrapped, max_norm=torch.inf)  # takes a loss scale out
    found = {n: p.grad for n, p in trainee.named_parameters() if p.grad is not None}
    return losses, found, max(seen) / len(batch.tokens)


@pytest.mark.parametrize(
    "section",
    [
        None,
        {"kind": "latent", "hidden": [8, 8], "constraint": {"bound": 0.3}},
        {"kind": "input", "beta": 2.0},
    ],
    ids=["alone", "latent constraint", "input dual"],
)
@pytest.mark.parametrize("objective", ["infonce", "mvn", "triplet"])
def test_chunks_have_the_gradients_of_the_whole_batch(
    recipe: Recipe, section: dict[str, Any] | None, objective: str
) -> None:
    text = recipe.model.text.model_copy(update={"dropout": 0.0})
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"text": text})})
    losses, whole, _ = gradients(recipe, section, None, objective)
    chunked, parts, seen = gradients(recipe, section, 5, objective)
    assert seen <= 5 / 20
    assert chunked.contrastive == pytest.approx(losses.contrastive, rel=1e-5)
    assert chunked.reconstruction == pytest.approx(losses.reconstruction, rel=1e-5)
    assert (losses.reconstruction > 0) == (section is not None)
    assert whole.keys() == parts.keys()
    for name, gradient in whole.items():
        # Rounding is of the size of a sum's terms: an element near 0 beside others of 200 is a sum of such terms.
        least = 1e-5 * max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(parts[name], gradient, rtol=1e-3, atol=least, msg=name)


def test_chunks_in_mixed_precision(recipe: Recipe) -> None:
    """A loss scale is in every gradient once, whether it came in one piece or by way of the rows."""
    text = recipe.model.text.model_copy(update={"dropout": 0.0})
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"text": text})})
    section = {"kind": "latent", "hidden": [8, 8]}

    def found(chunk: int | None) -> dict[str, Tensor]:
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        return gradients(recipe, section, chunk, "infonce", MixedPrecision("16-mixed", "cpu", scaler))[1]

    whole, parts = found(None), found(5)
    assert whole.keys() == parts.keys()
    for name, gradient in whole.items():
        assert (parts[name] - gradient).norm() <= 0.05 * gradient.norm() + 1e-3, name


def test_chunks_drop_the_same_words_both_times(recipe: Recipe) -> None:
    """With dropout a chunk is encoded twice; if the two differed, gradients would not be repeatable."""
    first = gradients(recipe, None, 5, "infonce")
    second = gradients(recipe, None, 5, "infonce")
    assert first[0] == second[0]
    for name, gradient in first[1].items():
        assert torch.equal(gradient, second[1][name]), name


def test_batch_norm_in_training_and_chunks_do_not_go_together(recipe: Recipe) -> None:
    collection = read_collection(str(recipe.data.path)).split("train")
    trainee = Trainee(
        TwoTowerModel(recipe.model, Vocabulary.build(collection.captions, 1)), recipe.make_objective()
    )
    trainee.begin(recipe.stages[0])
    with pytest.raises(RecipeError, match="chunk = 4 with batch norm in training"):
        BatchLoss(None, trainee, trainee, similarity_of("cosine"), False, 4)
