"""Drawing from distributions by numbers that are drawn for a thing alone, many things at a time."""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np

from diptych.core.draws import draw_uniform

SESSION_KEYS = 4096
"""Sessions that a visitor may have at most: a session's key is visitor × this + its number."""


class Draw(IntEnum):
    """What a number is drawn for; two of one thing never share one."""

    KIND = auto()
    SESSIONS = auto()
    DEVICES = auto()
    PROPENSITY = auto()
    COUNTRY = auto()
    COOKIE = auto()
    DAY = auto()
    HOUR = auto()
    MOMENT = auto()
    FOLD = auto()
    CHANNEL = auto()
    DEVICE = auto()
    LOGIN = auto()
    LOGIN_PAGE = auto()
    INTENT = auto()
    COUNT = auto()
    PAGES_AFTER = auto()
    PAGE = auto()
    DWELL = auto()
    EXACT_GAP = auto()
    ITEM = auto()
    ADD = auto()
    REMOVE = auto()
    QUERY = auto()
    QUERY_TEXT = auto()
    QUERY_STYLE = auto()
    DIRT = auto()
    BOT = auto()
    ORDER = auto()


def visitor_draw(seed: int, what: Draw, visitors: np.ndarray) -> np.ndarray:
    """(n,) float64 in [0, 1), of visitors by number."""
    return draw_uniform(seed, int(what), visitors)


def session_draw(seed: int, what: Draw, keys: np.ndarray, positions: np.ndarray | int = 0) -> np.ndarray:
    """(n,) float64 in [0, 1), of sessions by key, or of their pages by position."""
    return draw_uniform(seed, int(what), keys, positions)


def cumulated(rows: np.ndarray) -> np.ndarray:
    """Distributions in rows, as :func:`choose` takes them: (r, c) → (r · c,) rising through all rows."""
    rows = np.atleast_2d(rows)
    sums = np.cumsum(rows, axis=1)
    sums /= sums[:, -1:]
    flat: np.ndarray = (sums + np.arange(len(rows))[:, None]).ravel()
    return flat


def choose(flat: np.ndarray, columns: int, uniform: np.ndarray, rows: np.ndarray | int = 0) -> np.ndarray:
    """(n,) int64: for each of n draws a column, by the distribution in its row.

    Args:
        uniform: (n,) draws in [0, 1).
        rows: (n,) which distribution, or one for all.
    """
    places = np.searchsorted(flat, uniform + rows, side="right") - rows * columns
    return np.minimum(places, columns - 1)  # a draw next to 1 may be rounded into the next row


def geometric(uniform: np.ndarray, mean: float | np.ndarray) -> np.ndarray:
    """(n,) int64 of 0, 1, …: geometric with this mean, (1 - q) q^n with q = mean / (1 + mean)."""
    mean = np.maximum(mean, 1e-12)
    numbers: np.ndarray = np.floor(np.log1p(-uniform) / np.log(mean / (1 + mean))).astype(np.int64)
    return numbers
