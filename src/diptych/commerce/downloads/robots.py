"""robots.txt: what a host lets programs ask for (RFC 9309)."""

from __future__ import annotations

import math
import re
import threading
from urllib.parse import quote, urlsplit

from diptych.commerce.downloads.fetching import KEPT, Fetcher, Trouble, Turns, host_of, origin_of
from diptych.commerce.downloads.options import AGENT

# What a robots.txt says to one program (RFC 9309).
#
# Python's own parser knows no wildcards, takes the first rule instead of the longest, and fails on some addresses.

_TOKEN = re.compile(r"[A-Za-z_-]+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class RobotsRules:
    """The rules of the groups that name an agent, else those for ``*``; without any, all is allowed.

    Attributes:
        delay: seconds between two requests, as ``Crawl-delay`` asks for; 0 where nothing does.
    """

    def __init__(self, text: str, agent: str) -> None:
        rules: dict[str, list[tuple[str, bool]]] = {}
        delays: dict[str, float] = {}
        own = {agent.lower(), "*"}
        names: set[str] = set()  # of this group's agents, our own
        naming = False  # lines of agents that follow each other are of one group
        for line in text.removeprefix("\ufeff").splitlines():
            key, colon, value = line.partition("#")[0].partition(":")
            key, value = key.strip().lower(), value.strip()
            if not colon:
                continue
            if key == "user-agent":
                token = _TOKEN.match(value)
                if not naming:
                    names = set()
                naming = True
                names |= {token[0].lower() if token else value} & own
                for name in names:
                    rules.setdefault(name, [])
            elif key in ("allow", "disallow"):
                naming = False
                if value:
                    pattern = (_plain(value), key == "allow")
                    for name in names:
                        rules[name].append(pattern)
            elif key == "crawl-delay":
                naming = False
                for name in names:
                    delays[name] = _seconds(value)
        chosen = agent.lower() if agent.lower() in rules else "*"
        self._rules = rules.get(chosen, [])
        self.delay = delays.get(chosen, 0.0)

    def allows(self, place: str) -> bool:
        """Return whether a path may be fetched: the longest matching rule decides, of equal ones the permissive."""
        place = _plain(place)
        said = [(len(pattern), allowed) for pattern, allowed in self._rules if _matches(pattern, place)]
        return max(said, default=(0, True))[1]


def _plain(place: str) -> str:
    """With the same characters escaped in the same way: what need not be is not."""

    def written(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        return character if character in _UNRESERVED else found[0].upper()

    return _ESCAPE.sub(written, quote(place, safe=KEPT, errors="replace"))


def _matches(pattern: str, place: str) -> bool:
    """``*`` is anything, ``$`` at the end is the end; else the beginning counts."""
    ends = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    if not place.startswith(first):
        return False
    at = len(first)
    last = others.pop() if ends and others else None
    for part in others:
        at = place.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if last is not None:
        return len(place) - at >= len(last) and place.endswith(last)
    return not ends or at == len(place)


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return max(0.0, seconds) if not math.isnan(seconds) else 0.0


_MAX_BYTES = 512_000


class Robots:
    """The robots.txt of every host that is asked, each read once.

    A host without one allows everything; one that refuses to give it allows nothing; where it cannot be had, nothing
    is asked for either, until another time.

    Args:
        longest_wait: seconds; a host that wants longer ones between requests is not asked.
    """

    def __init__(self, fetcher: Fetcher, turns: Turns, longest_wait: float) -> None:
        self._fetcher, self._turns, self._longest_wait = fetcher, turns, longest_wait
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._read: dict[str, RobotsRules] = {}

    def check(self, address: str) -> None:
        """See that a picture may be asked for."""
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
