"""The planted effects as arrays: what is drawn from, and what follows from them in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from diptych.commerce.logs.schema import SECOND, THESIS_CHANNELS, THESIS_DEVICES
from diptych.commerce.scenes.shop_log.chance import Calendar, cumulated
from diptych.commerce.scenes.shop_log.effects import PAGE_TYPES, Chain, Effects

_KINDS = (
    "red", "blue", "green", "black", "white", "small", "large", "cheap", "wireless", "wooden", "garden",
    "children's", "winter", "summer", "second-hand", "folding", "electric", "café", "müsli", "travel",
)  # fmt: skip
_THINGS = (
    "bicycle", "lamp", "table", "chair", "phone", "phone case", "headphones", "kettle", "fridge", "book", "puzzle",
    "board game", "lego", "backpack", "raincoat", "boots", "trainers", "tent", "sleeping bag", "coffee maker",
    "vacuum cleaner", "laptop", "charger", "monitor", "keyboard", "mouse", "printer", "desk", "bed", "mattress",
    "pillow", "curtain", "carpet", "mirror", "clock", "watch", "perfume", "shampoo", "toothbrush", "drill", "hammer",
    "paint", "ladder", "barbecue", "parasol", "pan", "knife", "plate", "mug", "toaster",
)  # fmt: skip
_USES = ("", " for two", " gift", " offer", " 2019")

STYLES = 5
"""Ways of typing: as it is, with a capital, all capitals, blanks around it, two blanks for one."""


@lru_cache
def query_texts(count: int) -> tuple[str, ...]:
    """Return the first ``count`` queries, most frequent first, as they are when normalised: all different."""
    texts = []
    for number in range(count):
        kind, rest = number % len(_KINDS), number // len(_KINDS)
        thing, use = (rest + kind * 7) % len(_THINGS), rest // len(_THINGS)
        tail = _USES[use] if use < len(_USES) else f" {use}"
        texts.append(f"{_KINDS[kind]} {_THINGS[thing]}{tail}")
    return tuple(texts)


def query_shares(count: int, slope: float) -> np.ndarray:
    """(count,) how frequent each is among all queries."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -slope
    shares: np.ndarray = weights / weights.sum()
    return shares


@lru_cache
def typed_texts(count: int) -> tuple[str, ...]:
    """(count × :data:`STYLES`): each query in each way of typing, number × :data:`STYLES` + style."""
    typed = []
    for text in query_texts(count):
        typed += [text, text.capitalize(), text.upper(), f" {text}  ", text.replace(" ", "  ", 1)]
    return tuple(typed)


START = TYPES = len(PAGE_TYPES)
"""In a chain the row of what goes before the first page; also the number of page types in it."""

FORCED = 3
"""Pages of every purchase that no chain draws: basket, checkout, confirmation. Before them is at least one."""

MOST_PAGES = 400
"""Of a part of a session; what a distribution has beyond is at this number."""

LEAST_DWELL = SECOND

LONGEST_GAP = 1800 * SECOND
"""Exactly this is one session still."""

NO_DEVICE = len(THESIS_DEVICES)
"""In a table of device transitions the row of what goes before the first session."""


@dataclass(frozen=True)
class World:
    """What a log's sessions are drawn with; d devices, c channels, t page types, s sets of devices."""

    effects: Effects  # as planted
    calendar: Calendar  # of its zone and days
    seed: int  # of all draws
    chance: np.ndarray  # (d, c, 7, 24) probability of a purchase
    day_shares: np.ndarray  # (days,) of sessions
    # (s,) tuples of device numbers; the last d sets are those of anonymous visitors, one device each
    owned: tuple[tuple[int, ...], ...]
    set_shares: np.ndarray  # (2, s) share of anonymous visitors and of customers who have the set
    stationary: np.ndarray  # (s, d) share of sessions that each device has in the long run
    # (s, d + 1, d) transitions among the devices of a set; the last row is of the first session
    moves: np.ndarray
    chains: np.ndarray  # (2, t + 1, t) of others and of buyers, the last row that of first pages
    dwell: np.ndarray  # (2, t + 1) means of the logarithm of dwell seconds; the last is the confirmation's
    spread: np.ndarray  # (2,) their standard deviations
    others_pages: np.ndarray  # (d, pages) probability of 1, 2, … pages in a session without a purchase
    # (d, pages) probability that the confirmation is page 1, 2, … of a purchase session
    confirmation: np.ndarray
    after: np.ndarray  # (pages,) probability of 0, 1, … pages after it
    # (d, 2) probability that a page of results was asked for by a query, of others and of purchases
    query: np.ndarray

    @classmethod
    def of(cls, effects: Effects, calendar: Calendar, seed: int) -> World:
        """Return the world of these effects."""
        week_days = (calendar.first_day + np.arange(calendar.days) + 3) % 7
        day_shares = np.array(effects.week_days)[week_days]
        owned, set_shares = _device_sets(effects)
        moves = np.stack([_moves(effects, devices) for devices in owned])
        chains = (effects.others, effects.buyers)
        pages = [effects.pages[device] for device in THESIS_DEVICES]
        return cls(
            effects=effects,
            calendar=calendar,
            seed=seed,
            chance=_chance(effects),
            day_shares=day_shares / day_shares.sum(),
            owned=owned,
            set_shares=set_shares,
            stationary=moves[:, NO_DEVICE],
            moves=moves,
            chains=np.stack([_chain(chain) for chain in chains]),
            dwell=np.array([chain.dwell for chain in chains]),
            spread=np.array([chain.spread for chain in chains]),
            others_pages=np.stack([_mixture(one.others, first=1) for one in pages]),
            confirmation=np.stack([_mixture(one.until_basket, first=FORCED + 1) for one in pages]),
            after=_after(effects),
            query=np.array([effects.query[device] for device in THESIS_DEVICES]),
        )

    @cached_property
    def latent_chance(self) -> np.ndarray:
        """Return the quantiles of a standard normal number that belong to :attr:`chance`."""
        from scipy.special import ndtri

        quantiles: np.ndarray = ndtri(self.chance)
        return quantiles

    @cached_property
    def dwell_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """(2, t + 1) each: which part of a dwell time's distribution is below a second, and below 30 minutes."""
        from scipy.special import ndtr

        low, high = (
            ndtr((np.log(limit / SECOND) - self.dwell) / self.spread[:, None])
            for limit in (LEAST_DWELL, LONGEST_GAP)
        )
        return low, high

    @cached_property
    def cumulative(self) -> dict[str, np.ndarray]:
        """Return all that :func:`choose` draws from, cumulated once for all blocks."""
        return {
            "days": cumulated(self.day_shares),
            "hours": cumulated(np.array(self.effects.hours)),
            "channels": cumulated(np.array([self.effects.channels[name] for name in THESIS_CHANNELS])),
            "sets": cumulated(self.set_shares),
            "moves": cumulated(self.moves.reshape(-1, NO_DEVICE)),
            "chains": cumulated(self.chains.reshape(-1, TYPES)),
            "others_pages": cumulated(self.others_pages),
            "confirmation": cumulated(self.confirmation),
            "after": cumulated(self.after),
            "queries": cumulated(query_shares(self.effects.queries, self.effects.query_slope)),
        }


def _chance(effects: Effects) -> np.ndarray:
    device = np.array([effects.device[name] for name in THESIS_DEVICES])
    channel = np.array([effects.channel[name] for name in THESIS_CHANNELS])
    log_odds = (
        effects.base
        + device[:, None, None, None]
        + channel[:, None, None]
        + np.array(effects.week_day)[:, None]
        + np.array(effects.hour)
    )
    chance: np.ndarray = 1 / (1 + np.exp(-log_odds))
    return chance


def _device_sets(effects: Effects) -> tuple[tuple[tuple[int, ...], ...], np.ndarray]:
    """Return the sets of devices, and which share of anonymous visitors and of customers has each."""
    number = {name: place for place, name in enumerate(THESIS_DEVICES)}
    customers = [tuple(number[device] for device in one.devices) for one in effects.device_sets]
    anonymous = [(place,) for place in range(len(THESIS_DEVICES))]
    shares = np.zeros((2, len(customers) + len(anonymous)))
    shares[1, : len(customers)] = [one.share for one in effects.device_sets]
    shares[0, len(customers) :] = [effects.anonymous_devices[name] for name in THESIS_DEVICES]
    return (*customers, *anonymous), shares


def _moves(effects: Effects, devices: tuple[int, ...]) -> np.ndarray:
    """(d + 1, d): transitions among some devices, and last their long-run shares: the first session is as any."""
    every = np.array(effects.transitions)
    table = np.zeros((NO_DEVICE + 1, NO_DEVICE))
    some = np.ix_(devices, devices)
    table[some] = every[some] / every[some].sum(axis=1, keepdims=True)
    inside = table[some]
    # the shares that a transition leaves as they are: (P' - 1) x = 0 with sum x = 1
    system = np.vstack([inside.T - np.eye(len(devices)), np.ones(len(devices))])
    table[NO_DEVICE, list(devices)] = np.linalg.lstsq(system, np.eye(len(devices) + 1)[-1], rcond=None)[0]
    table[table.sum(axis=1) == 0, devices[0]] = 1  # rows of devices that are not had are never used
    return table


def _chain(chain: Chain) -> np.ndarray:
    return np.vstack([np.array(chain.next), chain.start])


def _mixture(parts: tuple[tuple[float, float], ...], first: int) -> np.ndarray:
    """(pages,) probability of 1, 2, … of a mixture of geometric distributions that begin at ``first``.

    The means of the parts count from 0 on where they begin later than at 1.
    """
    beyond = np.arange(MOST_PAGES - first + 1)
    values = np.zeros(MOST_PAGES)
    for share, mean in parts:
        stay = (mean - 1) / mean if first == 1 else mean / (1 + mean)
        values[first - 1 :] += share * (1 - stay) * stay**beyond
    values[-1] += 1 - values.sum()
    return values


def _after(effects: Effects) -> np.ndarray:
    more = _mixture(((1.0, effects.pages_after),), first=1)
    return np.concatenate([[1 - effects.continued], effects.continued * more])
