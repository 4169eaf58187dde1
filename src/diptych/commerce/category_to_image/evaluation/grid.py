"""Do the cells of a grid that are missing, in this process or in several, to the same bits."""

from __future__ import annotations

from collections.abc import Callable

from diptych.commerce.category_to_image.evaluation.cell import Cell, CellName
from diptych.commerce.category_to_image.evaluation.work import Work
from diptych.core.context import stop_when, stopping, task
from diptych.core.errors import Interrupted, StorageError, UsageError
from diptych.core.processes import in_processes

_STOPPED = ("stopped: every model that was measured is kept", "the same command goes on")

Stop = Callable[[], bool]


def run_grid(work: Work, jobs: int = 1, should_stop: Stop = lambda: False) -> int:
    """Make every cell that is not there yet, or is corrupt."""
    if jobs < 1:
        raise UsageError(f"{jobs} jobs: at least one process is needed")
    names = list(work.names())
    todo = [name for name in names if not _there(work, name)]
    finished = 0
    with task("models", len(names), "models", len(names) - len(todo)) as bar, stop_when(should_stop):
        for name in in_processes(todo, _run, jobs, _given, (work,)):
            if name is not None:
                bar.advance(1, name.text)
                finished += 1
    if finished < len(todo):
        raise Interrupted(*_STOPPED)
    return len(todo)


def _there(work: Work, name: CellName) -> bool:
    file = name.file(work.folder)
    if not file.is_file():
        return False
    try:
        Cell.open(file)
    except StorageError:
        return False
    return True


def _given(work: Work) -> Work:
    return work


def _run(work: Work, name: CellName) -> CellName | None:
    try:
        work.run(name, stopping)
    except Interrupted:
        return None
    return name
