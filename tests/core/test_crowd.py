"""Tasks in several processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from diptych.core.crowd import run_in_processes
from diptych.core.errors import DiptychError


def begin(folder: str) -> Path:
    place = Path(folder)
    (place / f"made-{os.getpid()}").touch()
    return place


def run(place: Path, task: int, should_stop: Callable[[], bool]) -> int | None:
    if should_stop():
        return None
    if task < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    (place / f"done-{task}").touch()
    return task * task


def test_every_task_is_done_once_by_processes_that_begin_once(tmp_path: Path) -> None:
    found: list[int | None] = []
    run_in_processes(range(12), 2, begin, (str(tmp_path),), run, found.append, lambda: False, "what was done")
    assert sorted(number for number in found if number is not None) == [task * task for task in range(12)]
    assert len(list(tmp_path.glob("done-*"))) == 12
    made = [file.name for file in tmp_path.glob("made-*")]
    assert 1 <= len(made) <= 2
    assert f"made-{os.getpid()}" not in made


def test_a_stop_leaves_the_rest(tmp_path: Path) -> None:
    found: list[int | None] = []
    stop = lambda: bool(list(tmp_path.glob("done-*")))  # noqa: E731
    run_in_processes(range(2000), 1, begin, (str(tmp_path),), run, found.append, stop, "what was done")
    done = len(list(tmp_path.glob("done-*")))
    assert 0 < done < 2000
    assert sum(number is not None for number in found) == done


def test_a_killed_process_is_said(tmp_path: Path) -> None:
    with pytest.raises(DiptychError, match="a process was killed.*: what was done is kept"):
        run_in_processes(
            [1, -1], 1, begin, (str(tmp_path),), run, lambda _: None, lambda: False, "what was done"
        )
    assert (tmp_path / "done-1").is_file()
