"""What a robots.txt says to one program (RFC 9309).

Python's own parser knows no wildcards, takes the first rule instead of the longest, and fails on some addresses.
"""

from __future__ import annotations

import math
import re
from urllib.parse import quote

__all__ = ["RobotsRules"]

_TOKEN = re.compile(r"[A-Za-z_-]+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_KEPT = "/%:=&?~+!$,;'@()*[]|"


class RobotsRules:
    """The rules of the groups that name an agent, else those for ``*``; without any, all is allowed.

    Args:
        text: of the file.
        agent: a program's name.

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
        """Whether a path with its query may be asked for: the longest rule says it, of two as long the one that allows.

        Args:
            place: in ASCII, from the first ``/`` on.
        """
        place = _plain(place)
        said = [(len(pattern), allowed) for pattern, allowed in self._rules if _matches(pattern, place)]
        return max(said, default=(0, True))[1]


def _plain(place: str) -> str:
    """With the same characters escaped in the same way: what need not be is not."""

    def written(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        return character if character in _UNRESERVED else found[0].upper()

    return _ESCAPE.sub(written, quote(place, safe=_KEPT, errors="replace"))


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
