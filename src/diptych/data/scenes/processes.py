"""Jobs done here or in other processes, their answers in order.

The other processes are plain interpreters that read a job per line and answer a line. They do not
import the program that started them, as those of ``multiprocessing`` do: a script needs no
``if __name__ == "__main__"``, and neither standard input nor a notebook is a special case.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from diptych.core.errors import DiptychError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Job = TypeVar("Job", bound="DataclassInstance")
Made = list[dict[str, Any]]


def available_cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(do: Callable[[Job], Made], jobs: Sequence[Job], workers: int, program: str) -> Iterator[Made]:
    """Do jobs, in this process (``workers`` = 1) or in others, and yield what they made in order."""
    workers = min(workers, len(jobs))
    if workers <= 1:
        yield from map(do, jobs)
        return
    with ExitStack() as stack:
        idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        for _ in range(workers):
            process = start(program)
            stack.callback(stop, process)
            idle.put(process)

        def answered(job: Job) -> Made:
            process = idle.get()
            try:
                return ask(process, job)
            finally:
                idle.put(process)

        pool = stack.enter_context(ThreadPoolExecutor(workers))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        yield from pool.map(answered, jobs)


def start(program: str) -> subprocess.Popen[str]:
    """Start a process that answers jobs."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path},
    )


def stop(process: subprocess.Popen[str]) -> None:
    """End it, whatever it does."""
    process.terminate()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):  # a request that the process did not live to read
                stream.close()
    process.wait()


def ask(process: subprocess.Popen[str], job: DataclassInstance) -> Made:
    """What a process makes of a job."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asdict(job)) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if not answer:
        raise DiptychError(
            f"a process that drew scenes ended without an answer (exit code {process.wait()})",
            "see its message above, or pass workers=1",
        )
    reply = json.loads(answer)
    if "errno" in reply:
        raise OSError(reply["errno"], reply["message"])
    made: Made = reply["made"]
    return made


def answer_lines(do: Callable[[dict[str, Any]], Made]) -> None:
    """What another process runs: a job per line of standard input, a line of what it made for each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    for line in sys.stdin:
        try:
            reply: dict[str, Any] = {"made": do(json.loads(line))}
        except OSError as error:
            reply = {"errno": error.errno, "message": error.strerror or str(error)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
