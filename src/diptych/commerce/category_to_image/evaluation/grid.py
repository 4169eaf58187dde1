"""Do the cells of a grid that are missing, in this process or in several, to the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from diptych.commerce.category_to_image.evaluation.cell import Cell, CellName
from diptych.commerce.category_to_image.evaluation.work import Work
from diptych.core.crowd import run_in_processes
from diptych.core.errors import Interrupted, StorageError, UsageError
from diptych.core.progress import Task, task

_STOPPED = ("stopped: every model that was measured is kept", "the same command goes on")

Stop = Callable[[], bool]


def run_grid(work: Work, jobs: int = 1, should_stop: Stop = lambda: False) -> int:
    """Make every cell that is not there yet, or is damaged."""
    if jobs < 1:
        raise UsageError(f"{jobs} jobs: at least one process is needed")
    names = list(work.names())
    todo = [name for name in names if not _there(work, name)]
    with task("models", len(names), "models", len(names) - len(todo)) as bar:
        if jobs == 1 or len(todo) < 2:
            for name in todo:
                if should_stop():
                    raise Interrupted(*_STOPPED)
                work.run(name, should_stop)
                bar.advance(1, name.text)
        elif _run_in_processes(work, todo, min(jobs, len(todo)), bar, should_stop) < len(todo):
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


def _run_in_processes(work: Work, todo: Sequence[CellName], jobs: int, bar: Task, should_stop: Stop) -> int:
    finished = 0

    def done(name: CellName | None) -> None:
        nonlocal finished
        if name is not None:
            bar.advance(1, name.text)
            finished += 1

    run_in_processes(todo, jobs, _given, (work,), _run, done, should_stop, "every model that was measured")
    return finished


def _given(work: Work) -> Work:
    return work


def _run(work: Work, name: CellName, should_stop: Stop) -> CellName | None:
    if should_stop():
        return None
    try:
        work.run(name, should_stop)
    except Interrupted:
        return None
    return name
