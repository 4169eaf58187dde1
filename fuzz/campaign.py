"""Run corrupt inputs, each in a process of its own, and report failures.

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

from fuzz.mutations import mutate
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


def run(inputs: range, seed: int, processes: int = 2, only: str | None = None) -> Iterator[Outcome]:
    """Run the inputs of these numbers, targets in turns; outcomes come as they end."""
    prepare()
    targets = [one for one in TARGETS if only in (None, one.name)]
    root = Path(tempfile.mkdtemp(prefix="fuzz-")).resolve()
    try:
        _make_valid(root / "valid")
        running: dict[int, tuple[int, int, float]] = {}
        left = iter(inputs)
        while True:
            while len(running) < processes and (case := next(left, None)) is not None:
                pid, pipe = _start(root, case, seed, targets[case % len(targets)])
                running[pipe] = pid, case, time.monotonic()
            if not running:
                return
            ready, _, _ = select.select(list(running), [], [], 1.0)
            for pipe, (pid, case, begun) in list(running.items()):
                if pipe not in ready:
                    if time.monotonic() - begun < WALL_SECONDS:
                        continue
                    os.kill(pid, signal.SIGKILL)
                del running[pipe]
                yield _ended(pipe, pid, case, targets[case % len(targets)].name)
                shutil.rmtree(root / str(case), ignore_errors=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _make_valid(folder: Path) -> None:
    """Write valid inputs, in a process of its own: threads that it starts must not be forked again."""
    if pid := os.fork():
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            raise RuntimeError("the valid inputs could not be made")
        return
    code = 1
    try:
        for one in TARGETS:
            (folder / one.name).mkdir(parents=True)
            one.make(folder / one.name)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _start(root: Path, case: int, seed: int, one: Target) -> tuple[int, int]:
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        return pid, reading
    os.close(reading)
    result = {"outcome": "TRACEBACK", "detail": "of the campaign itself"}
    try:
        result = _case(root, case, seed, one)
    finally:
        os.write(writing, json.dumps(result).encode()[:60_000])
        os._exit(0)


def _ended(pipe: int, pid: int, case: int, name: str) -> Outcome:
    with os.fdopen(pipe, "rb") as handle:
        result = handle.read()
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if result:
        return Outcome(case, name, **json.loads(result))
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return Outcome(case, name, "HANG", detail=f"{used.ru_utime + used.ru_stime:.1f} s of processor time")
    return Outcome(case, name, "TRACEBACK", detail=f"the process ended with {code}")


def _case(root: Path, case: int, seed: int, one: Target) -> dict[str, str]:
    """Damage a copy of a valid input and use it."""
    from diptych.core.errors import DiptychError

    sandbox = root / str(case)
    out = sandbox / "deep" / "out"
    out.mkdir(parents=True)
    shutil.copytree(root / "valid" / one.name, sandbox / "in")
    begun = _size("VmRSS")
    resource.setrlimit(resource.RLIMIT_DATA, (_size("VmData") + MEMORY_BYTES,) * 2)
    change = mutate(sandbox / "in", random.Random(f"{seed}-{case}-{one.name}"), sandbox)
    before = _tree(sandbox, out)
    Path("/proc/self/clear_refs").write_text("5")  # what the mutation took does not count
    os.chdir(sandbox / "deep")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    logging.disable()
    warnings.simplefilter("ignore")
    limit = round(time.process_time()) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    outcome, detail = "OK", ""
    try:
        one.use(sandbox / "in", out)
    except DiptychError as error:
        detail = str(error)[:200]
    except BaseException as error:
        outcome, detail = "MEMORY" if isinstance(error, MemoryError) else "TRACEBACK", _told(error)
    if outcome == "OK" and (grown := _size("VmHWM") - begun) > MEMORY_BYTES:
        outcome, detail = "MEMORY", f"{grown >> 20:,} MB"
    if escaped := _tree(sandbox, out) - before:
        outcome, detail = "ESCAPE", ", ".join(sorted(escaped))
    return {"outcome": outcome, "change": change, "detail": detail}


def _tree(sandbox: Path, out: Path) -> set[str]:
    return {str(path) for path in sandbox.rglob("*") if not path.is_relative_to(out)}


def _size(name: str) -> int:
    """Return a size of this process in bytes."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def _told(error: BaseException) -> str:
    """Say what was raised, and where in the package."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "diptych" in frame.filename]
    where = f"{frames[-1].filename.rpartition('diptych/')[2]}:{frames[-1].lineno}" if frames else "elsewhere"
    return f"{type(error).__name__} in {where}: {' '.join(str(error).split())[:160]}"


def report(outcomes: Iterator[Outcome], seed: int) -> int:
    """Print falls as they come and the counts at the end; return how many fell."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in outcomes:
        counts[one.target, one.outcome] += 1
        if one.outcome != "OK":
            print(f"{one.outcome} {one.target}: {one.detail}\n    {ascii(one.change)[:300]}")
            print(f"    python -m fuzz --seed {seed} --case {one.case}", flush=True)
    for name in sorted({name for name, _ in counts}):
        found = (f"{counts[name, outcome]} {outcome}" for outcome in OUTCOMES if counts[name, outcome])
        print(f"{name}: {', '.join(found)}")
    totals = {outcome: sum(n for (_, o), n in counts.items() if o == outcome) for outcome in OUTCOMES}
    print(
        f"{sum(totals.values()):,} inputs: {', '.join(f'{n:,} {outcome}' for outcome, n in totals.items())}"
    )
    return sum(totals.values()) - totals["OK"]


def check_system() -> None:
    """Leave where there is no fork and no /proc."""
    if not hasattr(os, "fork") or not Path("/proc/self/status").exists():
        sys.exit("fuzz needs Linux: it forks a process per input and reads its size from /proc")
