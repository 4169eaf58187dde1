"""Run damaged inputs, each in a process of its own, and say what fell.

An input is OK when it is read, or refused by a DiptychError. Anything else is a fall:

- TRACEBACK: another exception, or the end of the process by a signal.
- ESCAPE: a file was written outside the folder for output.
- MEMORY: more than 1 GB beyond what the process began with.
- HANG: more than 5 s of processor time, or 60 s by the clock.
"""

from __future__ import annotations

import json
import logging
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzz.mutations import copied, mutate
from fuzz.targets import TARGETS, Target, prepare

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 5
WALL_SECONDS = 60
OUTCOMES = ("OK", "TRACEBACK", "ESCAPE", "MEMORY", "HANG")


@dataclass(frozen=True)
class Outcome:
    """What became of an input."""

    case: int
    target: str
    outcome: str
    change: str = ""
    detail: str = ""


def chosen(case: int, only: str | None = None) -> Target:
    """Return the target of a case: they take turns."""
    targets = [one for one in TARGETS if only in (None, one.name)]
    return targets[case % len(targets)]


def run(inputs: range, seed: int, processes: int = 2, only: str | None = None) -> Iterator[Outcome]:
    """Run the inputs of these numbers; outcomes come as they end."""
    prepare()
    root = Path(tempfile.mkdtemp(prefix="fuzz-")).resolve()
    try:
        _in_process(lambda: _make_seeds(root / "valid"))
        running: dict[int, tuple[int, int, float]] = {}
        left = iter(inputs)
        while True:
            while len(running) < processes and (case := next(left, None)) is not None:
                pid, pipe = _start(root, case, seed, only)
                running[pipe] = pid, case, time.monotonic()
            if not running:
                return
            ready, _, _ = select.select(list(running), [], [], 1.0)
            for pipe, (pid, case, begun) in list(running.items()):
                if pipe in ready:
                    yield _ended(pipe, pid, case, chosen(case, only).name)
                elif time.monotonic() - begun > WALL_SECONDS:
                    os.kill(pid, signal.SIGKILL)
                    yield _ended(pipe, pid, case, chosen(case, only).name)
                else:
                    continue
                del running[pipe]
                shutil.rmtree(root / str(case), ignore_errors=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _in_process(work: object) -> None:
    """Run a function in a process of its own: what it starts, threads above all, is not forked again."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()  # type: ignore[operator]
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise RuntimeError("the valid inputs could not be made")


def _make_seeds(folder: Path) -> None:
    for one in TARGETS:
        (folder / one.name).mkdir(parents=True)
        one.make(folder / one.name)


def _start(root: Path, case: int, seed: int, only: str | None) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.close(reading)
    said: dict[str, str] = {}
    try:
        said = _case(root, case, seed, chosen(case, only))
    except BaseException as error:  # of the campaign itself
        said = {"outcome": "TRACEBACK", "detail": f"fuzz: {error!r}"}
    finally:
        try:
            os.write(writing, json.dumps(said).encode()[:60_000])
        finally:
            os._exit(0)


def _ended(pipe: int, pid: int, case: int, name: str) -> Outcome:
    with os.fdopen(pipe, "rb") as handle:
        said = handle.read()
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if said:
        return Outcome(case, name, **json.loads(said))
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return Outcome(case, name, "HANG", detail=f"{used.ru_utime + used.ru_stime:.1f} s of processor time")
    return Outcome(case, name, "TRACEBACK", detail=f"the process ended with {code}")


def _case(root: Path, case: int, seed: int, one: Target) -> dict[str, str]:
    """Damage a copy of a valid input and use it."""
    from diptych.core.errors import DiptychError

    sandbox = root / str(case)
    out = sandbox / "deep" / "out"
    out.mkdir(parents=True)
    rng = random.Random(f"{seed}-{case}-{one.name}")
    folder = copied(root / "valid" / one.name, sandbox / "in")
    change = mutate(folder, rng, sandbox)
    before = _tree(sandbox, out)
    os.chdir(sandbox / "deep")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    logging.disable()
    warnings.simplefilter("ignore")
    begun = _status("VmRSS")
    resource.setrlimit(resource.RLIMIT_DATA, (_status("VmData") + MEMORY_BYTES,) * 2)
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = round(used.ru_utime + used.ru_stime) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    outcome, detail = "OK", ""
    try:
        one.use(folder, out)
    except DiptychError as error:
        detail = str(error)[:200]
    except MemoryError as error:
        outcome, detail = "MEMORY", _told(error)
    except BaseException as error:
        outcome, detail = "TRACEBACK", _told(error)
    if outcome == "OK" and (grown := _status("VmHWM") - begun) > MEMORY_BYTES:
        outcome, detail = "MEMORY", f"{grown >> 20:,} MB"
    if escaped := _tree(sandbox, out) - before:
        outcome, detail = "ESCAPE", ", ".join(sorted(escaped))
    return {"outcome": outcome, "change": change, "detail": detail}


def _tree(sandbox: Path, out: Path) -> set[str]:
    return {
        os.path.join(place, name)
        for place, folders, files in os.walk(sandbox)
        if not Path(place).is_relative_to(out)
        for name in (*folders, *files)
    }


def _status(name: str) -> int:
    """Return a size of this process in bytes."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.split(f"{name}:")[1].split()[0])


def _told(error: BaseException) -> str:
    """Say what was raised, and where in the package."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "diptych" in frame.filename]
    where = f"{frames[-1].filename.rpartition('diptych/')[2]}:{frames[-1].lineno}" if frames else "elsewhere"
    return f"{type(error).__name__} in {where}: {' '.join(str(error).split())[:160]}"


def report(outcomes: Iterator[Outcome], seed: int) -> int:
    """Print falls as they come and the counts at the end; return how many fell."""
    counts: Counter[str] = Counter()
    per_target: Counter[tuple[str, str]] = Counter()
    for one in outcomes:
        counts[one.outcome] += 1
        per_target[one.target, one.outcome] += 1
        if one.outcome != "OK":
            print(f"{one.outcome} {one.target}: {one.detail}\n    {ascii(one.change)[:300]}")
            print(f"    python -m fuzz --seed {seed} --case {one.case}", flush=True)
    for name in (one.name for one in TARGETS):
        found = {outcome: per_target[name, outcome] for outcome in OUTCOMES if per_target[name, outcome]}
        if found:
            print(f"{name}: {', '.join(f'{count} {outcome}' for outcome, count in found.items())}")
    total = sum(counts.values())
    print(f"{total:,} inputs: {', '.join(f'{counts[name]:,} {name}' for name in OUTCOMES)}")
    return total - counts["OK"]


def check_system() -> None:
    """Leave where there is no fork and no /proc."""
    if not hasattr(os, "fork") or not Path("/proc/self/status").exists():
        sys.exit("fuzz needs Linux: it forks a process per input and reads its size from /proc")
