"""Do the work of a grid: whatever is missing of it, in this process or in several, to the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from diptych.commerce.purchase_intent.evaluation.cells import Unit, step_text
from diptych.commerce.purchase_intent.evaluation.unit import Work
from diptych.commerce.purchase_intent.evaluation.workers import run_in_processes
from diptych.core.errors import Interrupted, UsageError
from diptych.core.progress import Task, task

__all__ = ["run_grid"]

Stop = Callable[[], bool]


def run_grid(work: Work, units: Sequence[Unit], jobs: int, should_stop: Stop) -> int:
    """Fit every model of every unit that is not there yet, and keep its scores.

    Args:
        work: what units need.
        units: all of the grid.
        jobs: processes.
        should_stop: asked between models.

    Returns:
        How many had to be fitted.

    Raises:
        Interrupted: ``should_stop`` said so; the same call goes on.
        UsageError: no processes.
    """
    if jobs < 1:
        raise UsageError(f"{jobs} jobs: at least one process is needed")
    missing = {unit: len(work.missing(unit)) for unit in units}
    todo = [unit for unit, count in missing.items() if count]
    left, total = sum(missing.values()), len(units) * len(work.protocol.models)
    with task("fitting models", total, "models", total - left) as bar:
        if jobs == 1 or len(todo) < 2:
            finished = _run_here(work, todo, bar, should_stop)
        else:
            finished = run_in_processes(work, todo, min(jobs, len(todo)), bar, should_stop)
    if finished < left:
        raise Interrupted("stopped: every model that was fitted is kept", "the same command goes on")
    return left


def _run_here(work: Work, todo: Sequence[Unit], bar: Task, should_stop: Stop) -> int:
    finished = 0
    for unit in todo:
        for model in work.run(unit, should_stop):
            bar.advance(1, f"{unit.setting} {unit.feature_set}, step {step_text(unit.step)}: {model}")
            finished += 1
        if should_stop():
            break
    return finished
