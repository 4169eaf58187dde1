from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diptych.core.errors import DataError, DiptychError, UnknownNameError, UsageError
from diptych.encoders.processes import ProcessGroup


def leave_a_word(rank: int, folder: Path, should_stop: Callable[[], bool]) -> None:
    (folder / f"{rank}").write_text(str(os.getpid()))


def wait_for_the_end(rank: int, folder: Path, should_stop: Callable[[], bool]) -> None:
    leave_a_word(rank, folder, should_stop)
    os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does to all
    while not should_stop():
        time.sleep(0.01)
    (folder / f"{rank} stopped").touch()


def fail_or_wait(rank: int, folder: Path, should_stop: Callable[[], bool]) -> None:
    if rank == 1:
        raise UnknownNameError("colour", "rde", ["red"])
    wait_for_the_end(rank, folder, should_stop)


def die_or_wait(rank: int, folder: Path, should_stop: Callable[[], bool]) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_the_end(rank, folder, should_stop)


def crash(rank: int, folder: Path, should_stop: Callable[[], bool]) -> None:
    raise ZeroDivisionError("not one of ours")


def never() -> bool:
    return False


@pytest.fixture(autouse=True)
def _none_are_left() -> Any:
    yield
    assert multiprocessing.active_children() == []


def test_each_does_its_part(tmp_path: Path) -> None:
    ProcessGroup(leave_a_word, tmp_path, 3, never).run([])
    assert len({file.read_text() for file in tmp_path.iterdir()} | {str(os.getpid())}) == 4


def test_a_request_to_stop_is_passed_on_and_ctrl_c_is_not_heard(tmp_path: Path) -> None:
    heard = signal.getsignal(signal.SIGINT)
    ProcessGroup(wait_for_the_end, tmp_path, 2, lambda: len(list(tmp_path.iterdir())) >= 2).run([])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "0 stopped", "1", "1 stopped"]
    assert signal.getsignal(signal.SIGINT) is heard


@pytest.mark.parametrize(
    ("work", "kind", "said", "fix"),
    [
        (fail_or_wait, UnknownNameError, "unknown colour 'rde'", "did you mean 'red'? known: red"),
        (die_or_wait, DiptychError, "process 2 of 2 was ended by signal 9", "use fewer processes"),
        (crash, DiptychError, "process [12] of 2 failed; what it said stands above", "__main__"),
    ],
)
def test_the_first_that_fails_ends_all_with_its_error(
    tmp_path: Path, work: Any, kind: type[DiptychError], said: str, fix: str
) -> None:
    with pytest.raises(DiptychError) as caught:
        ProcessGroup(work, tmp_path, 2, never).run([])
    assert type(caught.value) is kind
    assert re.fullmatch(said, caught.value.message)
    assert fix in caught.value.fix
    assert not list(tmp_path.glob("* stopped"))


def test_what_cannot_be_handed_on_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be handed to other processes") as caught:
        ProcessGroup(leave_a_word, lambda: tmp_path, 2, never).run([])
    assert caught.value.fix == "use one process"
    assert not isinstance(caught.value, DataError)
    assert list(tmp_path.iterdir()) == []
