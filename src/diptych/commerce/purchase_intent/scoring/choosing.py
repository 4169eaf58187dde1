"""Which model answers for a session: of its setting, and of the last step that it has reached."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.commerce.purchase_intent.scoring.running import SessionSoFar
from diptych.core.errors import UsageError

__all__ = ["choose_place"]

_UNKNOWN_SETTING = "the visitor is known, but the scorer has no model for that: scored as anonymous"
_JUST_KNOWN = "the visitor logged in after the last page: known from the next page on"


def choose_place(
    places: Sequence[tuple[str, int]], session: SessionSoFar
) -> tuple[str, int, tuple[str, ...]]:
    """Setting and step of the model for a session, and what has to be said about the choice.

    Args:
        places: setting and step of every model there is.
        session: as far as it has come.

    Raises:
        UsageError: there is none for it.
    """
    notes = []
    setting = "identified" if session.is_identified else "anonymous"
    steps = _reached(places, setting, session.n_pages)
    if not steps and setting == "identified":
        setting = "anonymous"
        steps = _reached(places, setting, session.n_pages)
        notes.append(_UNKNOWN_SETTING)
    elif not session.is_identified and session.visitor_id is not None:
        notes.append(_JUST_KNOWN)
    if not steps:
        raise UsageError(
            f"the scorer has no model for {setting} sessions with {_pages(session.n_pages)}",
            "its model card says which it has, and why",
        )
    step = max(steps)
    if session.n_pages > step:
        which = "the last" if step == max(of for _, of in places) else "the nearest before"
        looks = f"looks at the first {step}" if step else "looks at none of them"
        verb = "is" if session.n_pages == 1 else "are"
        notes.append(f"{_pages(session.n_pages)} {verb} open: the model of step {step}, {which}, {looks}")
    return setting, step, tuple(notes)


def _reached(places: Sequence[tuple[str, int]], setting: str, pages: int) -> list[int]:
    return [step for of, step in places if of == setting and step <= pages]


def _pages(n: int) -> str:
    return f"{n:,} page{'s' * (n != 1)}"
