"""Draw what visitors of a generated shop do: who comes, when and what for, and the pages that follow.

Every number is drawn for one visitor, session or page, by its key; many at a time.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri

from diptych.commerce.logs.log import SECOND, THESIS_CHANNELS, THESIS_DEVICES, zone_of
from diptych.core.draws import draw_uniform
from diptych.core.reading import read_toml

SHOP = read_toml(Path(__file__).with_name("shop_log.toml"))
COUNTRIES: tuple[str, ...] = tuple(SHOP["countries"])
FIRST_DAY = date(2019, 10, 1)  # as in thesis section 6.3; on the 27th clocks are set back in Europe
HOUR, DAY = 3600 * SECOND, 24 * 3600 * SECOND
_EPOCH, _US = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

# What a number is drawn for; two of one thing never share one.
Draw = IntEnum(
    "Draw",
    "KIND SESSIONS DEVICES PROPENSITY COUNTRY COOKIE DAY HOUR MOMENT FOLD CHANNEL DEVICE LOGIN LOGIN_PAGE INTENT COUNT "
    "PAGES_AFTER PAGE DWELL EXACT_GAP ITEM ADD REMOVE QUERY QUERY_TEXT QUERY_STYLE DIRT BOT ORDER",
)

MONTH = 28  # days that a mean number of sessions is of
SESSION_KEYS = 4096  # sessions of a visitor at most: a session's key is visitor × this + its number
RECOGNISED, NEVER = 1, 1 << 20  # pages at which a customer is known: on arrival, or not at all
FORCED = 3  # last pages of every purchase, which no chain draws: basket, checkout, confirmation
MOST_PAGES = 400  # of a part of a session; what a distribution has beyond is at this number
LEAST_DWELL, LONGEST_GAP = SECOND, 1800 * SECOND  # exactly the longest one is one session still
QUERY_AHEAD = SECOND // 4  # how long before its page of results a query is submitted
ITEMS = 5_000
STYLES = 5  # ways of typing a query
NOTHING = -1  # in any column: no value

PAGES: list[str] = SHOP["pages"]
SEARCH, PRODUCT, BASKET, CHECKOUT, CONFIRMATION = (
    PAGES.index(name) for name in ("search", "product", "basket", "checkout", "confirmation")
)
TYPES = CONFIRMATION  # how many a chain has; the row behind them is of what goes before the first page
NO_DEVICE = len(THESIS_DEVICES)  # in a table of transitions the row of what goes before the first session

_LEAST = 1e-16  # draw of a quantile: that of 0 is none


class Rows(dict[str, np.ndarray]):
    """Columns of as many rows each, by name or as attributes."""

    def __getattr__(self, name: str) -> np.ndarray:
        return self[name]

    def take(self, rows: np.ndarray) -> Self:
        return type(self)({name: values[rows] for name, values in self.items()})


class Calendar:
    """Conversions between local and universal time in microseconds, vectorised."""

    def __init__(self, zone: str, days: int) -> None:
        here, first_day = zone_of(zone), (FIRST_DAY - _EPOCH.date()).days
        self.days_us = (first_day + np.arange(days)) * DAY  # local midnights
        # clocks are looked at every half hour, from two days before to some after, which a long session may run into
        moments_us = np.arange(48 * (first_day - 2), 48 * (first_day + days + 7)) * (HOUR // 2)
        moments = [(_EPOCH + int(t_us) * _US).astimezone(here) for t_us in moments_us]
        offsets = np.array([(moment.utcoffset() or timedelta()) // _US for moment in moments], np.int64)
        new = np.flatnonzero(np.diff(offsets)) + 1
        self._changes, self._offsets = moments_us[new], offsets[[0, *new]]

    def local_us(self, t_us: np.ndarray) -> np.ndarray:
        local_us: np.ndarray = t_us + self._offsets[np.searchsorted(self._changes, t_us, side="right")]
        return local_us

    def universal_us(self, local_us: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Return the universal time of a local one, the ``later`` one where clocks show the same time twice.

        A time that clocks skip is read by the offset of before or of after: they will show another one.
        """
        earlier, after = (
            self._offsets[np.searchsorted(self._changes + offsets, local_us, side="right")]
            for offsets in (self._offsets[:-1], self._offsets[1:])
        )
        t_us: np.ndarray = local_us - np.where(later, after, earlier)
        return t_us


def week_day(local_us: np.ndarray) -> np.ndarray:
    return (local_us // DAY + 3) % 7  # 1970-01-01 was a Thursday


class Choice:
    """Distributions in rows, by which columns are chosen."""

    def __init__(self, rows: Any) -> None:
        self.rows: np.ndarray = np.atleast_2d(np.asarray(rows, np.float64))
        sums = np.cumsum(self.rows, axis=1)
        sums /= sums[:, -1:]
        self._rising = (sums + np.arange(len(sums))[:, None]).ravel()

    def __call__(self, uniform: np.ndarray, rows: np.ndarray | int = 0) -> np.ndarray:
        """(n,) int64: a column for each draw in [0, 1), by the distribution in its row."""
        columns = self.rows.shape[1]
        places = np.searchsorted(self._rising, uniform + rows, side="right") - rows * columns
        chosen: np.ndarray = np.minimum(places, columns - 1)  # next to 1 it may be rounded into the next row
        return chosen


_by_device, _by_channel = itemgetter(*THESIS_DEVICES), itemgetter(*THESIS_CHANNELS)


class ShopWorld:
    """Hold what a log's sessions are drawn with, as arrays: d devices, c channels, t page types, s sets of devices."""

    def __init__(self, effects: Mapping[str, Any], calendar: Calendar, seed: int) -> None:
        self.effects, self.calendar, self.seed = effects, calendar, seed
        log_odds = (
            effects["base"]
            + np.array(_by_device(effects["device"]))[:, None, None, None]
            + np.array(_by_channel(effects["channel"]))[:, None, None]
            + np.array(effects["week_day"])[:, None]
            + np.array(effects["hour"])
        )
        self.chance = 1 / (1 + np.exp(-log_odds))  # (d, c, 7, 24) of a purchase
        self.latent_chance = ndtri(self.chance)
        of_days = np.array(effects["week_days"])[week_day(calendar.days_us)]
        self.days: Choice = Choice(of_days / of_days.sum())
        self.hours: Choice = Choice(effects["hours"])
        self.channels: Choice = Choice(_by_channel(effects["channels"]))
        queries = np.arange(1, effects["queries"] + 1, dtype=np.float64) ** -effects["query_slope"]
        self.queries: Choice = Choice(queries / queries.sum())
        self.styles: Choice = Choice([0.70, 0.15, 0.05, 0.06, 0.04])
        # (d, 2) probability that a page of results comes from a query, of others and of purchases
        self.queried: np.ndarray = np.array(_by_device(effects["query"]))

        # sets of devices; the last d are those of anonymous visitors, one device each
        sets = [[THESIS_DEVICES.index(name) for name in one["devices"]] for one in effects["device_sets"]]
        self.owned = [*sets, *([device] for device in range(NO_DEVICE))]
        shares = np.zeros((2, len(self.owned)))
        shares[1, : len(sets)] = [one["share"] for one in effects["device_sets"]]
        shares[0, len(sets) :] = _by_device(effects["anonymous_devices"])
        self.sets: Choice = Choice(shares)  # of anonymous visitors and of customers
        every = np.array(effects["transitions"])
        # (s · (d + 1), d) transitions among the devices of a set; the last row is of the first session
        self.moves: Choice = Choice(np.vstack([_moves(every, devices) for devices in self.owned]))

        chains = (effects["others"], effects["buyers"])
        # (2 · (t + 1), t) of others and of buyers, the last row that of first pages
        rows = [row for one in chains for row in (*one["next"], one["start"])]
        self.chains: Choice = Choice(rows)
        # (2, t + 1) means and (2, 1) deviations of the logarithm of dwell seconds; the last is the confirmation's
        self.dwell: np.ndarray = np.array([chain["dwell"] for chain in chains])
        self.spread: np.ndarray = np.array([[chain["spread"]] for chain in chains])
        limits = (np.log(limit / SECOND) for limit in (LEAST_DWELL, LONGEST_GAP))
        self.dwell_limits = [ndtr((limit - self.dwell) / self.spread) for limit in limits]
        pages = _by_device(effects["pages"])
        # (d, pages) that a session without a purchase has 1, 2, … pages, and that the confirmation is page 1, 2, …
        self.pages: Choice = Choice([_mixture(one["others"], first=1) for one in pages])
        until = [_mixture(one["until_basket"], first=FORCED + 1) for one in pages]
        self.confirmation: Choice = Choice(until)
        # of 0, 1, … pages after the confirmation
        more = effects["continued"] * _mixture([(1.0, effects["pages_after"])], first=1)
        self.after: Choice = Choice([1 - effects["continued"], *more])

    def draw(self, what: Draw, *keys: np.ndarray | int) -> np.ndarray:
        """(n,) float64 in [0, 1): of visitors by number, of sessions by key and page, which is 0 for all of it."""
        return draw_uniform(self.seed, int(what), *keys)


def _geometric(uniform: np.ndarray, mean: float | np.ndarray) -> np.ndarray:
    """(n,) int64 of 0, 1, …: geometric with this mean, (1 - q) q^n with q = mean / (1 + mean)."""
    mean = np.maximum(mean, 1e-12)
    numbers: np.ndarray = np.floor(np.log1p(-uniform) / np.log(mean / (1 + mean))).astype(np.int64)
    return numbers


def _moves(every: np.ndarray, devices: list[int]) -> np.ndarray:
    """(d + 1, d): transitions among some devices, and last their long-run shares: the first session is as any."""
    table = np.zeros((NO_DEVICE + 1, NO_DEVICE))
    inside = every[np.ix_(devices, devices)]
    inside /= inside.sum(axis=1, keepdims=True)
    table[np.ix_(devices, devices)] = inside
    # the shares that a transition leaves as they are: (P' - 1) x = 0 with sum x = 1
    system = np.vstack([inside.T - np.eye(len(devices)), np.ones(len(devices))])
    table[NO_DEVICE, devices] = np.linalg.lstsq(system, np.eye(len(devices) + 1)[-1], rcond=None)[0]
    table[table.sum(axis=1) == 0, devices[0]] = 1  # rows of devices that are not had are never used
    return table


def _mixture(parts: Sequence[Sequence[float]], first: int) -> np.ndarray:
    """(pages,) probability of 1, 2, … of a mixture of geometric distributions that begin at ``first``."""
    beyond = np.arange(MOST_PAGES - first + 1)
    values = np.zeros(MOST_PAGES)
    for share, mean in parts:
        stay = (mean - 1) / mean if first == 1 else mean / (1 + mean)
        values[first - 1 :] += share * (1 - stay) * stay**beyond
    values[-1] += 1 - values.sum()
    return values


def visits_of(world: ShopWorld, numbers: range) -> tuple[Rows, Rows]:
    """Return sessions and pages of these visitors; one that would overlap begins later in its hour, or is dropped."""
    sessions = _sessions(world, np.arange(numbers.start, numbers.stop))
    paths = _paths(world, sessions)
    last = np.cumsum(sessions.pages) - 1
    acts = paths.add[last] | (paths.removed[last] >= 0)
    lasts_us = np.where(acts, paths.inside_us[last], paths.open_us[last])
    sessions["start_us"], kept = _one_after_the_other(world, sessions, lasts_us)
    paths = paths.take(kept[paths.session])
    paths["session"] = (np.cumsum(kept) - 1)[paths.session]
    return sessions.take(kept), paths


def _sessions(world: ShopWorld, number: np.ndarray) -> Rows:
    """Return all sessions that visitors begin, in the order of visitors and time; few are dropped later.

    A purchase is a latent normal number below the chance's quantile; ``repeat`` of its variance is the visitor's.
    """
    effects, calendar = world.effects, world.calendar
    customer = world.draw(Draw.KIND, number) < effects["customers"]  # whether the visitor has an account
    kind = customer.astype(np.int64)
    more = (np.array(effects["sessions"])[kind] - 1) * len(calendar.days_us) / MONTH
    counts = np.minimum(1 + _geometric(world.draw(Draw.SESSIONS, number), more), SESSION_KEYS)
    owned = world.sets(world.draw(Draw.DEVICES, number), kind)  # which set of devices
    # how little the visitor is inclined to buy, standard normal: what the person's sessions share
    propensity = ndtri(np.maximum(world.draw(Draw.PROPENSITY, number), _LEAST))
    country = np.searchsorted(np.cumsum((0.83, 0.13, 0.04)), world.draw(Draw.COUNTRY, number))

    person = np.repeat(np.arange(len(number)), counts)
    key = number[person] * SESSION_KEYS + np.arange(len(person)) - (np.cumsum(counts) - counts)[person]

    def draw(what: Draw) -> np.ndarray:
        return world.draw(what, key, 0)

    local_us = calendar.days_us[world.days(draw(Draw.DAY))] + world.hours(draw(Draw.HOUR)) * HOUR
    local_us += (draw(Draw.MOMENT) * HOUR).astype(np.int64)
    start_us = calendar.universal_us(local_us, draw(Draw.FOLD) < 0.5)
    order = np.lexsort((start_us, person))
    person, key, start_us = person[order], key[order], start_us[order]

    local_us = calendar.local_us(start_us)
    mode = draw(Draw.LOGIN)
    later = 2 + _geometric(draw(Draw.LOGIN_PAGE), effects["login_page"] - 2)
    known = customer[person] & (mode < effects["recognised"] + effects["login"])
    device = _devices(world, owned, person, known, draw(Draw.DEVICE))
    channel = world.channels(draw(Draw.CHANNEL))
    own = ndtri(np.maximum(draw(Draw.INTENT), _LEAST))
    latent = np.sqrt(effects["repeat"]) * propensity[person] + np.sqrt(1 - effects["repeat"]) * own
    purchase = latent < world.latent_chance[device, channel, week_day(local_us), local_us // HOUR % 24]

    count = draw(Draw.COUNT)
    confirmation = np.where(purchase, 1 + world.confirmation(count, device), 0)
    after = confirmation + world.after(draw(Draw.PAGES_AFTER))
    pages = np.where(purchase, after, 1 + world.pages(count, device))
    known_page = np.minimum(np.where(mode < effects["recognised"], RECOGNISED, later), pages)
    return Rows(
        number=number[person],  # of the visitor
        country=country.clip(max=len(COUNTRIES) - 1)[person],
        person=person,  # row of the visitor in the block
        key=key,  # number that all draws of the session are for
        start_us=start_us,  # universal time of the first event
        device=device,
        channel=channel,
        known_page=np.where(known, known_page, NEVER),  # the first page at which the customer is known
        purchase=purchase,
        pages=pages,  # how many are opened
        confirmation=confirmation,  # which of them confirms the purchase; 0 in others
    )


def _devices(
    world: ShopWorld, owned: np.ndarray, person: np.ndarray, known: np.ndarray, uniform: np.ndarray
) -> np.ndarray:
    """Return a session's device: by the transition from the customer's last session with a known customer.

    Without a known visitor it is drawn as in the long run, so that visible transitions are the planted ones.
    """
    first_row = owned * (NO_DEVICE + 1)  # of a set's transitions
    device = world.moves(uniform, first_row[person] + NO_DEVICE)
    counts = np.bincount(person, minlength=len(owned))
    first = np.cumsum(counts) - counts
    several = np.array([len(devices) > 1 for devices in world.owned])[owned]
    last = np.full(len(counts), NO_DEVICE)
    for number in range(int(counts[several].max(initial=0))):
        who = np.flatnonzero(several & (counts > number))
        who = who[known[first[who] + number]]
        here = first[who] + number
        device[here] = last[who] = world.moves(uniform[here], first_row[who] + last[who])
    return device


def _one_after_the_other(
    world: ShopWorld, sessions: Rows, lasts_us: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return when each session begins, and whether it does: (n,) microseconds and bool."""
    start_us, person = sessions.start_us.copy(), sessions.person
    kept = np.ones(len(start_us), bool)
    soon = (person[1:] == person[:-1]) & (start_us[1:] - (start_us + lasts_us)[:-1] <= LONGEST_GAP)
    for busy in np.unique(person[1:][soon]):  # few, and each with a few sessions
        rows = range(*np.searchsorted(person, [busy, busy + 1]))
        free_us = start_us[rows[0]]
        for row in rows:
            if start_us[row] < free_us:
                both = world.calendar.local_us(np.array([start_us[row], free_us])) // HOUR
                kept[row] = both[0] == both[1]
                start_us[row] = free_us
            if kept[row]:
                free_us = start_us[row] + lasts_us[row] + LONGEST_GAP + 1
    return start_us, kept


def _paths(world: ShopWorld, sessions: Rows) -> Rows:
    """Return all pages in order: up to a confirmation by the buyers' chain, the last three forced; others by theirs."""
    effects = world.effects
    session = np.repeat(np.arange(len(sessions.key)), sessions.pages)
    first = np.cumsum(sessions.pages) - sessions.pages
    position = np.arange(len(session)) - first[session] + 1
    key, confirmation = sessions.key[session], sessions.confirmation[session]
    buying = (position <= confirmation).astype(np.int64)

    def draw(what: Draw) -> np.ndarray:
        return world.draw(what, key, position)

    kind = _kinds(world, sessions, first, draw(Draw.PAGE))
    # log-normal, between a second and below 30 minutes
    low, high = world.dwell_limits
    part = low[buying, kind] + draw(Draw.DWELL) * (high - low)[buying, kind]
    seconds = np.exp(world.dwell[buying, kind] + world.spread[buying, 0] * ndtri(part))
    dwell_us = np.clip((seconds * SECOND).astype(np.int64), LEAST_DWELL, LONGEST_GAP - 1)
    inner = position < sessions.pages[session]
    dwell_us[inner & (draw(Draw.EXACT_GAP) < effects["exact_gaps"])] = LONGEST_GAP

    queried = world.queried[sessions.device, sessions.purchase.astype(np.int64)][session]
    searched = np.flatnonzero((kind == SEARCH) & (draw(Draw.QUERY) < queried))
    page = key[searched], position[searched]
    text = world.queries(world.draw(Draw.QUERY_TEXT, *page)) * STYLES
    query = np.full(len(kind), NOTHING)
    query[searched] = text + world.styles(world.draw(Draw.QUERY_STYLE, *page))
    ahead = np.where(query[first] != NOTHING, QUERY_AHEAD, 0)
    until = np.cumsum(dwell_us) - dwell_us
    open_us = until - until[first][session] + ahead[session]

    item = (draw(Draw.ITEM) ** 2 * ITEMS).astype(np.int64)  # some products are looked at more than others
    add = (kind == PRODUCT) & (draw(Draw.ADD) < np.array(effects["add"])[buying])
    add |= position == confirmation - FORCED  # a buyer has put something into the basket
    last_add = np.maximum.accumulate(np.where(add, np.arange(len(add)), -1))
    in_basket = item[np.maximum(last_add, 0)]
    remove = (kind == BASKET) & (last_add >= first[session]) & ~add
    remove &= draw(Draw.REMOVE) < np.array(effects["remove"])[buying]
    return Rows(
        session=session,  # row of it
        position=position,  # from 1 on
        kind=kind,  # number in PAGE_TYPES, or CONFIRMATION
        open_us=open_us,  # from the session's start on
        inside_us=open_us + dwell_us * 2 // 5,  # when something is put into the basket there, or taken out
        query=query,  # the typed query that led to the page
        # what the page is about, or is put into the basket there
        item=np.where(position == confirmation, in_basket, item),
        add=add,
        removed=np.where(remove, in_basket, NOTHING),  # what is taken out of the basket there
    )


def _kinds(world: ShopWorld, sessions: Rows, first: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    kind = np.empty(len(uniform), np.int64)
    order = np.argsort(-sessions.pages, kind="stable")
    pages, confirmation, first = sessions.pages[order], sessions.confirmation[order], first[order]
    before = np.full(len(order), TYPES)
    for position in range(1, int(pages[0]) + 1):
        longer = int(np.searchsorted(-pages, -position, side="right"))
        left = confirmation[:longer] - position  # pages to go to the confirmation
        chain = (left >= 0).astype(np.int64) * (TYPES + 1)
        here = first[:longer] + position - 1
        now = world.chains(uniform[here], chain + before[:longer])
        for pages_left, page in ((2, BASKET), (1, CHECKOUT), (0, CONFIRMATION)):
            now[left == pages_left] = page
        kind[here] = now
        before[:longer] = np.where(left == 0, TYPES, now)
    return kind
