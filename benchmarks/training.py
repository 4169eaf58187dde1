"""Training with cached features against the same training that reads pictures."""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.table import Line
from diptych.core.context import stop_when
from diptych.core.errors import Interrupted
from diptych.core.processes import keep_freed_memory
from diptych.data.scenes import scenes
from diptych.training.fit import fit
from diptych.training.recipe import Recipe
from diptych.training.run import Run

__all__ = ["measure"]


def _recipe(backbone: str, cached: bool) -> Recipe:
    """VSE++ with a frozen ResNet at 224 pixels: the training of Faghri et al. and of the ECIR 2022 study."""
    values: dict[str, Any] = {
        "model": {"width": 1024, "image": {"backbone": backbone}, "text": {"min_count": 1}},
        "batches": {"size": 128},
        "stages": [{"epochs": 10, "learning_rate": 2e-4}],
    }
    values["features" if cached else "augmentation"] = {"views": 1} if cached else {}
    return Recipe.model_validate(values)


def _seconds_per_step(folder: Path, backbone: str, cached: bool, steps: int) -> float:
    """The median of the times between steps: neither start-up nor caching nor validation counts."""
    collection = scenes(128, 8, 8, size=160, workers=1)
    run = Run.prepare(folder, _recipe(backbone, cached))
    ticks: list[float] = []

    def tick() -> bool:
        ticks.append(time.perf_counter())
        return len(ticks) > steps

    with suppress(Interrupted), stop_when(tick):
        fit(run, collection, accelerator="cpu", features_root=folder / "features")
    return statistics.median(b - a for a, b in pairwise(ticks))


def measure() -> list[Line]:
    """Batches of 128 captions of 128 pictures, with ResNet-50 and with VSE++'s own ResNet-152."""
    keep_freed_memory()
    lines = []
    for backbone in ("resnet50", "resnet152"):
        with tempfile.TemporaryDirectory() as folder:
            read = _seconds_per_step(Path(folder) / "read", backbone, cached=False, steps=4)
            cached = _seconds_per_step(Path(folder) / "cached", backbone, cached=True, steps=14)
        found = read / cached
        how = "frozen, 224 px, GRU 1024, batch 128, one caption per picture in a batch; median step"
        speeds = f"{read:.1f} s → {cached:.2f} s a step"
        what = f"epochs per minute, cached ÷ reading, {backbone}"
        lines.append(Line(what, f"{found:.0f}× ({speeds})", "≥ 50×", found >= 50, how))
    return lines
