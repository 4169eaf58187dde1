"""The events of sessions, as rows of the raw log in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.commerce.logs.schema import SECOND, THESIS_DEVICES
from diptych.commerce.scenes.shop_log.chance import ACTIONS, Draw, Rows, visitor_draw
from diptych.commerce.scenes.shop_log.effects import CONFIRMATION, PAGE_TYPES
from diptych.commerce.scenes.shop_log.sessions import (
    NO_QUERY,
    QUERY_AHEAD,
    RECOGNISED,
    Paths,
    Visits,
    moment_inside,
)
from diptych.commerce.scenes.shop_log.world import TYPES, World

NOTHING = -1
"""In any column: no value."""

PAGES = (*PAGE_TYPES, CONFIRMATION)

_PAGE, _QUERY, _ADD, _REMOVE, _LOGIN = (
    list(ACTIONS).index(name) for name in ("page", "query", "add", "remove", "login")
)
_PRODUCT = PAGE_TYPES.index("product")
_LOGIN_AHEAD = SECOND // 2
_COOKIE_BITS = 31


@dataclass(frozen=True)
class Events(Rows):
    """Events, all (n,) int64 but for ``purchased``; :data:`NOTHING` where there is no value."""

    t_us: np.ndarray  # universal time
    unreadable: np.ndarray  # number of the text that stands instead of the time
    session: np.ndarray  # key of the session
    cookie: np.ndarray  # the number that it is written from
    customer: np.ndarray  # number of the visitor, where known
    device: np.ndarray  # number in DEVICES, or beyond them
    channel: np.ndarray  # number in THESIS_CHANNELS
    country: np.ndarray  # number in COUNTRIES, or beyond them
    action: np.ndarray  # number in ACTIONS
    page: np.ndarray  # number in PAGES
    query: np.ndarray  # number of the typed text
    item: np.ndarray  # number of the product
    purchased: np.ndarray  # bool


def events_of(world: World, visits: Visits) -> Events:
    """Return all events of a block, ordered by time."""
    paths, sessions, people = visits.paths, visits.sessions, visits.people
    known_page = sessions.known_page[paths.session]
    opened_us = sessions.start_us[paths.session] + paths.open_us
    inside_us = opened_us + moment_inside(paths.dwell_us)
    shown = np.where((paths.kind == _PRODUCT) | (paths.kind == TYPES), paths.item, NOTHING)
    parts = [
        _part(paths, slice(None), _PAGE, opened_us, page=paths.kind, item=shown),
        _part(paths, paths.query != NO_QUERY, _QUERY, opened_us - QUERY_AHEAD, query=paths.query),
        _part(paths, paths.add, _ADD, inside_us, item=paths.item),
        _part(paths, paths.removed >= 0, _REMOVE, inside_us, item=paths.removed),
        _part(
            paths,
            (paths.position == known_page) & (known_page > RECOGNISED),
            _LOGIN,
            opened_us - _LOGIN_AHEAD,
        ),
    ]
    t_us, row, action, page, query, item = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(t_us, kind="stable")
    t_us, row, action, page, query, item = (
        values[order] for values in (t_us, row, action, page, query, item)
    )
    session = paths.session[row]
    person, device = sessions.person[session], sessions.device[session]
    number = people.number[person]
    return Events(
        t_us=t_us,
        unreadable=np.full(len(t_us), NOTHING),
        session=sessions.key[session],
        cookie=cookie_of(world, number, device),
        customer=np.where(paths.position[row] >= known_page[row], number, NOTHING),
        device=device,
        channel=sessions.channel[session],
        country=people.country[person],
        action=action,
        page=page,
        query=query,
        item=item,
        purchased=page == TYPES,
    )


def cookie_of(world: World, visitor: np.ndarray, device: np.ndarray) -> np.ndarray:
    """(n,) int64 above 0: the number of a cookie, different for each visitor and device."""
    place = visitor * len(THESIS_DEVICES) + device
    mixed = (visitor_draw(world.seed, Draw.COOKIE, place) * 2**_COOKIE_BITS).astype(np.int64)
    cookies: np.ndarray = (mixed << 32) + place
    return cookies


def _part(
    paths: Paths,
    which: np.ndarray | slice,
    action: int,
    t_us: np.ndarray,
    page: np.ndarray | None = None,
    query: np.ndarray | None = None,
    item: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """Return the events of one action: time, row of the path, action, and what it is about."""
    rows = np.arange(len(paths))[which]
    nothing = np.full(len(rows), NOTHING)
    about = (nothing if values is None else values[rows] for values in (page, query, item))
    return (t_us[rows], rows, np.full(len(rows), action), *about)
