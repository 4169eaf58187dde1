"""The contract of a job: any order, any number of processes, killed anywhere: the same units, none done twice."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from crash import crash_everywhere
from refusals import refused

from diptych.core.artifact import Artifact
from diptych.core.context import stop_when
from diptych.core.errors import DiptychError, Interrupted, MismatchError, StorageError, UsageError
from diptych.core.job import Job
from diptych.core.locking import exclusive_folder
from diptych.core.processes import in_processes


@dataclass(frozen=True)
class Header(Artifact, kind="squares"):
    power: int


@dataclass(frozen=True)
class Square(Artifact, kind="square"):
    value: int


def job(folder: Path, power: int = 2) -> Job[Square]:
    return Job(folder, Header(power), Square, noun="squares", suffix=".json")


def square(given: tuple[int, str]) -> Square:
    number, log = given
    if log:
        with open(log, "a") as handle:
            handle.write(f"{number}\n")
    return Square(number * number)


def units(count: int, log: Path | str = "") -> dict[str, tuple[int, str]]:
    return {f"n/{number}": (number, str(log)) for number in range(count)}


def values(one: Job[Square], count: int) -> list[int]:
    return [one.get(key).value for key in units(count)]  # type: ignore[union-attr]


def test_finished_units_of_the_same_state_are_kept(tmp_path: Path) -> None:
    one, log = job(tmp_path / "job"), tmp_path / "log"
    for count, processes in ((3, 1), (5, 1), (7, 2)):
        one.run(units(count, log), square, processes=processes)
    assert values(one, 7) == [0, 1, 4, 9, 16, 25, 36]
    assert sorted(map(int, log.read_text().split())) == list(range(7))


def test_a_unit_of_another_state_or_that_is_corrupt_is_run_again(tmp_path: Path) -> None:
    one, log = job(tmp_path / "job"), tmp_path / "log"
    one.run(units(3, log), square, states={"n/1": "old"})
    one.path("n/2").write_text("{")
    one.run(units(3, log), square, states={"n/1": "new"})
    assert sorted(map(int, log.read_text().split())) == [0, 1, 1, 2, 2]


def test_another_job_and_other_things_are_refused(tmp_path: Path) -> None:
    job(tmp_path / "job").run(units(1), square)
    refused(MismatchError, "power 2, requested 3", job(tmp_path / "job", 3).run, units(1), square)
    (tmp_path / "x").write_text("")
    refused(UsageError, "holds other things", job(tmp_path).run, units(1), square)


def test_a_stop_keeps_what_is_finished(tmp_path: Path) -> None:
    one = job(tmp_path / "job")
    with (
        stop_when(lambda: one.path("n/2").exists()),
        pytest.raises(Interrupted, match="3 of 5 squares are kept"),
    ):
        one.run(units(5), square)
    one.run(units(5), square)
    assert values(one, 5) == [0, 1, 4, 9, 16]


def test_a_crash_at_any_call_loses_no_finished_unit(tmp_path: Path) -> None:
    def check(place: Path) -> None:
        one = job(place / "job")
        finished = [number for number, key in enumerate(units(2)) if one.get(key) is not None]
        log = place / "log"
        one.run(units(2, log), square)
        assert values(one, 2) == [0, 1]
        again = [int(line) for line in log.read_text().split()] if log.exists() else []
        assert again == [number for number in (0, 1) if number not in finished]

    points = crash_everywhere(
        lambda place: None, lambda place: job(place / "job").run(units(2), square), check, tmp_path
    )
    assert points >= 15


HOLD = """
import sys
from diptych.core.locking import exclusive_folder
with exclusive_folder(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_one_process_s_until_it_ends_however(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for end in ("killed", "closed"):
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            (folder / ".rows.npy.123.tmp").write_text("half")
            with pytest.raises(StorageError, match="another process is working in"), exclusive_folder(folder):
                pass
            assert (folder / ".rows.npy.123.tmp").exists()
            holder.send_signal(signal.SIGKILL) if end == "killed" else holder.communicate("")
        with exclusive_folder(folder):
            assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"), exclusive_folder(tmp_path / "file" / "folder"):
        pytest.fail("the block must not run")


def begun(folder: str) -> Path:
    (Path(folder) / f"begun-{os.getpid()}").touch()
    return Path(folder)


def mark(place: Path, number: int) -> int:
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if number > 98:
        raise StorageError(f"task {number} is corrupt", "leave it out")
    (place / f"done-{number}").touch()
    return number * number


def test_every_task_is_done_once_by_processes_that_begin_once(tmp_path: Path) -> None:
    found = list(in_processes(range(12), mark, 2, begun, (str(tmp_path),), ordered=True))
    assert found == [number * number for number in range(12)]
    assert len(list(tmp_path.glob("done-*"))) == 12
    begins = {file.name for file in tmp_path.glob("begun-*")}
    assert 1 <= len(begins) <= 2
    assert f"begun-{os.getpid()}" not in begins
    with pytest.raises(DiptychError, match="worker process was killed.*the same command resumes"):
        list(in_processes([1, -1], mark, 2, begun, (str(tmp_path),)))
    error = refused(
        StorageError, "task 99 is corrupt", list, in_processes([1, 99], mark, 2, begun, (str(tmp_path),))
    )
    assert error.fix == "leave it out"


def test_a_program_needs_no_main_guard(tmp_path: Path) -> None:
    lines = ("import operator", "from diptych.core.processes import in_processes")
    call = "print(list(in_processes([1, 2, 3], operator.neg, 2, ordered=True)))"
    (tmp_path / "program.py").write_text("\n".join([*lines, call]))
    line = [sys.executable, tmp_path / "program.py"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout == "[-1, -2, -3]\n"


MEMORY = """
import resource, sys
import numpy as np
if "keep" in sys.argv:
    from diptych.core.processes import keep_freed_memory
    assert keep_freed_memory()
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(10_000_000)
before = faults()
for _ in range(10):
    np.ones(10_000_000)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc hands memory back block by block")
def test_freed_memory_is_kept() -> None:
    def faults(*arguments: str) -> int:
        line = [sys.executable, "-c", MEMORY, *arguments]
        return int(subprocess.run(line, capture_output=True, text=True, check=True).stdout)

    # 80 MB in 4 kB pages is 19,531 faults a time; huge pages make it fewer, keeping them makes it none.
    assert faults("keep") * 5 < faults()
