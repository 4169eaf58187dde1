"""The session that runs just now as a view of one: the form that features of a million sessions are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from diptych.commerce.purchase_intent.features.columns import (
    COLUMNS,
    HISTORY_COLUMNS,
    empty_column,
    text_array,
)
from diptych.commerce.purchase_intent.features.view import SessionsView, encode_pages
from diptych.commerce.purchase_intent.scoring.running import SessionSoFar
from diptych.core.errors import DataError

__all__ = ["local_hour_and_day", "view_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KIND = {column.name: column.kind for column in COLUMNS}


def local_hour_and_day(t_us: int, zone: str) -> tuple[int, int]:
    """Hour, 0 to 23, and week day, 0 is Monday, of a time in a zone.

    Raises:
        DataError: a zone that this machine does not know.
    """
    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise DataError(
            f"the time zone {zone!r} is not known here", "install tzdata: pip install tzdata"
        ) from None
    local = (_EPOCH + timedelta(microseconds=t_us)).astimezone(known)
    return local.hour, local.weekday()


def view_of(
    session: SessionSoFar,
    history: Mapping[str, Any] | None,
    *,
    vocabulary: tuple[str, ...],
    pages: int,
    zone: str,
) -> SessionsView:
    """(1,) the session with everything that is known of it.

    Args:
        session: as far as it has come.
        history: values of the history columns; None of an anonymous session.
        vocabulary: page types in the order of their codes.
        pages: columns of the pages' arrays; later pages are left out.
        zone: of hours and week days.
    """
    hour, day = local_hour_and_day(session.start_us, zone)
    columns = {
        "channel": text_array([session.channel]),
        "device": text_array([session.device]),
        "start_hour": np.array([float(hour)]),
        "start_dow": np.array([float(day)]),
    }
    for name in HISTORY_COLUMNS:
        value = None if history is None else history[name]
        if value is None:
            columns[name] = empty_column(_KIND[name], 1)
        else:
            columns[name] = text_array([value]) if isinstance(value, str) else np.array([float(value)])
    times = np.zeros((1, pages), dtype=np.int64)
    opened = session.page_times[:pages]
    times[0, : len(opened)] = opened
    return SessionsView(
        columns=columns,
        page_types=encode_pages([session.page_types], vocabulary, pages),
        page_times=times,
        vocabulary=vocabulary,
    )
