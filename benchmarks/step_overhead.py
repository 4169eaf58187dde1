"""A training step of the framework against a bare PyTorch loop of the same mathematics, step by step in turn."""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import nn

from benchmarks.table import Line, ratio
from diptych.core.context import stop_when
from diptych.core.errors import Interrupted
from diptych.core.processes import keep_freed_memory
from diptych.data.scenes import scenes
from diptych.training.examples import Loaded
from diptych.training.fit import prepared_task
from diptych.training.recipe import Recipe, load_recipe
from diptych.training.run import Run
from diptych.training.towers import TowerTask, learning_rate
from diptych.training.trainee import Trainee
from diptych.training.trainer import Saving, Trainer

AIM = 1.10
STEPS = 20


def _bare_steps(task: TowerTask, model: Trainee, batches: list[Loaded]) -> Iterator[float]:
    """The same training as one would write it down; yields the loss of each step."""
    recipe, stage = task.recipe, task.recipe.stages[0]
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(parameters, betas=recipe.optimizer.betas)
    model.train()
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(stage, step, task.steps_per_epoch)
        optimizer.zero_grad()
        if task.examples.cached:
            images = model.image.project(batch.images)
        else:
            images = model.image(batch.images.to(memory_format=torch.channels_last))
        texts = model.text(batch.tokens, batch.lengths)
        positives = batch.image_ids[:, None] == batch.caption_image_ids[None, :]
        loss = model.objective(images @ texts.T, positives)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, recipe.optimizer.clip or torch.inf)
        optimizer.step()
        yield loss.item()


def _measured(recipe: Recipe, collection: Any, folder: Path) -> tuple[list[float], list[float], float]:
    """Seconds of each framework step and of each bare one, and how far their losses are apart."""
    run = Run.prepare(folder / "run", recipe)
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    task = prepared_task(fabric, run, collection, None, folder / "features")
    task.fabric, task.workers = fabric, 0
    # Both get batches that lie in memory: what reading costs is neither's.
    batches = [task.load(batch, 0) for batch in task.batches(0)[: STEPS + 1]]
    vars(task).update(batches=lambda epoch: range(STEPS + 1), load=lambda number, epoch: batches[number])
    task.optimizer(0)  # freezes what the stage does not train
    bare = _bare_steps(task, copy.deepcopy(task.trainee), batches)
    losses: list[float] = []
    seconds: tuple[list[float], list[float]] = ([], [])
    ended = time.perf_counter()

    def in_turn() -> bool:
        nonlocal ended
        seconds[0].append(time.perf_counter() - ended)
        begun = time.perf_counter()
        losses.append(next(bare))
        seconds[1].append(time.perf_counter() - begun)
        ended = time.perf_counter()
        return len(losses) > STEPS

    with suppress(Interrupted), stop_when(in_turn):
        Trainer(task, run, fabric, Saving(epochs=False)).train()
    logged = [line["loss"] for line in run.metrics() if "loss" in line]
    apart = max(abs(a - b) for a, b in zip(logged, losses, strict=True))
    return seconds[0][1:], seconds[1][1:], apart


def _cached() -> Recipe:
    """VSE++ on cached features: a GRU of 1024 and batches of 128."""
    values: dict[str, Any] = {
        "model": {"width": 1024, "image": {"backbone": "test_resnet"}, "text": {"min_count": 1}},
        "features": {"views": 1},
        "batches": {"size": 128, "plan": "captions"},
        "stages": [{"epochs": 1, "learning_rate": 2e-4}],
    }
    values["model"]["image"]["preprocessing"] = {"size": 64, "resize": 64}
    return Recipe.model_validate(values)


def measure() -> list[Line]:
    """The demo's recipe, which reads pictures, and a recipe with cached features."""
    keep_freed_memory()
    collection = scenes(1000, 8, 8, size=64, workers=1)
    lines = []
    demo = load_recipe("scenes", {"model.text.dropout": 0.0})
    for name, recipe in (("the demo's recipe", demo), ("cached features", _cached())):
        with tempfile.TemporaryDirectory() as folder:
            framework, bare, apart = _measured(recipe, collection, Path(folder))
        found = ratio(framework, bare)
        middle = sorted(bare)[len(bare) // 2]
        how = (
            f"batch {recipe.batches.size}; {len(bare)} steps in turn, batches in memory; losses agree to "
            f"{apart:.0e}"
        )
        measured = f"{found:.2f}× ({1000 * middle:.0f} ms a bare step)"
        lines.append(
            Line(f"step of the framework ÷ bare loop, {name}", measured, f"≤ {AIM:.2f}×", found <= AIM, how)
        )
    return lines
