"""What a session is before any page is opened: when, on which device, by which way in, and what for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.commerce.scenes.shop_log.chance import (
    COUNTRIES,
    DAY,
    HOUR,
    SESSION_KEYS,
    Draw,
    Rows,
    choose,
    cumulated,
    geometric,
    session_draw,
    visitor_draw,
)
from diptych.commerce.scenes.shop_log.effects import PAGE_TYPES
from diptych.commerce.scenes.shop_log.world import (
    FORCED,
    LEAST_DWELL,
    LONGEST_GAP,
    NO_DEVICE,
    START,
    STYLES,
    TYPES,
    World,
)

MONTH = 28
"""Days that a mean number of sessions is of."""

_COUNTRY_SHARES = (0.83, 0.13, 0.04)


@dataclass(frozen=True)
class People(Rows):
    """Visitors, all (n,)."""

    number: np.ndarray  # of the visitor in the log
    customer: np.ndarray  # whether the visitor has an account
    # how many the visitor begins; few of them are dropped, where the one before still runs
    sessions: np.ndarray
    devices: np.ndarray  # number of the set of devices
    # how little the visitor is inclined to buy, standard normal: what the person's sessions share
    propensity: np.ndarray
    country: np.ndarray  # number of it


def draw_people(world: World, number: np.ndarray) -> People:
    """Return the visitors of these numbers; each depends on its own number alone."""
    from scipy.special import ndtri

    def draw(what: Draw) -> np.ndarray:
        return visitor_draw(world.seed, what, number)

    customer = draw(Draw.KIND) < world.effects.customers
    kind = customer.astype(np.int64)
    more = (np.array(world.effects.sessions)[kind] - 1) * world.calendar.days / MONTH
    return People(
        number=number,
        customer=customer,
        sessions=np.minimum(1 + geometric(draw(Draw.SESSIONS), more), SESSION_KEYS),
        devices=choose(world.cumulative["sets"], len(world.owned), draw(Draw.DEVICES), kind),
        propensity=ndtri(np.maximum(draw(Draw.PROPENSITY), 1e-16)),
        country=np.searchsorted(np.cumsum(_COUNTRY_SHARES), draw(Draw.COUNTRY)).clip(max=len(COUNTRIES) - 1),
    )


RECOGNISED = 1
"""The page at which a customer is known who is recognised on arrival."""

NEVER = 1 << 20
"""The page at which the others are known."""


@dataclass(frozen=True)
class Sessions(Rows):
    """Sessions in the order of visitors and time, all (n,)."""

    person: np.ndarray  # row of the visitor in the block
    key: np.ndarray  # number that all draws of the session are for
    start_us: np.ndarray  # universal time of the first event
    week_day: np.ndarray  # local, of the start
    hour: np.ndarray  # local, of the start
    device: np.ndarray  # number in THESIS_DEVICES
    channel: np.ndarray  # number in THESIS_CHANNELS
    known_page: np.ndarray  # the first page at which the customer is known, RECOGNISED or NEVER
    chance: np.ndarray  # probability of a purchase, of device, channel, week day and hour
    purchase: np.ndarray  # whether it is one
    pages: np.ndarray  # how many are opened
    confirmation: np.ndarray  # which of them confirms the purchase; 0 in others


def draw_sessions(world: World, people: People) -> Sessions:
    """Return all sessions that these visitors begin.

    The intent is a latent normal number, of which a part (``repeat`` of the variance) is the visitor's: it ends
    in a purchase where it is below the quantile of the session's own chance. So the chance is the same whoever
    the visitor is, and sessions of one visitor are alike.
    """
    from scipy.special import ndtri

    effects, calendar = world.effects, world.calendar
    person = np.repeat(np.arange(len(people)), people.sessions)
    key = people.number[person] * SESSION_KEYS + in_turn(people.sessions)

    def draw(what: Draw) -> np.ndarray:
        return session_draw(world.seed, what, key)

    day = choose(world.cumulative["days"], calendar.days, draw(Draw.DAY))
    hour = choose(world.cumulative["hours"], 24, draw(Draw.HOUR))
    within = (draw(Draw.MOMENT) * HOUR).astype(np.int64)
    start_us = calendar.universal_us(
        (calendar.first_day + day) * DAY + hour * HOUR + within, draw(Draw.FOLD) < 0.5
    )
    order = np.lexsort((start_us, person))
    person, key, start_us = person[order], key[order], start_us[order]

    local_us = calendar.local_us(start_us)
    week_day, hour = calendar.week_day(local_us), calendar.hour(local_us)
    known_page = _known_page(world, people.customer[person], draw(Draw.LOGIN), draw(Draw.LOGIN_PAGE))
    device = _devices(world, people, person, known_page < NEVER, draw(Draw.DEVICE))
    channel = choose(world.cumulative["channels"], len(effects.channels), draw(Draw.CHANNEL))
    chance = world.chance[device, channel, week_day, hour]
    own = ndtri(np.maximum(draw(Draw.INTENT), 1e-16))
    latent = np.sqrt(effects.repeat) * people.propensity[person] + np.sqrt(1 - effects.repeat) * own
    purchase = latent < world.latent_chance[device, channel, week_day, hour]
    pages, confirmation = _pages(world, device, purchase, draw(Draw.COUNT), draw(Draw.PAGES_AFTER))
    known_page = np.where(known_page < NEVER, np.minimum(known_page, pages), NEVER)
    return Sessions(
        person,
        key,
        start_us,
        week_day,
        hour,
        device,
        channel,
        known_page,
        chance,
        purchase,
        pages,
        confirmation,
    )


def in_turn(counts: np.ndarray) -> np.ndarray:
    """0, 1, … for each of the counts, one after the other: [2, 3] → [0, 1, 0, 1, 2]."""
    ends = np.cumsum(counts)
    numbers: np.ndarray = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return numbers


def _known_page(world: World, customer: np.ndarray, mode: np.ndarray, page: np.ndarray) -> np.ndarray:
    effects = world.effects
    later = 2 + geometric(page, effects.login_page - 2)
    known = np.where(mode < effects.recognised, RECOGNISED, later)
    return np.where(customer & (mode < effects.recognised + effects.login), known, NEVER)


def _devices(
    world: World, people: People, person: np.ndarray, known: np.ndarray, uniform: np.ndarray
) -> np.ndarray:
    """Return a session's device: by the transition from the customer's last session in which the customer is known.

    In sessions where nobody is known the device is one of the visitor's as in the long run, and the next one does
    not depend on it, so that the transitions that can be seen are the planted ones.
    """
    rows = NO_DEVICE + 1  # of a table of transitions
    in_the_long_run = people.devices[person] * rows + NO_DEVICE
    device = choose(world.cumulative["moves"], NO_DEVICE, uniform, in_the_long_run)
    counts = np.bincount(person, minlength=len(people))
    first = np.cumsum(counts) - counts
    several = np.array([len(devices) > 1 for devices in world.owned])[people.devices]
    last = np.full(len(people), NO_DEVICE)
    for number in range(int(counts[several].max(initial=0))):
        who = np.flatnonzero(several & (counts > number))
        who = who[known[first[who] + number]]
        here = first[who] + number
        device[here] = choose(
            world.cumulative["moves"], NO_DEVICE, uniform[here], people.devices[who] * rows + last[who]
        )
        last[who] = device[here]
    return device


def _pages(
    world: World, device: np.ndarray, purchase: np.ndarray, count: np.ndarray, after: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Number of pages, and which one confirms the purchase."""
    columns = world.others_pages.shape[1]
    others = 1 + choose(world.cumulative["others_pages"], columns, count, device)
    confirmation = 1 + choose(world.cumulative["confirmation"], columns, count, device)
    more = choose(world.cumulative["after"], len(world.after), after)
    return np.where(purchase, confirmation + more, others), np.where(purchase, confirmation, 0)


@dataclass(frozen=True)
class Visits:
    """What the visitors of a block do."""

    people: People
    sessions: Sessions
    paths: Paths


def visits_of(world: World, numbers: np.ndarray) -> Visits:
    """Return all sessions of these visitors; those of each depend on the visitor's number alone.

    A session that would begin while the visitor's last one runs, or less than 30 minutes after it, begins 30
    minutes and a microsecond after it where that is in the same hour, and is dropped otherwise.
    """
    people = draw_people(world, numbers)
    sessions = draw_sessions(world, people)
    paths = draw_paths(world, sessions)
    start_us, kept = _one_after_the_other(world, sessions, _durations(sessions, paths))
    sessions = sessions.but(start_us=start_us)
    if not kept.all():
        paths = paths.take(kept[paths.session])
        paths = paths.but(session=(np.cumsum(kept) - 1)[paths.session])
        sessions = sessions.take(kept)
    return Visits(people, sessions, paths)


def moment_inside(dwell_us: np.ndarray) -> np.ndarray:
    """Return how long after a page is opened something is put into the basket there, or taken out."""
    moments: np.ndarray = dwell_us * 2 // 5
    return moments


def _durations(sessions: Sessions, paths: Paths) -> np.ndarray:
    """From the first to the last event of each session."""
    last = np.cumsum(sessions.pages) - 1
    does = paths.add[last] | (paths.removed[last] >= 0)
    durations: np.ndarray = paths.open_us[last] + np.where(does, moment_inside(paths.dwell_us[last]), 0)
    return durations


def _one_after_the_other(
    world: World, sessions: Sessions, durations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return when each session begins, and whether it does: (n,) microseconds and bool."""
    start_us, person = sessions.start_us.copy(), sessions.person
    kept = np.ones(len(start_us), bool)
    soon = (person[1:] == person[:-1]) & (start_us[1:] - (start_us + durations)[:-1] <= LONGEST_GAP)
    for busy in np.unique(person[1:][soon]):  # few, and each with a few sessions
        rows = range(*np.searchsorted(person, [busy, busy + 1]))
        free_us = start_us[rows[0]]
        for row in rows:
            if start_us[row] < free_us:
                both = world.calendar.local_us(np.array([start_us[row], free_us])) // HOUR
                kept[row] = both[0] == both[1]
                start_us[row] = free_us
            if kept[row]:
                free_us = start_us[row] + durations[row] + LONGEST_GAP + 1
    return start_us, kept


QUERY_AHEAD = SECOND // 4
"""How long before its page of results a query is submitted."""

ITEMS = 5_000
NO_QUERY = -1

_BASKET, _CHECKOUT = PAGE_TYPES.index("basket"), PAGE_TYPES.index("checkout")
_PRODUCT, _SEARCH = PAGE_TYPES.index("product"), PAGE_TYPES.index("search")
_STYLES = cumulated(np.array([0.70, 0.15, 0.05, 0.06, 0.04]))


@dataclass(frozen=True)
class Paths(Rows):
    """Pages of sessions, session after session, all (n,)."""

    session: np.ndarray  # row of the session in the block
    position: np.ndarray  # 1 is the session's first page
    kind: np.ndarray  # number in PAGE_TYPES, or TYPES for the confirmation
    open_us: np.ndarray  # from the session's first event until the page is opened
    dwell_us: np.ndarray  # until the next page; of the last one, what is left of it to do something in
    query: np.ndarray  # the typed query that asked for the page, or NO_QUERY
    item: np.ndarray  # the product that the page is about, or that is put into the basket there
    add: np.ndarray  # whether it is put into the basket
    removed: np.ndarray  # the product that is taken out of the basket there, or -1


def draw_paths(world: World, sessions: Sessions) -> Paths:
    """Return all pages of these sessions.

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
