"""What a person may choose about measuring a log (``--set measure.KEY=VALUE``), and what is taken otherwise.

============= ============ ==========================================================================
``gap``       30           minutes without an event after which a session has ended
``by``        client       whose events make a session: ``client``, ``visitor``, or ``given`` by the log
``ddof``      0            of standardised rates: divide by n − ``ddof``
``journey``   pair         transitions ``pair``: into a purchase session; ``journey``: all since the one before
``compat``    none         ``published``: populations of a step as the thesis describes them
``split``     grouped      how training and test sessions are told apart: ``random``, ``grouped``, ``time``
``folds``     10           of cross-validation
``steps``     all          pages that are open, e.g. ``[0, 1, 5, 10]``
``sessions``  all          at most so many sessions are predicted on, of persons drawn at random
``seed``      0            of draws, splits and models
``jobs``      1            processes that train
============= ============ ==========================================================================

Settings have others for some of them; ``diptych study show`` names those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from diptych.core.errors import UnknownNameError, UsageError

_WORDS = {
    "by": ("client", "visitor", "given"),
    "journey": ("pair", "journey"),
    "compat": ("none", "published"),
    "split": ("random", "grouped", "time"),
}
_LEAST = {"ddof": 0, "folds": 2, "sessions": 1, "seed": 0, "jobs": 1}


@dataclass(frozen=True)
class LogOptions:
    """See above."""

    gap: float = 30.0
    by: str = "client"
    ddof: int = 0
    journey: str = "pair"
    compat: str = "none"
    split: str = "grouped"
    folds: int = 10
    steps: tuple[int, ...] | None = None
    sessions: int | None = None
    seed: int = 0
    jobs: int = 1

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LogOptions:
        """From what was set; numbers may come as they are typed."""
        known = dict(given)
        if isinstance(known.get("steps"), list | tuple):
            known["steps"] = tuple(known["steps"])
        elif isinstance(known.get("steps"), int):
            known["steps"] = (known["steps"],)
        return cls(**known)

    def __post_init__(self) -> None:
        for key, words in _WORDS.items():
            if getattr(self, key) not in words:
                raise UnknownNameError(f"measure.{key}", str(getattr(self, key)), words)
        for key, least in _LEAST.items():
            value = getattr(self, key)
            if value is None and key == "sessions":
                continue
            if not _is_whole(value) or value < least:
                raise UsageError(f"measure.{key} is {value!r}", f"give a whole number from {least}")
        if (
            isinstance(self.gap, bool)
            or not isinstance(self.gap, int | float)
            or not 0 < self.gap < float("inf")
        ):
            raise UsageError(f"measure.gap is {self.gap!r}", "give minutes, e.g. --set measure.gap=30")
        if self.steps is not None and (not self.steps or not all(map(_is_whole, self.steps))):
            raise UsageError(
                f"measure.steps is {self.steps!r}", "give numbers, e.g. --set 'measure.steps=[0, 5]'"
            )

    def only(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """Some of them, JSON-able, for fingerprints."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name in keys}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    def sessions_are(self) -> str:
        """What a session is, in the words of printed numbers."""
        if self.by == "given":
            return "as the log gives them"
        return f"by {self.by}, ended by {self.gap:g} minutes without an event"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
