"""robots.txt: what a host lets programs ask for (RFC 9309)."""

from __future__ import annotations

import threading
from urllib.robotparser import RobotFileParser

from diptych.data.downloads.addresses import host_of, origin_of
from diptych.data.downloads.fetching import Fetcher
from diptych.data.downloads.options import AGENT
from diptych.data.downloads.trouble import Trouble
from diptych.data.downloads.turns import Turns

__all__ = ["Robots"]

_MAX_BYTES = 512_000


class Robots:
    """The robots.txt of every host that is asked, each read once.

    A host without one allows everything; one that refuses to give it allows nothing; where it cannot be had, nothing
    is asked for either, until another time.

    Args:
        fetcher: reads it.
        turns: slowed down where it says so.
    """

    def __init__(self, fetcher: Fetcher, turns: Turns) -> None:
        self._fetcher, self._turns = fetcher, turns
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._read: dict[str, RobotFileParser] = {}

    def check(self, address: str) -> None:
        """See that a picture may be asked for.

        Raises:
            Trouble: robots.txt says no, or could not be had.
            Stopped: asked to stop meanwhile.
        """
        origin = origin_of(address)
        with self._lock:
            lock = self._locks.setdefault(origin, threading.Lock())
        with lock:
            if origin not in self._read:
                self._read[origin] = self._rules(origin)
        if not self._read[origin].can_fetch(AGENT, address):
            raise Trouble("robots", f"the robots.txt of {host_of(address)} does not allow it")

    def _rules(self, origin: str) -> RobotFileParser:
        rules = RobotFileParser()
        try:
            found = self._fetcher.fetch(f"{origin}/robots.txt", _MAX_BYTES, accept="text/plain, */*")
        except Trouble as trouble:
            if trouble.kind == "refused":
                rules.disallow_all = True  # type: ignore[attr-defined]
            elif trouble.kind in ("not found", "status", "too large", "redirects"):
                rules.allow_all = True  # type: ignore[attr-defined]
            else:
                trouble.reason = f"its robots.txt: {trouble.reason}"
                raise
            return rules
        rules.parse(found.content.decode("utf-8", errors="replace").splitlines())
        delay = rules.crawl_delay(AGENT)
        if delay:
            self._turns.slow_down(host_of(origin), float(delay))
        return rules
