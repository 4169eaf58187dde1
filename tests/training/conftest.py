from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from diptych.core.context import stop_when
from diptych.data.readers import read_collection
from diptych.training.fit import fit
from diptych.training.recipe import Recipe
from diptych.training.run import Run


def tiny(path: Path, **changes: Any) -> Recipe:
    """A model of a few thousand parameters on the small scenes; pictures read, backbone trained."""
    values: dict[str, Any] = {
        "name": "tiny",
        "data": {"path": str(path)},
        "model": {
            "width": 16,
            "image": {
                "backbone": "test_efficientnet",
                "preprocessing": {"size": 32, "resize": 32},
                "freeze_batch_norm": False,
            },
            "text": {"word_width": 8, "min_count": 1, "dropout": 0.1},
        },
        "objective": {"name": "infonce", "learn_temperature": True},
        "batches": {"size": 24},
        "stages": [{"epochs": 2, "learning_rate": 1e-3, "schedule": "cosine", "warmup": 2, "train": ["*"]}],
        "checkpoints": {"every_steps": 4},
    }
    return Recipe.model_validate({**values, **changes})


def trained(folder: Path, recipe: Recipe, features: Path, stop_at: int | None = None) -> Run:
    """Train in ``folder``, or resume there; stop after ``stop_at`` steps of this call."""
    run = Run.open(folder) if (folder / "run.json").exists() else Run.prepare(folder, recipe)
    steps, collection = count(1), read_collection(str(recipe.data.path))
    if stop_at is None:
        fit(run, collection, accelerator="cpu", features_root=features)
        return run
    with stop_when(lambda: next(steps) >= stop_at):
        fit(run, collection, accelerator="cpu", features_root=features)
    return run


def contents(folder: Path) -> dict[str, Any]:
    """Every file of a folder; of JSON without the time that the training took."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content: Any = path.read_bytes()
        if path.name in ("training.json", "checkpoint.json"):
            content = json.loads(content)["content"]
            for section in content.values():
                if isinstance(section, dict):
                    section.pop("seconds", None)
        found[str(path.relative_to(folder))] = content
    return found


@pytest.fixture
def recipe(scenes_folder: Path) -> Recipe:
    return tiny(scenes_folder)


@pytest.fixture
def cached_recipe(scenes_folder: Path) -> Recipe:
    """The same with a frozen backbone, cached features with two random views, two stages."""
    stages = [
        {"epochs": 1, "learning_rate": 1e-3},
        {"epochs": 2, "learning_rate": 5e-4, "train": ["text.*", "objective.*"]},
    ]
    return tiny(scenes_folder, features={"views": 2}, stages=stages)


@pytest.fixture
def staged_recipe(scenes_folder: Path) -> Recipe:
    """A frozen backbone first, then everything with a tenth of the learning rate for the backbone."""
    stages = [
        {"epochs": 1, "learning_rate": 1e-3},
        {"epochs": 1, "learning_rate": 5e-4, "train": ["*"], "scales": {"image.backbone.*": 0.1}},
    ]
    return tiny(scenes_folder, stages=stages, augmentation={"scale": [0.5, 1.0]})


@pytest.fixture
def constrained_recipe(scenes_folder: Path) -> Recipe:
    """A latent target decoder under a constraint, noisy captions, averaged weights, AdamP, batch norm."""
    model = tiny(scenes_folder).model.model_dump(mode="json")
    model["image"] |= {"batch_norm": True, "hidden": 24}
    return tiny(
        scenes_folder,
        model=model,
        features={"views": 1},
        caption_augmentation={},
        reconstruction={
            "targets": {"kind": "lsa", "width": 12},
            "hidden": [16, 16],
            "constraint": {"bound": 0.3, "learning_rate": 0.5},
        },
        averaging={"share": 0.5, "checkpoints": 2},
        optimizer={"name": "adamp"},
        stages=[{"epochs": 2, "learning_rate": 1e-3, "schedule": "cosine", "per": "epoch"}],
    )


@pytest.fixture
def chunked_recipe(scenes_folder: Path) -> Recipe:
    """A batch in chunks, two batches to the step, averaged weights under a constraint, in 16 bits."""
    return tiny(
        scenes_folder,
        features={"views": 1},
        reconstruction={"kind": "input", "word_width": 6, "constraint": {"bound": 3.0, "learning_rate": 0.5}},
        averaging={"share": 0.9, "checkpoints": 2},
        batches={"size": 24, "chunk": 20},
        optimizer={"accumulate": 2},
        stages=[{"epochs": 3, "learning_rate": 1e-3}],
        precision="bf16-mixed",
    )


@pytest.fixture
def targets_recipe(scenes_folder: Path) -> Recipe:
    """Captions that are vectors, with a head in batch norm; targets of the same model are reconstructed."""
    model = tiny(scenes_folder).model.model_dump(mode="json")
    targets = {"kind": "lsa", "width": 12}
    model["text"] = {"kind": "targets", "targets": targets, "head": "mlp", "batch_norm": True}
    return tiny(
        scenes_folder,
        model=model,
        reconstruction={"targets": targets, "hidden": [16, 16]},
        averaging={"share": 0.5, "checkpoints": 2},
        stages=[{"epochs": 1, "learning_rate": 1e-3}, {"epochs": 1, "learning_rate": 1e-3, "train": ["*"]}],
        augmentation={"scale": [0.5, 1.0]},
    )
