"""A session that nobody had: something to try a scorer with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.data.logs.schema import UNKNOWN

__all__ = ["example_session"]

_SECONDS = (0, 35, 80, 150, 175, 260)
_START = 1_577_991_600
"""2020-01-02 19:00 UTC, a Thursday evening."""


def example_session(about: Mapping[str, Any]) -> dict[str, Any]:
    """A session so far of six pages, made up of the words that the scorer knows.

    Args:
        about: what ``scorer.json`` says.
    """
    types = [name for name in about["vocabulary"] if name != UNKNOWN] or [UNKNOWN]
    first = {
        name: next((word for word in words or () if word != UNKNOWN), UNKNOWN)
        for name, words in about["known"].items()
    }
    session: dict[str, Any] = {
        "id": "an example; nobody's session",
        **first,
        "events": [
            {"t": _iso(_START + seconds), "action": "page", "page_type": types[number % min(3, len(types))]}
            for number, seconds in enumerate(_SECONDS)
        ],
    }
    if any(cell["setting"] == "identified" for cell in about["cells"]):
        session["visitor_id"] = "example-visitor"
        session["history"] = {
            "sessions": 3,
            "devices": [first["device"]] * 3,
            "orders": 1,
            "days_since_purchase": 12.5,
        }
    return session


def _iso(seconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat()
