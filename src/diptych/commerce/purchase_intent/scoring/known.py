"""What a scorer knows of a session besides its events: the visitor's history, and the words of its training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.commerce.purchase_intent.scoring.events import shown
from diptych.commerce.purchase_intent.scoring.history import history_columns
from diptych.commerce.purchase_intent.scoring.history_table import HistoryTable
from diptych.commerce.purchase_intent.scoring.request import Request
from diptych.commerce.purchase_intent.scoring.running import SessionSoFar
from diptych.core.errors import DataError

__all__ = ["known_history", "unknown_words"]

_MOST_SHOWN = 5

Columns = dict[str, float | str]


def known_history(
    request: Request, setting: str, since_us: int | None, kept: HistoryTable | None
) -> tuple[Columns | None, list[str]]:
    """Values of the history columns, and what has to be said about them; None for an anonymous session.

    Args:
        request: the session, with a history or without.
        setting: of the model that answers.
        since_us: the first session of the scorer's log.
        kept: histories to look the visitor up in, where the request brings none.

    Raises:
        DataError: a history that cannot be, or a kept one that goes beyond the session's start.
    """
    session = request.session
    if setting != "identified":
        if request.history is None:
            return None, []
        why = "" if session.is_identified else "the visitor is not known yet: "
        return None, [f"{why}the history is not looked at"]
    if request.history is None and kept is not None:
        return _looked_up(session, since_us, kept)
    columns, missing = history_columns(request.history, session.start_us, session.device, since_us)
    if not missing:
        return columns, []
    return columns, [f"the history does not say: {', '.join(missing)}; taken as missing"]


def _looked_up(session: SessionSoFar, since_us: int | None, kept: HistoryTable) -> tuple[Columns, list[str]]:
    assert session.visitor_id is not None
    found = kept.columns(session.visitor_id, session.start_us, session.device, since_us)
    if found is None:
        nothing, _ = history_columns({"sessions": 0}, session.start_us, session.device, since_us)
        return nothing, ["the visitor is not in the kept history: taken as new"]
    columns, last_end_us = found
    if last_end_us >= session.start_us:
        raise DataError(
            "the kept history of this visitor goes beyond the session's start",
            "give the history with the session: the kept one is for sessions after the log",
        )
    return columns, ["the history is that of the log the scorer was trained on"]


def unknown_words(about: Mapping[str, Any], session: SessionSoFar, pages: int) -> list[str]:
    """Words that training has not seen, and so count as another, each in a sentence.

    Args:
        about: what ``scorer.json`` says.
        session: as far as it has come.
        pages: how many first pages are looked at.
    """
    known = about["known"]
    notes = [
        f"the {name} {shown(value)} was not seen in training: it counts as another"
        for name, value in (("device", session.device), ("channel", session.channel))
        if known[name] is not None and value not in known[name]
    ]
    strange = sorted(set(session.page_types[:pages]) - set(about["vocabulary"]))
    if strange:
        notes.append(
            f"page types not seen in training count as others: {', '.join(map(shown, strange[:_MOST_SHOWN]))}"
        )
    return notes
