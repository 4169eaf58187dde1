"""Lanes: one thread per encoder that works for many requests at a time."""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from diptych.core.errors import DiptychError


class BusyError(DiptychError):
    """More work is waiting than the queue holds."""

    def __init__(self, waiting: int, limit: int, seconds: int) -> None:
        super().__init__(f"{waiting:,} items are waiting, the queue holds {limit:,}", "send it again later")
        self.seconds = seconds  # until the queue is likely to be empty


@dataclass
class _Job:
    work: Any
    items: int
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    since: float = field(default_factory=time.perf_counter)


class Lane:
    """A queue with one thread: jobs that wait are done together, in the order they came.

    A job that comes when no client was lately answered is begun at once. After a batch the thread waits up to ``wait``
    seconds for as many jobs as it did, besides those that wait: the clients that it just answered are about to ask.

    Args:
        process: from jobs to their results, in order; a result that is an exception is raised where its job waits.
        limit: items that can wait.
        batch: items that are done together at most.
        observe: called after each batch with its jobs, its items and the seconds that its first job waited.
    """

    def __init__(
        self,
        process: Callable[[Sequence[Any]], Sequence[Any]],
        *,
        limit: int = 1024,
        batch: int = 256,
        wait: float = 0.005,
        observe: Callable[[int, int, float], None] = lambda jobs, items, waited: None,
    ) -> None:
        self._process, self._limit, self._batch, self._wait = process, limit, batch, wait
        self._observe = observe
        self._jobs: deque[_Job] = deque()
        self._ready = threading.Condition()
        self._closed = False
        self._expected, self._free = 1, 0.0
        self._rate = 100.0  # items per second, of late
        self.waiting = 0
        self._thread = threading.Thread(target=self._run, name="lane", daemon=True)
        self._thread.start()

    async def do(self, work: Any, items: int = 1) -> Any:
        """Have a job done, and return its result.

        ``work`` is what ``process`` takes, or a function without arguments, which is called between batches.

        Raises:
            BusyError: the queue is full; nothing was begun.
        """
        loop = asyncio.get_running_loop()
        job = _Job(work, items, loop.create_future(), loop)
        with self._ready:
            if self._closed or self.waiting + items > max(self._limit, items * (not self.waiting)):
                seconds = min(60, 1 + math.ceil(self.waiting / self._rate))
                raise BusyError(self.waiting, self._limit, seconds)
            self.waiting += items
            self._jobs.append(job)
            if len(self._jobs) in (1, self._expected):  # woken by each job, the thread would be in their way
                self._ready.notify()
        return await job.future

    def close(self) -> None:
        """Do what is waiting, then end."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._jobs and not self._closed:
                    self._ready.wait()
                if not self._jobs:
                    return
                until = max(self._free, self._jobs[0].since) + self._wait
                while len(self._jobs) < self._expected and (left := until - time.perf_counter()) > 0:
                    if not self._ready.wait(left):
                        break
                batch = self._taken()
            self._finish(batch)
            with self._ready:
                self._expected = min(len(batch) + len(self._jobs), self._batch)
                self._free = time.perf_counter()

    def _taken(self) -> list[_Job]:
        """Take the next jobs from the queue; a function is alone."""
        taken, items = [self._jobs.popleft()], 0
        items = taken[0].items
        while self._jobs and not callable(taken[0].work) and not callable(self._jobs[0].work):
            if items + self._jobs[0].items > self._batch:
                break
            taken.append(self._jobs.popleft())
            items += taken[-1].items
        self.waiting -= items
        return taken

    def _finish(self, batch: list[_Job]) -> None:
        begun = time.perf_counter()
        wanted = [
            job for job in batch if not job.future.cancelled()
        ]  # no client waits for the others any more
        if not wanted:
            return
        items = sum(job.items for job in wanted)
        try:
            if callable(wanted[0].work):
                results: Sequence[Any] = [wanted[0].work()]
            else:
                results = self._process([job.work for job in wanted])
        except Exception as error:  # noqa: BLE001  # it is raised where the job waits
            results = [error] * len(wanted)
        took = time.perf_counter() - begun
        self._rate = 0.8 * self._rate + 0.2 * items / max(took, 1e-6)
        self._observe(len(wanted), items, begun - wanted[0].since)
        for loop in {job.loop for job in wanted}:
            pairs = [one for one in zip(wanted, results, strict=True) if one[0].loop is loop]
            try:
                loop.call_soon_threadsafe(_deliver, pairs)
            except RuntimeError:  # the loop has ended, and with it all who waited
                continue


def _deliver(pairs: list[tuple[_Job, Any]]) -> None:
    for job, result in pairs:
        if job.future.done():
            continue
        if isinstance(result, BaseException):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)
