"""What spoils a log: rows that an importer has to find and drop, of which each breaks exactly one rule."""

from __future__ import annotations

from collections import Counter

import numpy as np

from diptych.core.draws import draw_below, draw_uniform
from diptych.data.scenes.shop_log.calendar import DAY
from diptych.data.scenes.shop_log.chance import Draw
from diptych.data.scenes.shop_log.columns import ACTIONS, COUNTRIES, DEVICES, MOST_EVENTS
from diptych.data.scenes.shop_log.effects import PAGE_TYPES
from diptych.data.scenes.shop_log.events import NOTHING, Events
from diptych.data.scenes.shop_log.world import World

RULES = ("duplicate", "no client", "unreadable time", "country", "device", "too many events")
"""What the rows of a dirty log are dropped by."""

UNREADABLE = ("yesterday", "2019-13-45T25:61:61.000000Z", "n/a", None)
"""What stands instead of a time."""

OTHER_COUNTRIES = ("US", "CN", "BR")
BOT_DEVICES = ("Robot",)

BOT_EVENTS = MOST_EVENTS + 500

_BOT_COOKIE = 1 << 62  # above those of visitors


def spoil(world: World, events: Events, rate: float) -> tuple[Events, Counter[str]]:
    """The events of a block, unordered, among rows that are none.

    A part ``rate`` of the events is there twice, once more without cookie and customer, and once more with a time
    that cannot be read; a part ``rate`` of the sessions is there once more from another country, and from no known
    device. All that are no exact copies have cookies of their own.

    Returns:
        (events, rows that have been added, by rule)
    """
    spoilt = [events]
    added: Counter[str] = Counter()
    for number, rule in enumerate(RULES[:-1]):
        by_session = rule in ("country", "device")
        thing = np.where(by_session, 0, events.t_us)
        rows = np.flatnonzero(draw_uniform(world.seed, Draw.DIRT, number, events.session, thing) < rate)
        some, thing = events.take(rows), thing[rows]
        kind = draw_uniform(world.seed, Draw.BOT, number, some.session, thing)
        bot = _BOT_COOKIE + (kind * 2**53).astype(np.int64)
        some = some.but(**_changes(rule, bot))
        spoilt.append(some)
        added[rule] = len(some)
    order = np.argsort(
        np.concatenate(
            [
                draw_uniform(world.seed, Draw.ORDER, place, one.session, one.t_us)
                for place, one in enumerate(spoilt)
            ]
        ),
        kind="stable",
    )
    return Events.joined(*spoilt).take(order), added


def _changes(rule: str, bot: np.ndarray) -> dict[str, np.ndarray | int]:
    """Which columns of an event become what, so that the rule finds it; ``bot`` is a cookie for each."""
    nobody: dict[str, np.ndarray | int] = {"cookie": bot, "customer": NOTHING}
    changes: dict[str, dict[str, np.ndarray | int]] = {
        "duplicate": {},
        "no client": {"cookie": NOTHING, "customer": NOTHING},
        "unreadable time": nobody | {"unreadable": bot % len(UNREADABLE)},
        "country": nobody | {"country": len(COUNTRIES) + bot % len(OTHER_COUNTRIES)},
        "device": nobody | {"device": np.where(bot % 2 == 0, NOTHING, len(DEVICES))},
    }
    return changes[rule]


def busy_bot(world: World) -> Events:
    """One cookie with more events than any visitor has, all else as it should be."""
    numbers = np.arange(BOT_EVENTS)
    window = world.calendar.days * DAY
    t_us = world.calendar.first_day * DAY + (draw_uniform(world.seed, Draw.BOT, numbers) * window).astype(
        np.int64
    )
    nothing = np.full(BOT_EVENTS, NOTHING)
    return Events(
        t_us=np.sort(t_us),
        unreadable=nothing,
        session=nothing,
        cookie=np.full(BOT_EVENTS, 2 * _BOT_COOKIE - 1),
        customer=nothing,
        device=np.full(BOT_EVENTS, list(DEVICES).index("PC")),
        channel=np.zeros(BOT_EVENTS, np.int64),
        country=np.zeros(BOT_EVENTS, np.int64),
        action=np.full(BOT_EVENTS, list(ACTIONS).index("page")),
        page=draw_below(len(PAGE_TYPES), world.seed, Draw.BOT, numbers, 1),
        query=nothing,
        item=nothing,
        purchased=np.zeros(BOT_EVENTS, bool),
    )
