"""robots.txt: what a host lets programs ask for (RFC 9309)."""

from __future__ import annotations

import threading
from urllib.parse import urlsplit

from diptych.data.downloads.addresses import host_of, origin_of
from diptych.data.downloads.fetching import Fetcher
from diptych.data.downloads.options import AGENT
from diptych.data.downloads.robots_rules import RobotsRules
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
        longest_wait: seconds; a host that wants longer ones between requests is not asked.
    """

    def __init__(self, fetcher: Fetcher, turns: Turns, longest_wait: float) -> None:
        self._fetcher, self._turns, self._longest_wait = fetcher, turns, longest_wait
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._read: dict[str, RobotsRules] = {}

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
        rules, parts = self._read[origin], urlsplit(address)
        if rules.delay > self._longest_wait:
            asked = f"asks for {rules.delay:,.0f} s between two requests"
            raise Trouble("robots", f"the robots.txt of {host_of(address)} {asked}")
        if not rules.allows(parts.path + (f"?{parts.query}" if parts.query else "")):
            raise Trouble("robots", f"the robots.txt of {host_of(address)} does not allow it")

    def _rules(self, origin: str) -> RobotsRules:
        try:
            found = self._fetcher.fetch(f"{origin}/robots.txt", _MAX_BYTES, accept="text/plain, */*")
        except Trouble as trouble:
            if trouble.kind == "refused":
                return RobotsRules("User-agent: *\nDisallow: /", AGENT)
            if trouble.kind in ("not found", "status", "too large", "redirects"):
                return RobotsRules("", AGENT)
            trouble.reason = f"its robots.txt: {trouble.reason}"
            raise
        rules = RobotsRules(found.content.decode("utf-8", errors="replace"), AGENT)
        if 0 < rules.delay <= self._longest_wait:
            self._turns.slow_down(host_of(origin), rules.delay)
        return rules
