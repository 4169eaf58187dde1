"""The pages of sessions: their types by the planted chains, how long each is looked at, and what is done there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.data.logs.schema import SECOND
from diptych.data.scenes.shop_log.chance import Draw, choose, cumulated, session_draw
from diptych.data.scenes.shop_log.effects import PAGE_TYPES
from diptych.data.scenes.shop_log.queries import STYLES
from diptych.data.scenes.shop_log.rows import Rows
from diptych.data.scenes.shop_log.sessions import Sessions, in_turn
from diptych.data.scenes.shop_log.world import FORCED, LEAST_DWELL, LONGEST_GAP, START, TYPES, World

QUERY_AHEAD = SECOND // 4
"""How long before its page of results a query is submitted."""

ITEMS = 5_000
NO_QUERY = -1

_BASKET, _CHECKOUT = PAGE_TYPES.index("basket"), PAGE_TYPES.index("checkout")
_PRODUCT, _SEARCH = PAGE_TYPES.index("product"), PAGE_TYPES.index("search")
_STYLES = cumulated(np.array([0.70, 0.15, 0.05, 0.06, 0.04]))


@dataclass(frozen=True)
class Paths(Rows):
    """Pages of sessions, session after session, all (n,).

    Attributes:
        session: row of the session in the block.
        position: 1 is the session's first page.
        kind: number in ``PAGE_TYPES``, or ``TYPES`` for the confirmation.
        open_us: from the session's first event until the page is opened.
        dwell_us: until the next page; of the last one, what is left of it to do something in.
        query: the typed query that asked for the page, or :data:`NO_QUERY`.
        item: the product that the page is about, or that is put into the basket there.
        add: whether it is put into the basket.
        removed: the product that is taken out of the basket there, or -1.
    """

    session: np.ndarray
    position: np.ndarray
    kind: np.ndarray
    open_us: np.ndarray
    dwell_us: np.ndarray
    query: np.ndarray
    item: np.ndarray
    add: np.ndarray
    removed: np.ndarray


def draw_paths(world: World, sessions: Sessions) -> Paths:
    """All pages of these sessions.

    Until three pages before the confirmation a purchase session follows the buyers' chain and dwell times; after
    it, and in all other sessions, the others' hold.
    """
    effects = world.effects
    session = np.repeat(np.arange(len(sessions)), sessions.pages)
    position = in_turn(sessions.pages) + 1
    key = sessions.key[session]
    confirmation = sessions.confirmation[session]
    buying = (position <= confirmation).astype(np.int64)
    first = np.cumsum(sessions.pages) - sessions.pages

    def draw(what: Draw) -> np.ndarray:
        return session_draw(world.seed, what, key, position)

    kind = _kinds(world, sessions, first, draw(Draw.PAGE))
    dwell_us = _dwell(world, buying, kind, draw(Draw.DWELL))
    inner = position < sessions.pages[session]
    dwell_us[inner & (draw(Draw.EXACT_GAP) < effects.exact_gaps)] = LONGEST_GAP

    asked = world.query[sessions.device[session], sessions.purchase[session].astype(np.int64)]
    searched = np.flatnonzero((kind == _SEARCH) & (draw(Draw.QUERY) < asked))
    query = np.full(len(kind), NO_QUERY)
    query[searched] = _typed(world, key[searched], position[searched])
    ahead = np.where(query[first] != NO_QUERY, QUERY_AHEAD, 0)
    until = np.cumsum(dwell_us) - dwell_us
    open_us = until - until[first][session] + ahead[session]

    item = (draw(Draw.ITEM) ** 2 * ITEMS).astype(np.int64)  # some products are looked at more than others
    add = (kind == _PRODUCT) & (draw(Draw.ADD) < np.array(effects.add)[buying])
    add |= position == confirmation - FORCED  # whoever buys has put something into the basket
    last_add = np.maximum.accumulate(np.where(add, np.arange(len(add)), -1))
    filled = last_add >= first[session]
    basket_item = item[np.maximum(last_add, 0)]
    remove = (kind == _BASKET) & filled & ~add & (draw(Draw.REMOVE) < np.array(effects.remove)[buying])
    return Paths(
        session=session,
        position=position,
        kind=kind,
        open_us=open_us,
        dwell_us=dwell_us,
        query=query,
        item=np.where(position == confirmation, basket_item, item),
        add=add,
        removed=np.where(remove, basket_item, -1),
    )


def _kinds(world: World, sessions: Sessions, first: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Page types, position by position for all sessions that are that long."""
    kind = np.empty(len(uniform), np.int64)
    rows = TYPES + 1  # of a chain
    order = np.argsort(-sessions.pages, kind="stable")
    pages, confirmation, first = sessions.pages[order], sessions.confirmation[order], first[order]
    before = np.full(len(order), START)
    for position in range(1, int(pages[0]) + 1 if len(pages) else 0):
        longer = int(np.searchsorted(-pages, -position, side="right"))
        left = confirmation[:longer] - position  # pages to go to the confirmation
        chain = (left >= 0).astype(np.int64)
        now = choose(
            world.cumulative["chains"],
            TYPES,
            uniform[first[:longer] + position - 1],
            chain * rows + before[:longer],
        )
        now[left == 2] = _BASKET
        now[left == 1] = _CHECKOUT
        now[left == 0] = TYPES
        kind[first[:longer] + position - 1] = now
        before[:longer] = np.where(left == 0, START, now)
    return kind


def _dwell(world: World, buying: np.ndarray, kind: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Microseconds of log-normal dwell times, between a second and below 30 minutes."""
    from scipy.special import ndtri

    low, high = world.dwell_limits
    place = low[buying, kind] + uniform * (high - low)[buying, kind]
    seconds = np.exp(world.dwell[buying, kind] + world.spread[buying] * ndtri(place))
    dwell_us: np.ndarray = np.clip((seconds * SECOND).astype(np.int64), LEAST_DWELL, LONGEST_GAP - 1)
    return dwell_us


def _typed(world: World, key: np.ndarray, position: np.ndarray) -> np.ndarray:
    which, style = (
        session_draw(world.seed, what, key, position) for what in (Draw.QUERY_TEXT, Draw.QUERY_STYLE)
    )
    number = choose(world.cumulative["queries"], world.effects.queries, which)
    texts: np.ndarray = number * STYLES + choose(_STYLES, STYLES, style)
    return texts
