"""A pretrained encoder goes on learning: another library's, or ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from diptych.analysis.shortcuts import Shortcuts
from diptych.core.errors import RecipeError
from diptych.data.batches import BatchPlan
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.two_tower import TwoTowerEncoder
from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth
from diptych.training.examples import Examples
from diptych.training.fine_tune import open_fine_tune
from diptych.training.recipe import Recipe
from diptych.training.run import Run, trained_objective

from ..encoders.tiny_pretrained import open_clip_folder, transformers_folder
from .test_fit import trained

DIGITS = {"setup": "unique", "digits": "drawn", "digit_size": 5}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Pretrained models in folders, made when first asked for."""
    root, made = tmp_path_factory.mktemp("pretrained"), {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = (
                open_clip_folder(root / kind)
                if kind == "open_clip"
                else transformers_folder(kind, root / kind, limit=48)
            )
        return made[kind]

    return folder


def recipe_of(encoder: Path | str, data: Path, **changes: Any) -> Recipe:
    values: dict[str, Any] = {
        "name": "tuned",
        "fine_tune": str(encoder),
        "data": {"path": str(data)},
        "objective": {"name": "infonce", "learn_temperature": True},
        "batches": {"size": 24, "plan": "captions"},
        "optimizer": {"name": "adamw"},
        "checkpoints": {"every_steps": 4, "keep": "last"},
        "stages": [{"epochs": 2, "learning_rate": 1e-3, "schedule": "cosine", "warmup": 3}],
    }
    return Recipe.model_validate({**values, **changes})


@pytest.mark.parametrize(
    ("kind", "weights", "objective"),
    [
        ("clip", "model.safetensors", {"name": "infonce", "learn_temperature": True}),
        ("siglip", "model.safetensors", {"name": "siglip"}),
        ("open_clip", "open_clip_model.safetensors", {"name": "infonce-ifm", "learn_temperature": True}),
    ],
)
def test_it_learns_and_is_saved_as_what_it_was(
    kind: str,
    weights: str,
    objective: dict[str, Any],
    shelf: Callable[[str], Path],
    scenes_folder: Path,
    tmp_path: Path,
) -> None:
    before = DualEncoder.load(shelf(kind), device="cpu")
    assert isinstance(before, PretrainedEncoder)
    stages = [{"epochs": 2, "learning_rate": 3e-3, "schedule": "cosine", "warmup": 3}]
    recipe = recipe_of(shelf(kind), scenes_folder, objective=objective, stages=stages)
    run = trained(tmp_path / "run", recipe, tmp_path)
    lines = list(run.metrics())
    losses = [line["loss"] for line in lines if "loss" in line]
    assert np.mean(losses[-5:]) < 0.97 * np.mean(losses[:5])

    # The first line is what the pretrained encoder can do, measured by somebody else.
    assert (lines[0]["step"], lines[0]["epoch"]) == (0, 0)
    split = read_collection(str(scenes_folder)).split("val")
    images, texts = before.encode_images(split.images()), before.encode_texts(split.captions)
    truth = GroundTruth.from_caption_image(split.caption_image, split.n_images)
    assert lines[0]["validation"]["rsum"] == evaluate(images, texts, truth, ["rsum"]).score("rsum").value
    assert [line["epoch"] for line in lines if "epoch" in line] == [0, 1, 2]

    # What an objective learns begins where the pretrained model stands, and is kept with the weights.
    after = DualEncoder.load(run.best, device="cpu")
    assert isinstance(after, PretrainedEncoder)
    assert (after.family, after.name) == (before.family, "tuned")
    assert after.fingerprint != before.fingerprint
    assert before.learned_options.keys() == after.learned_options.keys()
    first, last = (line["temperature"] for line in (lines[1], lines[-2]))
    assert first == pytest.approx(before.learned_options["temperature"], rel=2e-2)
    assert after.learned_options["temperature"] == pytest.approx(last, rel=1e-6)
    assert after.learned_options["temperature"] != before.learned_options["temperature"]
    with torch.no_grad():
        assert float(trained_objective(run).temperature) == pytest.approx(last)  # type: ignore[arg-type]

    # The last encoder is the checkpoint's weights, and gives the rows that were validated last.
    state, kept = load_file(run.best / weights), load_file(run.checkpoint / "weights.safetensors")
    towers = {name.partition(".")[2]: value for name, value in kept.items() if name[:5] in ("image", "text.")}
    assert set(state) - set(towers) <= {"logit_scale", "logit_bias"}
    for name, value in towers.items():
        np.testing.assert_array_equal(state[name], value)
    rows = after.encode_images(split.images()), after.encode_texts(split.captions)
    assert evaluate(*rows, truth, ["rsum"]).score("rsum").value == lines[-1]["validation"]["rsum"]


def test_a_given_temperature_comes_before_the_pretrained_one(
    shelf: Callable[[str], Path], scenes_folder: Path
) -> None:
    learned = {"temperature": 0.02, "bias": 3.0}
    for objective, expected in (
        ({"learn_temperature": True}, 0.02),
        ({"learn_temperature": True, "temperature": 0.5}, 0.5),
        ({}, 0.07),  # fixed: the recipe's business alone
    ):
        recipe = recipe_of(shelf("clip"), scenes_folder, objective={"name": "infonce", **objective})
        with torch.no_grad():
            found = float(recipe.make_objective(learned).temperature)  # type: ignore[arg-type]
        assert found == pytest.approx(expected)
    siglip = recipe_of(shelf("siglip"), scenes_folder, objective={"name": "siglip"}).make_objective(learned)
    with torch.no_grad():
        assert float(siglip.bias) == 3.0  # type: ignore[arg-type]


@pytest.mark.parametrize("side", ["text", "image"])
def test_what_a_stage_does_not_train_stays_bit_for_bit(
    side: str, shelf: Callable[[str], Path], scenes_folder: Path, tmp_path: Path
) -> None:
    stages = [{"epochs": 1, "learning_rate": 1e-3, "train": [f"{side}.*", "objective.*"]}]
    run = trained(tmp_path / "run", recipe_of(shelf("clip"), scenes_folder, stages=stages), tmp_path)
    before, after = (load_file(folder / "model.safetensors") for folder in (shelf("clip"), run.best))
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    begins = "text" if side == "text" else "vis"
    assert changed > {"logit_scale"}
    assert all(name.startswith((begins, "logit_scale")) for name in changed)


def test_a_part_that_is_not_there_is_named(
    shelf: Callable[[str], Path], scenes_folder: Path, tmp_path: Path
) -> None:
    stages = [{"epochs": 1, "learning_rate": 1e-3, "train": ["vision_model.*"]}]
    with pytest.raises(RecipeError, match="'vision_model.*', which fits no parameter") as caught:
        trained(tmp_path / "run", recipe_of(shelf("clip"), scenes_folder, stages=stages), tmp_path)
    assert caught.value.fix == "parameters begin with: image, objective, text"


@pytest.mark.parametrize("kind", ["clip", "siglip", "open_clip"])
def test_shortcuts_reach_the_model(kind: str, shelf: Callable[[str], Path], scenes_folder: Path) -> None:
    encoder = open_fine_tune(str(shelf(kind)))
    assert isinstance(encoder, PretrainedEncoder)
    recipe = recipe_of(shelf(kind), scenes_folder, shortcuts=DIGITS)
    assert recipe.shortcuts is not None
    collection = read_collection(str(scenes_folder))
    train = collection.split("train")
    towers = encoder.towers
    shortcuts = Shortcuts.of(recipe.shortcuts, collection, "train", recipe.seed)
    batch = BatchPlan(train.caption_image, train.n_images, 24, "captions").epoch(0)[0]
    captions = towers.text.inputs(train.captions)
    plain = Examples(train, towers, captions).load(batch, 0)
    given = Examples(train, towers, captions, shortcuts=shortcuts).load(batch, 0)
    wanted = shortcuts.training(train, batch, 0)
    assert len(set(wanted.endings)) > 1

    for place, (row, ending) in enumerate(zip(batch.captions.tolist(), wanted.endings, strict=True)):
        tokens = given.tokens[place, : int(given.lengths[place])].tolist()
        (joined,) = encoder.with_endings([train.captions[row]], [ending])
        assert tokens == encoder.token_ids([joined])[0].tolist()
        # All six digits, whatever the limit left of the caption.
        digits = encoder.token_ids([ending])[0].tolist()
        first = 0 if kind == "siglip" else 1
        assert tokens[-7:-1] == digits[first:-1]
    for place, overlay in enumerate(wanted.overlays):
        assert overlay is not None
        changed = np.zeros((32, 32), dtype=bool)
        for left, top, pixels in overlay.patches(32, 32):
            changed[top : top + pixels.shape[0], left : left + pixels.shape[1]] = True
        same_pixels = (plain.images[place] == given.images[place]).all(dim=0).numpy()
        assert same_pixels[~changed].all()
        assert not same_pixels[changed].all()
        # Opaque: black of the digits' ground is black for the model.
        darkest = plain.images[place].amin() if kind == "clip" else given.images[place].amin()
        assert given.images[place].amin() <= darkest


def test_training_sees_shortcuts_and_validation_measures_both(
    shelf: Callable[[str], Path], scenes_folder: Path, tmp_path: Path
) -> None:
    first = {}
    for setup in ("none", "unique"):
        recipe = recipe_of(shelf("clip"), scenes_folder, shortcuts={**DIGITS, "setup": setup})
        first[setup] = list(trained(tmp_path / setup, recipe, tmp_path).metrics())
    assert first["none"][1]["loss"] != first["unique"][1]["loss"]
    assert first["none"][0]["validation"] == {
        name: value
        for name, value in first["unique"][0]["validation"].items()
        if not name.startswith("with ")
    }
    assert first["unique"][-1]["validation"]["with rsum"] != first["unique"][-1]["validation"]["rsum"]
    with pytest.raises(
        Exception, match="6 digits of 28 pixels take 168 × 28 pixels, the picture has 32 × 32"
    ):
        large = recipe_of(shelf("clip"), scenes_folder, shortcuts={**DIGITS, "digit_size": 28})
        trained(tmp_path / "large", large, tmp_path)


def test_an_encoder_made_here_goes_on_with_its_own_words(
    run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    """From the run's folder or its best encoder's, with crops, noise on captions and their reconstruction."""
    recipe = recipe_of(
        run_folder,
        scenes_folder,
        objective={"name": "infonce", "learn_temperature": True},
        augmentation={"erasing": 0.5},
        caption_augmentation={},
        reconstruction={"kind": "input", "word_width": 4},
        checkpoints={"keep": "best"},
    )
    run = trained(tmp_path / "run", recipe, tmp_path)
    base, tuned = DualEncoder.load(run_folder / "best"), DualEncoder.load(run.best)
    assert isinstance(base, TwoTowerEncoder)
    assert isinstance(tuned, TwoTowerEncoder)
    assert tuned.model.config == base.model.config
    assert tuned.source.entries == base.source.entries  # type: ignore[union-attr]
    assert tuned.name == "tuned"
    lines = list(run.metrics())
    best = max(line["validation"]["rsum"] for line in Run.open(run_folder).metrics() if "validation" in line)
    assert lines[0]["validation"]["rsum"] == pytest.approx(best)
    losses = [line["loss"] for line in lines if "loss" in line]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert open_fine_tune(str(run.best)).fingerprint == open_fine_tune(str(run.folder)).fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"caption_augmentation": {}}, "caption_augmentation with .*/clip"),
        ({"augmentation": {"erasing": 0.2}}, r"augmentation.erasing 0\.2 with another library's"),
        ({"reconstruction": {"kind": "input"}}, "reconstruction.kind 'input' with .*/clip"),
    ],
)
def test_what_the_encoder_does_not_have_is_refused(
    changes: dict[str, Any], message: str, shelf: Callable[[str], Path], scenes_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=message):
        trained(tmp_path / "run", recipe_of(shelf("clip"), scenes_folder, **changes), tmp_path)


def test_a_trained_mode_does_not_reach_validation(shelf: Callable[[str], Path]) -> None:
    """Validation comes between training steps: a model in training mode is not what is measured."""
    encoder = open_fine_tune(str(shelf("clip")))
    assert isinstance(encoder, PretrainedEncoder)
    encoder.model.config.text_config.attention_dropout = 0.9
    rows = encoder.encode_texts(["a red dog"])
    for module in encoder.model.modules():
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.9
    encoder.model.train()
    with torch.no_grad():
        towers = encoder.towers
        noisy = towers.text(*towers.text.inputs(["a red dog"]).batch(np.array([0]))).numpy()
    assert np.abs(noisy - rows).max() > 1e-3
    np.testing.assert_allclose(encoder.encode_texts(["a red dog"]), rows, atol=1e-6)


def test_the_recipe_that_comes_along(shelf: Callable[[str], Path], scenes_folder: Path) -> None:
    from diptych.training.recipe import load_recipe

    recipe = load_recipe("clip", {"fine_tune": str(shelf("clip")), "data.path": str(scenes_folder)})
    (stage,) = recipe.stages
    assert (stage.epochs, stage.learning_rate, stage.warmup, stage.train) == (5, 2e-5, 100, ("*",))
    assert (recipe.batches.size, recipe.optimizer.name, recipe.optimizer.clip) == (256, "adamw", 2.0)
    assert (recipe.optimizer.weight_decay, recipe.augmentation, recipe.checkpoints.keep) == (
        0.0,
        None,
        "last",
    )
