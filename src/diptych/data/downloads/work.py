"""The work of a download, host by host: what is next, what is tried again, which host is given up."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from diptych.data.downloads.addresses import host_of, proper_address
from diptych.data.downloads.options import DownloadOptions
from diptych.data.downloads.trouble import Trouble
from diptych.data.downloads.turns import Turns

__all__ = ["Job", "Work"]

_DEAD_AFTER = 3
"""Pictures in a row that did not come because of their host, all attempts each; then the host is given up."""


@dataclass
class Job:
    """One address and all items whose picture it is; it is fetched once for all of them."""

    address: str
    ids: list[str] = field(default_factory=list)
    attempts: int = 0


class Work:
    """Jobs in the order given, per host; threads take them and bring them back.

    Args:
        jobs: all of them.
        options: how often a job is tried, and how long it waits.
        turns: of the hosts.
        stop: set when no more jobs are given out.
    """

    def __init__(
        self, jobs: Iterable[Job], options: DownloadOptions, turns: Turns, stop: threading.Event
    ) -> None:
        self._options, self._turns, self._stop = options, turns, stop
        self._changed = threading.Condition()
        self._queues: dict[str, deque[Job]] = {}
        for job in jobs:
            self._queues.setdefault(_host(job), deque()).append(job)
        self._ticket = itertools.count()
        # A host has as many places here as it may have connections; a place is taken while its job runs.
        self._ready = [
            (0.0, next(self._ticket), host) for host in self._queues for _ in range(options.connections)
        ]
        self._running = 0
        self._dead: dict[str, int] = {}
        self.given_up: dict[str, str] = {}

    @property
    def n_hosts(self) -> int:
        """How many hosts there are."""
        return len(self._queues)

    def next(self) -> Job | None:
        """The job whose turn is first, waited for; None when there is none left, or when asked to stop."""
        with self._changed:
            while not self._stop.is_set():
                now = time.monotonic()
                if self._ready and self._ready[0][0] <= now:
                    host = heapq.heappop(self._ready)[2]
                    if host in self.given_up or not self._queues[host]:
                        continue
                    self._running += 1
                    return self._queues[host].popleft()
                if not self._ready and not self._running:
                    return None
                self._changed.wait(min(0.2, max(0.001, self._ready[0][0] - now)) if self._ready else 0.2)
        return None

    def done(self, job: Job) -> None:
        """A job came."""
        self._back(job, came=True)

    def failed(self, job: Job, trouble: Trouble) -> bool:
        """A job did not come: whether that is the end of it. If not, it is tried again when its host has had rest."""
        job.attempts += 1
        host = _host(job)
        wait = self._options.back_off * 2 ** (job.attempts - 1)
        if trouble.after is not None:
            wait = max(wait, trouble.after)
        if trouble.again and wait > self._options.longest_wait:
            self._give_up(host, f"asks to wait {wait:,.0f} s")
            self._back(job, put_back=True)
            return False
        if trouble.again and job.attempts < self._options.attempts:
            self._turns.pause(trouble.host or host, wait)
            self._back(job, put_back=True)
            return False
        self._back(job, came=not trouble.of_host)
        if self._dead.get(host, 0) >= _DEAD_AFTER:
            self._give_up(host, trouble.reason)
        return True

    def _give_up(self, host: str, reason: str) -> None:
        with self._changed:
            self.given_up[host] = reason
            self._changed.notify_all()

    def _back(self, job: Job, *, came: bool | None = None, put_back: bool = False) -> None:
        host = _host(job)
        with self._changed:
            self._running -= 1
            if put_back:
                self._queues[host].appendleft(job)
            if came is not None:
                self._dead[host] = 0 if came else self._dead.get(host, 0) + 1
            heapq.heappush(self._ready, (self._turns.next_at(host), next(self._ticket), host))
            self._changed.notify_all()


def _host(job: Job) -> str:
    try:
        return host_of(proper_address(job.address))
    except Trouble:
        return ""  # it will fail at once, under nobody's name
