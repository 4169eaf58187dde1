from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.numpy import load_file, save_file
from torch import Tensor

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
from diptych.training.recipe import Recipe, collection_of
from diptych.training.run import Run, trained_objective

from ..encoders.tiny_pretrained import transformers_folder
from .conftest import contents, tiny, trained


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


def test_other_data_is_refused_on_resume(cached_recipe: Recipe, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    with pytest.raises(Interrupted):
        trained(
            tmp_path / "run", cached_recipe.model_copy(update={"threads": before + 1}), tmp_path, stop_at=1
        )
    environment = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert (environment["threads"], torch.get_num_threads()) == (before + 1, before)
    collection = read_collection(str(cached_recipe.data.path))
    run, shortened = Run.open(tmp_path / "run"), collection.subset(range(1, collection.n_images))
    message = r"was begun with data = \w+, requested is \w+"
    refused(MismatchError, message, fit, run, shortened, accelerator="cpu", features_root=tmp_path)


def test_a_diverging_loss_is_named(cached_recipe: Recipe, tmp_path: Path) -> None:
    stage = cached_recipe.stages[0].model_copy(update={"learning_rate": 1e30})
    optimizer = cached_recipe.optimizer.model_copy(update={"clip": None})
    recipe = cached_recipe.model_copy(update={"stages": (stage,), "optimizer": optimizer})
    refused(NumericalError, r"is (nan|inf)\b|not finite", trained, tmp_path / "run", recipe, tmp_path)


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
    stage = cached_recipe.stages[0].model_copy(update={"epochs": 400})
    long = cached_recipe.model_copy(update={"stages": (stage,)})
    with pytest.raises(Interrupted):
        trained(tmp_path / "b", long, tmp_path / "f", stop_at=1)
    run = Run.open(tmp_path / "b")
    training = get_context("fork").Process(target=trained, args=(run.folder, long, tmp_path / "f"))
    training.start()
    try:
        deadline = time.monotonic() + 120
        # Not by the checkpoint, which is being replaced all the time.
        while not any(line["step"] > 12 for line in run.metrics()):
            assert training.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        training.kill()
        training.join()
    logged = max(line["step"] for line in run.metrics())
    place = read_place(run.checkpoint)
    assert place is not None
    assert 0 <= logged - place.step <= long.checkpoints.every_steps
    # Whatever was half written, the run resumes, and its log has every step once.
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


def test_an_objective_may_be_an_object_or_a_function(cached_recipe: Recipe, tmp_path: Path) -> None:
    named = cached_recipe.model_copy(
        update={"objective": {"name": "infonce", "temperature": 0.1}, "stages": (cached_recipe.stages[0],)}
    )
    other = named.model_copy(update={"objective": {"name": "triplet-hardest"}})
    collection = read_collection(str(other.data.path))
    given: dict[str, Any] = {"accelerator": "cpu", "features_root": tmp_path / "f"}

    def losses(recipe: Recipe, name: str, objective: Any) -> list[float]:
        run = Run.prepare(tmp_path / name, recipe)
        fit(run, collection, objective=objective, **given)
        return [line["loss"] for line in run.metrics() if "loss" in line]

    def mine(scores: Tensor, positives: Tensor) -> Tensor:
        return infonce(scores, positives, 0.1)

    expected = losses(named, "named", None)
    assert losses(other, "object", InfoNCE(temperature=0.1)) == expected
    assert losses(other, "function", mine) == expected
    run = Run.open(tmp_path / "function")
    message = r"begun with objective = .*mine, requested is None"
    refused(MismatchError, message, fit, run, collection, **given)
    refused(UsageError, r"objective .*mine, which was given in Python", trained_objective, run)


SEVERAL = """
import sys
from diptych.cli.tree import app

for folder in sys.argv[1:]:
    line = ["train", folder + ".toml", "--out", folder, "--devices", "2", "--accelerator", "cpu"]
    app([*line, "--features", "f"], prog_name="diptych", standalone_mode=False)
"""
"""Trains several runs in two processes that are started once: the first runs this file again for the second."""


def test_two_processes_train_as_one(cached_recipe: Recipe, tmp_path: Path) -> None:
    """Shares of different sizes, a learned temperature, a decoder, a multiplier; chunks sum gradients by hand.

    23 does not divide by two, and "captions" batches hold images with several captions. A chunk of 11 holds
    the whole share of one process and not that of the other.
    """
    values = cached_recipe.model_dump()
    values["data"]["images"] = 14
    values["model"]["text"]["dropout"] = 0.0
    values["stages"] = values["stages"][:1]
    values["batches"] |= {"size": 23, "plan": "captions"}
    values["reconstruction"] = {
        "targets": {"kind": "lsa", "width": 8},
        "hidden": [8, 8],
        "constraint": {"bound": 0.3, "learning_rate": 0.1},
    }
    recipe = Recipe.model_validate(values)
    one = Run.prepare(tmp_path / "one", recipe)
    fit(one, collection_of(recipe.data), accelerator="cpu", features_root=tmp_path / "f")
    for chunk in (None, 11):
        values["batches"]["chunk"] = chunk
        (tmp_path / f"two-{chunk}.toml").write_text(Recipe.model_validate(values).to_toml())
    (tmp_path / "several.py").write_text(SEVERAL)
    folders = [tmp_path / name for name in ("two-None", "two-11")]
    line, environment = (
        [sys.executable, tmp_path / "several.py", *folders],
        {**os.environ, "OMP_NUM_THREADS": "1"},
    )
    done = subprocess.run(line, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("best validation rsum") == 2, done.stdout  # one process speaks, of each run once
    for both in map(Run.open, folders):
        runs = (one, both)
        for key in ("loss", "contrastive", "reconstruction", "multiplier", "gradient_norm", "temperature"):
            first, second = ([line[key] for line in run.metrics() if "loss" in line] for run in runs)
            assert len(first) == 4
            np.testing.assert_allclose(first, second, rtol=1e-3, err_msg=key)
        a, b = (load_file(run.folder / "checkpoint" / "weights.safetensors") for run in runs)
        for key in a:
            np.testing.assert_allclose(a[key], b[key], atol=1e-4, err_msg=key)


def projected(recipe: Recipe, folder: Path) -> Recipe:
    """The second stage of ConVSE: a projection on top of a finished base model, which stays as it is."""
    values = recipe.model_dump() | {"warm_start": str(folder)}
    values["model"] |= {"width": 8, "projection": {"base": 16, "hidden": 12}}
    values["stages"] = [{"epochs": 1, "learning_rate": 1e-3, "train": ["*.projection.*"]}]
    return Recipe.model_validate(values)


@pytest.fixture(scope="module")
def base(scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run of :func:`cached_recipe`'s model, for one epoch."""
    recipe = tiny(scenes_folder, features={"views": 2}, stages=[{"epochs": 1, "learning_rate": 1e-3}])
    folder = tmp_path_factory.mktemp("warm")
    return trained(folder / "base", recipe, folder / "f")


def test_a_projection_grows_on_a_finished_run(base: Run, cached_recipe: Recipe, tmp_path: Path) -> None:
    grown = trained(tmp_path / "grown", projected(cached_recipe, base.folder), base.folder.parent / "f")
    before, after = (load_file(run.best / "model.safetensors") for run in (base, grown))
    names = ("0.weight", "2.weight", "2.bias")
    new = {f"{tower}.projection.{name}" for tower in ("image", "text") for name in names}
    assert after.keys() - before.keys() == new
    for name in before:
        assert np.array_equal(before[name], after[name]), name
    assert (base.best / "vocabulary.json").read_text() == (grown.best / "vocabulary.json").read_text()


def test_it_learns_and_what_fails_before_the_first_step_holds_no_folder(
    recipe: Recipe, tmp_path: Path
) -> None:
    image = recipe.model.image.model_copy(update={"pretrained": True})
    wrong = recipe.model_copy(update={"model": recipe.model.model_copy(update={"image": image})})
    message = "test_efficientnet could not be loaded"
    error = refused(UsageError, message, trained, tmp_path / "run", wrong, tmp_path)
    assert "model.image.weights" in error.fix
    assert "\n" not in error.message
    assert not (tmp_path / "run").exists()

    run = trained(tmp_path / "run", recipe, tmp_path)
    steps = [line for line in run.metrics() if "loss" in line]
    losses = [line["loss"] for line in steps]
    assert len(losses) == 20
    assert np.mean(losses[-5:]) < 0.95 * np.mean(losses[:5])
    encoder = DualEncoder.load(run.best)
    assert encoder.width == 16
    assert encoder.describe()["temperature"] == pytest.approx(0.07, rel=0.05)
    assert [line["epoch"] for line in run.metrics() if "epoch" in line] == [1, 2]
    assert steps[0]["temperature"] == pytest.approx(0.07, rel=1e-3)
    assert steps[0]["learning_rate"] == pytest.approx(1e-3 / 3)


def test_accumulation_and_early_stopping_take_fewer_steps(cached_recipe: Recipe, tmp_path: Path) -> None:
    stage = cached_recipe.stages[0].model_copy(update={"epochs": 50, "learning_rate": 1e-9})
    changes = {
        "stages": (stage,),
        "checkpoints": cached_recipe.checkpoints.model_copy(update={"patience": 2}),
        "optimizer": cached_recipe.optimizer.model_copy(update={"accumulate": 3}),
    }
    run = trained(tmp_path / "run", cached_recipe.model_copy(update=changes), tmp_path)
    assert run.finished
    assert (run.numbers["epoch"], run.numbers["best_epoch"]) == (3, 1)
    assert run.numbers["step"] == 3 * 4  # ten batches of an epoch in groups of three, three, three, one
    averaged = Recipe.model_validate({**cached_recipe.model_dump(), "averaging": {}})
    message = "which has only 10 steps"
    refused(RecipeError, message, trained, tmp_path / "averaged", averaged, tmp_path)


def test_another_warm_start_is_refused(
    base: Run, cached_recipe: Recipe, scenes_folder: Path, tmp_path: Path
) -> None:
    best, features = Path(shutil.copytree(base.best, tmp_path / "best")), base.folder.parent / "f"
    recipe = projected(cached_recipe, best)
    grown = trained(tmp_path / "grown", recipe, features)
    weights = load_file(best / "model.safetensors")
    save_file({name: np.asarray(value + 1) for name, value in weights.items()}, best / "model.safetensors")
    refused(MismatchError, "was begun with warm_start = ", trained, grown.folder, recipe, features)

    other = DualEncoder.load(transformers_folder("clip", tmp_path / "clip")).save(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    wide = cached_recipe.model_dump() | {"warm_start": str(base.folder)}
    wide["model"]["width"] = 32
    for wrong, error, message in (
        (Recipe.model_validate(wide), MismatchError, r"shape \(.*16.*\) in the warm start and \(.*32.*\)"),
        (projected(cached_recipe, tmp_path / "empty"), UsageError, "holds no encoder"),
        (projected(cached_recipe, other), UsageError, "holds a .*, which cannot be trained on"),
    ):
        refused(error, message, trained, tmp_path / "wrong", wrong, features)
