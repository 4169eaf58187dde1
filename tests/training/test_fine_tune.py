"""A pretrained encoder goes on learning: another library's, or ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.numpy import load_file

from diptych.analysis.shortcuts.codes import ShortcutOptions
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.errors import DiptychError
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.two_tower import TwoTowerEncoder
from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth
from diptych.training.fine_tune import open_fine_tune
from diptych.training.recipe import Recipe
from diptych.training.run import Run, trained_objective
from diptych.training.towers import Validation

from ..encoders.tiny_pretrained import transformers_folder
from .conftest import trained

Folders = Callable[[str], Path]

DIGITS = {"setup": "unique", "digits": "drawn", "digit_size": 5}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Pretrained models in folders, made when first asked for."""
    root, made = tmp_path_factory.mktemp("pretrained"), {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = transformers_folder(kind, root / kind, limit=48)
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
        "stages": [{"epochs": 1, "learning_rate": 3e-3, "schedule": "cosine", "warmup": 3}],
    }
    return Recipe.model_validate({**values, **changes})


@pytest.mark.parametrize(
    ("kind", "objective"),
    [("clip", {"name": "infonce", "learn_temperature": True}), ("siglip", {"name": "siglip"})],
)
def test_it_learns_and_is_saved_as_what_it_was(
    kind: str, objective: dict[str, Any], shelf: Folders, scenes_folder: Path, tmp_path: Path
) -> None:
    before: Any = DualEncoder.load(shelf(kind), device="cpu")
    stages = [{"epochs": 2, "learning_rate": 3e-3, "schedule": "cosine", "warmup": 3}]
    recipe = recipe_of(shelf(kind), scenes_folder, objective=objective, stages=stages)
    run = trained(tmp_path / "run", recipe, tmp_path)
    lines = list(run.metrics())
    losses = [line["loss"] for line in lines if "loss" in line]
    assert np.mean(losses[-5:]) < 0.97 * np.mean(losses[:5])

    # The first line is what the pretrained encoder can do, the last what is saved, both measured independently.
    after: Any = DualEncoder.load(run.best, device="cpu")
    split = read_collection(str(scenes_folder)).split("val")
    truth = GroundTruth.from_caption_image(split.caption_image, split.n_images)
    assert [line["epoch"] for line in lines if "epoch" in line] == [0, 1, 2]
    for encoder, line in ((before, lines[0]), (after, lines[-1])):
        rows = encoder.encode_images(split.images()), encoder.encode_texts(split.captions)
        assert line["validation"]["rsum"] == evaluate(*rows, truth, ["rsum"]).score("rsum").value

    # What an objective learns begins where the pretrained model stands, and is kept with the weights.
    assert isinstance(after, PretrainedEncoder)
    assert (after.family, after.name) == (before.family, "tuned")
    assert after.fingerprint != before.fingerprint
    assert before.learned_options.keys() == after.learned_options.keys()
    first, last = (line["temperature"] for line in (lines[1], lines[-2]))
    assert first == pytest.approx(before.learned_options["temperature"], rel=2e-2)
    assert after.learned_options["temperature"] == pytest.approx(last, rel=1e-6) != first
    with torch.no_grad():
        assert float(trained_objective(run).temperature) == pytest.approx(last)  # type: ignore[arg-type]

    # The last encoder is the checkpoint's weights.
    state, kept = load_file(run.best / "model.safetensors"), load_file(run.checkpoint / "weights.safetensors")
    towers = {name.partition(".")[2]: value for name, value in kept.items() if name[:5] in ("image", "text.")}
    assert set(state) - set(towers) <= {"logit_scale", "logit_bias"}
    for name, value in towers.items():
        np.testing.assert_array_equal(state[name], value)


def test_a_given_temperature_comes_before_the_pretrained_one(scenes_folder: Path) -> None:
    for options, expected in (
        ({"name": "infonce", "learn_temperature": True}, 0.02),
        ({"name": "infonce", "learn_temperature": True, "temperature": 0.5}, 0.5),
        ({"name": "infonce"}, 0.07),  # fixed: the recipe's business
        ({"name": "siglip"}, 0.02),
    ):
        recipe = recipe_of("somewhere", scenes_folder, objective=options)
        objective: Any = recipe.make_objective({"temperature": 0.02, "bias": 3.0})
        assert torch.as_tensor(objective.temperature).item() == pytest.approx(expected)
    assert objective.bias.item() == 3.0


def test_what_a_stage_does_not_train_stays_bit_for_bit(
    shelf: Folders, scenes_folder: Path, tmp_path: Path
) -> None:
    side = "text"
    stages = [{"epochs": 1, "learning_rate": 1e-3, "train": [f"{side}.*", "objective.*"]}]
    run = trained(tmp_path / "run", recipe_of(shelf("clip"), scenes_folder, stages=stages), tmp_path)
    before, after = (load_file(folder / "model.safetensors") for folder in (shelf("clip"), run.best))
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed > {"logit_scale"}
    assert all(name.startswith((side, "logit_scale")) for name in changed)


def test_what_the_encoder_does_not_have_is_refused(
    shelf: Folders, scenes_folder: Path, tmp_path: Path
) -> None:
    stage = {"epochs": 1, "learning_rate": 1e-3, "train": ["vision_model.*"]}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"caption_augmentation": {}}, "caption_augmentation with .*/clip"),
        ({"augmentation": {"erasing": 0.2}}, r"augmentation.erasing 0\.2 with another library's"),
        ({"reconstruction": {"kind": "input"}}, "reconstruction.kind 'input' with .*/clip"),
        ({"shortcuts": {**DIGITS, "digit_size": 28}}, "take 168 × 28 pixels, the image has 32 × 32"),
        ({"stages": [stage]}, "'vision_model.*', which fits no parameter"),
    ]
    for changes, message in cases:
        recipe = recipe_of(shelf("clip"), scenes_folder, **changes)
        error = refused(DiptychError, message, trained, tmp_path / "run", recipe, tmp_path)
    assert error.fix == "parameters begin with: image, objective, text"


def test_a_trained_mode_does_not_reach_validation(shelf: Folders) -> None:
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


def test_validation_is_without_and_with_shortcuts(
    run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    encoder: Any = DualEncoder.load(run_folder / "best", device="cpu")
    whole = read_collection(str(scenes_folder))
    shortcuts, plain = Shortcuts.of(ShortcutOptions(**DIGITS), whole, "train", 0), whole.split("val")
    found = Validation(plain, encoder, tmp_path, None, shortcuts).measure()
    truth = GroundTruth.from_caption_image(plain.caption_image, plain.n_images)
    for name, part in (("", plain), ("with ", shortcuts.injected(plain, encoder.with_endings))):
        images = encoder.encode_images([part.item(row) for row in range(part.n_images)])
        by_hand = evaluate(images, encoder.encode_texts(part.captions), truth, ["rsum", "R@5"])
        assert found[f"{name}rsum"] == by_hand.rsum
        assert found[f"{name}t2i R@5"] == 100 * by_hand.value("R@5", "t2i")
    assert found["with rsum"] != found["rsum"]


def test_an_encoder_made_here_continues_with_its_own_words(
    run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    """From the run's folder or its best encoder's, with crops, noise on captions and their reconstruction."""
    recipe = recipe_of(
        run_folder,
        scenes_folder,
        augmentation={"erasing": 0.5},
        caption_augmentation={},
        reconstruction={"kind": "input", "word_width": 4},
        checkpoints={"keep": "best"},
    )
    run = trained(tmp_path / "run", recipe, tmp_path)
    base, tuned = (DualEncoder.load(folder) for folder in (run_folder / "best", run.best))
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
