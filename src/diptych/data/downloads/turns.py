"""Turns: how often, and by how many at once, a host is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from diptych.data.downloads.trouble import Stopped


class Turns:
    """One request per turn; all threads wait for a host's turns together, however they came to the host.

    Args:
        rate: turns per second and host.
    """

    def __init__(self, rate: float, connections: int, stop: threading.Event) -> None:
        self._between, self._connections, self._stop = 1.0 / rate, connections, stop
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}
        self._slower: dict[str, float] = {}
        self._open: dict[str, threading.Semaphore] = {}

    def check(self) -> None:
        """Go on, unless asked to stop."""
        if self._stop.is_set():
            raise Stopped

    def slow_down(self, host: str, seconds: float) -> None:
        """At least so many seconds between two turns of a host (robots.txt may say so)."""
        with self._lock:
            self._slower[host] = max(seconds, self._slower.get(host, 0.0))

    def pause(self, host: str, seconds: float) -> None:
        """No turn of this host for so long."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)

    def next_at(self, host: str) -> float:
        """When the host's next turn is, by ``time.monotonic``."""
        with self._lock:
            return self._next.get(host, 0.0)

    @contextmanager
    def turn(self, host: str) -> Iterator[None]:
        """Wait for a turn and have it while the block runs."""
        with self._lock:
            free = self._open.setdefault(host, threading.Semaphore(self._connections))
        while not free.acquire(timeout=0.2):
            self.check()
        try:
            with self._lock:
                now = time.monotonic()
                at = max(now, self._next.get(host, 0.0))
                self._next[host] = at + max(self._between, self._slower.get(host, 0.0))
            if self._stop.wait(max(0.0, at - now)):
                raise Stopped
            yield
        finally:
            free.release()
