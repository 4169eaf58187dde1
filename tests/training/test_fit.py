from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import Tensor

from diptych.core.context import stop_when
from diptych.core.errors import (
    Interrupted,
    MismatchError,
    NumericalError,
    RecipeError,
    StorageError,
    UsageError,
)
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.objectives import InfoNCE, infonce
from diptych.training.checkpoint import read_place
from diptych.training.fit import fit
from diptych.training.recipe import Recipe
from diptych.training.run import Run, trained_objective

from .test_resume import contents


def trained(folder: Path, recipe: Recipe, features: Path, stop_at: int | None = None) -> Run:
    """Train in ``folder``, or go on there; stop after ``stop_at`` steps of this call."""
    run = Run.open(folder) if (folder / "run.json").exists() else Run.prepare(folder, recipe)
    steps = 0

    def should_stop() -> bool:
        nonlocal steps
        steps += 1
        return stop_at is not None and steps >= stop_at

    collection = read_collection(str(recipe.data.path))
    with stop_when(should_stop):
        fit(run, collection, accelerator="cpu", features_root=features)
    return run


def test_it_learns(recipe: Recipe, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    run = trained(tmp_path / "run", recipe.model_copy(update={"threads": before + 1}), tmp_path)
    environment = json.loads((run.folder / "environment.json").read_text())
    assert (environment["threads"], torch.get_num_threads()) == (before + 1, before)
    losses = [line["loss"] for line in run.metrics() if "loss" in line]
    assert len(losses) == 20
    assert np.mean(losses[-5:]) < 0.95 * np.mean(losses[:5])
    encoder = DualEncoder.load(run.best)
    assert encoder.width == 16
    assert encoder.describe()["temperature"] == pytest.approx(0.07, rel=0.05)
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines if "epoch" in line] == [1, 2]
    assert lines[0]["temperature"] == pytest.approx(0.07, rel=1e-3)
    assert lines[0]["learning_rate"] == pytest.approx(1e-3 / 3)


def test_a_backbone_is_unfrozen_in_its_stage(staged_recipe: Recipe, tmp_path: Path) -> None:
    states = []
    for stop_at in (1, 9, 1):  # within the first stage, at its end, after one step of the second
        with pytest.raises(Interrupted):
            trained(tmp_path / "run", staged_recipe, tmp_path, stop_at=stop_at)
        states.append(load_file(tmp_path / "run" / "checkpoint" / "weights.safetensors"))

    def changed(first: int, second: int) -> set[str]:
        pairs = ((key, states[first][key], states[second][key]) for key in states[first])
        return {
            key.split(".")[1] for key, a, b in pairs if key.startswith("image") and not np.array_equal(a, b)
        }

    assert changed(0, 1) == {"head"}
    assert changed(1, 2) == {"head", "backbone"}


def test_accumulation_takes_fewer_steps(recipe: Recipe, tmp_path: Path) -> None:
    optimizer = recipe.optimizer.model_copy(update={"accumulate": 3})
    run = trained(tmp_path / "run", recipe.model_copy(update={"optimizer": optimizer}), tmp_path)
    assert run.numbers["step"] == 2 * 4  # ten batches of an epoch in groups of three, three, three, one


def test_early_stopping(cached_recipe: Recipe, tmp_path: Path) -> None:
    stage = cached_recipe.stages[0].model_copy(update={"epochs": 50, "learning_rate": 1e-9})
    checkpoints = cached_recipe.checkpoints.model_copy(update={"patience": 2})
    run = trained(
        tmp_path / "run",
        cached_recipe.model_copy(update={"stages": (stage,), "checkpoints": checkpoints}),
        tmp_path,
    )
    assert run.finished
    assert run.numbers["epoch"] == 3
    assert run.numbers["best_epoch"] == 1


def test_other_data_is_refused_on_resume(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        trained(tmp_path / "run", recipe, tmp_path, stop_at=3)
    collection = read_collection(str(recipe.data.path))
    shortened = collection.subset(range(1, collection.n_images))
    with pytest.raises(MismatchError, match=r"was begun with data = \w+, asked for is \w+"):
        fit(Run.open(tmp_path / "run"), shortened, accelerator="cpu", features_root=tmp_path)


def test_a_diverging_loss_is_named(recipe: Recipe, tmp_path: Path) -> None:
    stage = recipe.stages[0].model_copy(update={"learning_rate": 1e30, "warmup": 0, "schedule": "constant"})
    optimizer = recipe.optimizer.model_copy(update={"clip": None})
    with pytest.raises(NumericalError, match=r"is (nan|inf)\b|not finite"):
        trained(
            tmp_path / "run", recipe.model_copy(update={"stages": (stage,), "optimizer": optimizer}), tmp_path
        )


def test_a_full_disk_leaves_the_previous_checkpoint_whole(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    from diptych.training import trainer

    unbroken = trained(tmp_path / "a", recipe, tmp_path / "f")
    save, saves = trainer.save_checkpoint, 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def full_at_the_third(*arguments: object) -> None:
        nonlocal saves
        saves += 1
        if saves == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        save(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(trainer, "save_checkpoint", full_at_the_third)
    try:
        with pytest.raises(StorageError, match="cannot write .*checkpoint") as caught:
            trained(tmp_path / "b", recipe, tmp_path / "f")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in caught.value.message
    stored = read_place(tmp_path / "b" / "checkpoint")
    assert stored is not None
    assert stored.step == 8
    assert sorted(path.name for path in (tmp_path / "b").glob(".*")) == []
    again = trained(tmp_path / "b", recipe, tmp_path / "f")
    assert contents(again.folder) == contents(unbroken.folder)


def test_kill_minus_nine_loses_at_most_the_interval(cached_recipe: Recipe, tmp_path: Path) -> None:
    long = cached_recipe.model_copy(
        update={"stages": (cached_recipe.stages[0].model_copy(update={"epochs": 400}),)}
    )
    with pytest.raises(Interrupted):
        trained(tmp_path / "b", long, tmp_path / "f", stop_at=1)
    run = Run.open(tmp_path / "b")
    code = (
        "from diptych.data.readers import read_collection; from diptych.training.fit import fit\n"
        "from diptych.training.run import Run; from pathlib import Path\n"
        f"fit(Run.open(r'{run.folder}'), read_collection(r'{long.data.path}'), accelerator='cpu',"
        f" features_root=Path(r'{tmp_path / 'f'}'))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 120
    # Not by the checkpoint, which is being replaced all the time.
    while not any(line["step"] > 12 for line in run.metrics()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    logged = max(line["step"] for line in run.metrics())
    place = read_place(run.checkpoint)
    assert place is not None
    assert 0 <= logged - place.step <= long.checkpoints.every_steps
    # Whatever was half written, the run goes on, and its log has every step once.
    with pytest.raises(Interrupted):
        trained(run.folder, long, tmp_path / "f", stop_at=5)
    steps = [line["step"] for line in run.metrics() if "loss" in line]
    assert steps == list(range(1, place.step + 6))


def test_a_constraint_is_logged_and_its_multiplier_climbs(constrained_recipe: Recipe, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", constrained_recipe, tmp_path)
    lines = [line for line in run.metrics() if "loss" in line]
    bound = 0.3
    for line in lines:
        whole = line["contrastive"] + line["multiplier"] * (line["reconstruction"] / bound - 1)
        assert line["loss"] == pytest.approx(whole)
    assert lines[0]["multiplier"] == 1.0
    # The first step of the ascent is not dampened: λ rises by learning rate × (L_rec / η − 1).
    assert lines[1]["multiplier"] == pytest.approx(1 + 0.5 * (lines[0]["reconstruction"] / bound - 1))
    assert lines[-1]["reconstruction"] < lines[0]["reconstruction"]


def test_input_targets_as_a_second_loss(cached_recipe: Recipe, tmp_path: Path) -> None:
    section = {"kind": "input", "beta": 0.5, "word_width": 6}
    recipe = Recipe.model_validate({**cached_recipe.model_dump(), "reconstruction": section})
    run = trained(tmp_path / "run", recipe, tmp_path)
    lines = [line for line in run.metrics() if "loss" in line]
    assert "multiplier" not in lines[0]
    assert lines[0]["loss"] == pytest.approx(lines[0]["contrastive"] + 0.5 * lines[0]["reconstruction"])
    assert lines[9]["reconstruction"] < lines[0]["reconstruction"]


def test_too_few_steps_for_averaging_is_named(cached_recipe: Recipe, tmp_path: Path) -> None:
    recipe = Recipe.model_validate({**cached_recipe.model_dump(), "averaging": {}})
    with pytest.raises(RecipeError, match="which has only 10 steps"):
        trained(tmp_path / "run", recipe, tmp_path)


def objective_of(recipe: Recipe, folder: Path, objective: Any) -> list[float]:
    run = Run.prepare(folder, recipe)
    collection = read_collection(str(recipe.data.path))
    fit(run, collection, objective=objective, accelerator="cpu", features_root=folder.parent / "f")
    return [line["loss"] for line in run.metrics() if "loss" in line]


def test_an_objective_may_be_an_object_or_a_function(cached_recipe: Recipe, tmp_path: Path) -> None:
    stages = (cached_recipe.stages[0],)
    named = cached_recipe.model_copy(
        update={"objective": {"name": "infonce", "temperature": 0.1}, "stages": stages}
    )
    losses = objective_of(named, tmp_path / "named", None)
    other = named.model_copy(update={"objective": {"name": "triplet-hardest"}})
    assert objective_of(other, tmp_path / "object", InfoNCE(temperature=0.1)) == losses

    def mine(scores: Tensor, positives: Tensor) -> Tensor:
        return infonce(scores, positives, 0.1)

    assert objective_of(other, tmp_path / "function", mine) == losses
    assert objective_of(other, tmp_path / "other", lambda scores, positives: 2 * mine(scores, positives))[
        0
    ] == pytest.approx(2 * losses[0])

    collection = read_collection(str(other.data.path))
    run = Run.open(tmp_path / "function")
    with pytest.raises(MismatchError, match=r"begun with objective = .*mine, asked for is None"):
        fit(run, collection, accelerator="cpu", features_root=tmp_path / "f")
    with pytest.raises(UsageError, match=r"objective .*mine, which was given in Python"):
        trained_objective(run)


def test_what_fails_before_the_first_step_holds_no_folder(recipe: Recipe, tmp_path: Path) -> None:
    image = recipe.model.image.model_copy(update={"pretrained": True})
    wrong = recipe.model_copy(update={"model": recipe.model.model_copy(update={"image": image})})
    with pytest.raises(UsageError, match="test_efficientnet could not be loaded") as caught:
        trained(tmp_path / "run", wrong, tmp_path)
    assert "model.image.weights" in caught.value.fix
    assert "\n" not in caught.value.message
    assert not (tmp_path / "run").exists()
    assert trained(tmp_path / "run", recipe, tmp_path).finished
