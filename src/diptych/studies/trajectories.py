"""How trainings went, from what runs logged, and what the observations of a figure say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.core.errors import UsageError
from diptych.studies.evidence import Trajectory

if TYPE_CHECKING:
    from diptych.training.run import Run


def trajectory_of(run: Run) -> Trajectory:
    """The trajectory of one run, from its metrics.jsonl."""
    steps = [line for line in run.metrics() if "loss" in line]
    if not steps:
        raise UsageError(f"{run.folder} has logged no step", "train it first")
    validated = [line for line in run.metrics() if "validation" in line]
    reconstruction = run.recipe.reconstruction
    constraint = None if reconstruction is None else reconstruction.constraint
    return Trajectory(
        steps=[line["step"] for line in steps],
        # A run without reconstruction has one loss only.
        contrastive=[line.get("contrastive", line["loss"]) for line in steps],
        reconstruction=[line["reconstruction"] for line in steps] if reconstruction is not None else [],
        multiplier=[line["multiplier"] for line in steps] if constraint is not None else [],
        epoch_steps=[line["step"] for line in validated],
        rsum=[line["validation"]["rsum"] for line in validated],
        bound=None if constraint is None else constraint.bound,
    )
