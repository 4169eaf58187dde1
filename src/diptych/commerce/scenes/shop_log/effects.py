"""What is planted in a shop log: every parameter that its sessions are drawn with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diptych.commerce.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.core.errors import UsageError

CLASSES = ("other", "purchase")
"""Sessions without and with a purchase; as numbers 0 and 1."""

PAGE_TYPES = ("home", "category", "search", "product", "basket", "checkout", "account", "service")
"""What a chain can be at; the confirmation of a purchase is in no chain."""

CONFIRMATION = "confirmation"

_EVEN = 1e-9


@dataclass(frozen=True)
class DeviceSet:
    """The devices of some customers."""

    devices: tuple[str, ...]  # 1 to 4 of them
    share: float  # of all customers


@dataclass(frozen=True)
class Pages:
    """How many pages sessions of a device have, as mixtures of geometric distributions."""

    # (share, mean) of each part, for sessions without a purchase; from 1 page on
    others: tuple[tuple[float, float], ...]
    # (share, mean) of each part, of the pages that a purchase session has before its first 4 pages that
    # all of them have: the last three of these are basket, checkout and confirmation
    until_basket: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chain:
    """A Markov chain over :data:`PAGE_TYPES`."""

    start: tuple[float, ...]  # probability of each as the first page
    # a row for each page, the probability of each as the page that follows
    next: tuple[tuple[float, ...], ...]
    # for each page and, last, the confirmation: mean of the logarithm of the dwell time in seconds
    dwell: tuple[float, ...]
    spread: float  # standard deviation of that logarithm


@dataclass(frozen=True)
class Effects:
    """All of them. Mappings are by device or channel, pairs are (others, buyers).

    Attributes:
        base: log-odds that a session is a purchase session, where no effect is added.
        device: what a device adds to the log-odds.
        channel: what a channel adds.
        week_day: what a week day adds, Monday first.
        hour: what the local hour of the start adds.
        repeat: correlation of the latent intents of one person's sessions, 0 to below 1: who bought buys again.
            It leaves what a session's own device, channel and time say as it is.
        customers: share of visitors with an account; others are anonymous, with one device.
        sessions: mean number of sessions in 28 days, (of anonymous visitors, of customers); at least 1 each.
        device_sets: which devices customers have.
        anonymous_devices: which device an anonymous visitor has.
        transitions: a row for each device, the probability of each device in the customer's next session where
            the customer is known, among the devices that the customer has.
        channels: share of sessions.
        week_days: share of sessions on a week day, Monday first.
        hours: share of sessions that start in a local hour.
        recognised: share of customers' sessions in which they are known from the first event on.
        login: share of customers' sessions in which they log in at a later page.
        login_page: mean of that page, from the second on. Of a session that ends before it, it is the last one;
            who would log in on the only page is recognised.
        pages: by device.
        continued: share of purchase sessions that go on after it.
        pages_after: mean pages of those that do.
        others: chain of the pages of sessions without a purchase, and of pages after a purchase.
        buyers: chain of the pages before the basket, checkout and confirmation of a purchase.
        exact_gaps: share of dwell times that are 30 minutes to the microsecond.
        query: probability that a page of search results was asked for by a query, (others, buyers) by device.
        add: probability that an item is put into the basket on a product page, (others, buyers).
        remove: probability that the last one put in is taken out on a page of the basket, (others, buyers).
        queries: different queries that visitors have in mind.
        query_slope: frequency of the n-th of them falls with n to this power.
    """

    base: float
    device: Mapping[str, float]
    channel: Mapping[str, float]
    week_day: tuple[float, ...]
    hour: tuple[float, ...]
    repeat: float
    customers: float
    sessions: tuple[float, float]
    device_sets: tuple[DeviceSet, ...]
    anonymous_devices: Mapping[str, float]
    transitions: tuple[tuple[float, ...], ...]
    channels: Mapping[str, float]
    week_days: tuple[float, ...]
    hours: tuple[float, ...]
    recognised: float
    login: float
    login_page: float
    pages: Mapping[str, Pages]
    continued: float
    pages_after: float
    others: Chain
    buyers: Chain
    exact_gaps: float
    query: Mapping[str, tuple[float, float]]
    add: tuple[float, float]
    remove: tuple[float, float]
    queries: int
    query_slope: float

    def __post_init__(self) -> None:
        for name in ("device", "anonymous_devices", "pages", "query"):
            _check_names(name, getattr(self, name), THESIS_DEVICES)
        for name in ("channel", "channels"):
            _check_names(name, getattr(self, name), THESIS_CHANNELS)
        for name, values in self._distributions():
            _check_shares(name, values)
        for name, row in (*_rows_of("others", self.others), *_rows_of("buyers", self.buyers)):
            _check_shares(name, row)
            if min(row) <= 0:
                raise UsageError(f"{name} has a 0: that page would give a session away", "give more than 0")
        single = {name: getattr(self, name) for name in ("customers", "login", "continued", "exact_gaps")}
        single["recognised and login"] = self.recognised + self.login
        for name, share in single.items():
            if not 0 <= share <= 1:
                raise UsageError(f"{name} is {share}", "give a share from 0 to 1")
        if not 0 <= self.repeat < 1:
            raise UsageError(f"repeat is {self.repeat}", "give a correlation from 0 to below 1")

    def _distributions(self) -> Iterator[tuple[str, Sequence[float]]]:
        yield "device_sets", [one.share for one in self.device_sets]
        yield "anonymous_devices", list(self.anonymous_devices.values())
        yield "channels", list(self.channels.values())
        yield "week_days", self.week_days
        yield "hours", self.hours
        for device, row in zip(THESIS_DEVICES, self.transitions, strict=True):
            yield f"transitions of {device}", row
        for device, pages in self.pages.items():
            yield f"pages of {device}", [share for share, _ in pages.others]
            yield f"pages of {device} until the basket", [share for share, _ in pages.until_basket]


def _rows_of(name: str, chain: Chain) -> list[tuple[str, Sequence[float]]]:
    after = [(f"{name}.next of {page}", row) for page, row in zip(PAGE_TYPES, chain.next, strict=True)]
    return [(f"{name}.start", chain.start), *after]


def _check_names(name: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    """See that each of ``names`` has a value, and no other."""
    if set(given) != set(names):
        raise UsageError(f"{name} has {', '.join(sorted(given))}", f"name each of {', '.join(names)}")


def _check_shares(name: str, values: Sequence[float]) -> None:
    """See that these are shares of a whole."""
    if min(values) < 0 or abs(sum(values) - 1) > _EVEN:
        raise UsageError(f"{name} is no distribution: {list(values)}", "give shares that add up to 1")


# The usual shop: parameters of documented size, which make a log like that of thesis chapter 6.
#
# About 5 % of the sessions end in a purchase, and about 20 % of those with at least 12 pages. 56 % are anonymous and
# 55 % on smartphones. PCs, search engines, evenings and the middle of the week sell best, and who has bought before
# buys again. A quarter of the purchasers and a sixth of the other customers are seen on several devices.


def _pages(short: float, long: float, tail: float, short_buyers: float, long_buyers: float) -> Pages:
    return Pages(
        others=((0.73, short), (0.25, long), (0.02, tail)),
        until_basket=((0.4, short_buyers), (0.6, long_buyers)),
    )


_OTHERS = Chain(
    start=(0.42, 0.12, 0.10, 0.30, 0.010, 0.002, 0.018, 0.030),
    next=(
        (0.10, 0.34, 0.22, 0.24, 0.020, 0.005, 0.035, 0.040),
        (0.06, 0.34, 0.09, 0.45, 0.015, 0.005, 0.010, 0.030),
        (0.05, 0.10, 0.27, 0.53, 0.015, 0.005, 0.010, 0.020),
        (0.06, 0.20, 0.17, 0.49, 0.045, 0.005, 0.010, 0.020),
        (0.12, 0.14, 0.10, 0.36, 0.160, 0.060, 0.030, 0.030),
        (0.12, 0.08, 0.06, 0.20, 0.280, 0.160, 0.060, 0.040),
        (0.25, 0.14, 0.12, 0.20, 0.050, 0.010, 0.170, 0.060),
        (0.22, 0.14, 0.10, 0.20, 0.020, 0.010, 0.070, 0.240),
    ),
    dwell=(2.3, 2.9, 2.6, 3.2, 2.8, 3.3, 3.0, 3.5, 2.8),
    spread=1.0,
)

_BUYERS = Chain(
    start=(0.30, 0.07, 0.17, 0.37, 0.030, 0.005, 0.035, 0.020),
    next=(
        (0.06, 0.22, 0.34, 0.27, 0.040, 0.005, 0.045, 0.020),
        (0.04, 0.27, 0.12, 0.51, 0.030, 0.005, 0.010, 0.015),
        (0.03, 0.06, 0.26, 0.59, 0.030, 0.005, 0.010, 0.015),
        (0.04, 0.13, 0.20, 0.47, 0.125, 0.010, 0.015, 0.010),
        (0.05, 0.08, 0.10, 0.36, 0.240, 0.110, 0.040, 0.020),
        (0.05, 0.05, 0.05, 0.18, 0.380, 0.220, 0.050, 0.020),
        (0.20, 0.10, 0.15, 0.26, 0.110, 0.020, 0.130, 0.030),
        (0.18, 0.12, 0.14, 0.27, 0.070, 0.020, 0.080, 0.120),
    ),
    dwell=(2.2, 3.0, 2.7, 3.5, 3.1, 3.7, 3.0, 3.5, 2.8),
    spread=0.9,
)


_HOURS = (
    0.013, 0.007, 0.005, 0.005, 0.006, 0.009, 0.018, 0.030, 0.042, 0.048, 0.052, 0.052,
    0.052, 0.052, 0.052, 0.052, 0.052, 0.058, 0.078, 0.085, 0.082, 0.071, 0.050, 0.029,
)  # fmt: skip

DEFAULT = Effects(
    base=-2.95,
    device={"smartphone": -0.35, "pc": 0.25, "tablet": 0.05, "game console": -0.30, "tv": -0.60},
    channel={"direct": -0.10, "paid": 0.25, "organic": 0.40, "other": -1.20},
    week_day=(-0.25, 0.30, 0.10, 0.15, -0.05, -0.10, -0.15),
    hour=(*(-0.30,) * 7, *(0.0,) * 11, *(0.15,) * 4, 0.0, -0.15),
    repeat=0.5,
    customers=0.27,
    sessions=(1.7, 5.0),
    device_sets=(
        DeviceSet(("smartphone",), 0.300),
        DeviceSet(("pc",), 0.190),
        DeviceSet(("tablet",), 0.050),
        DeviceSet(("smartphone", "pc"), 0.210),
        DeviceSet(("smartphone", "tablet"), 0.070),
        DeviceSet(("pc", "tablet"), 0.040),
        DeviceSet(("smartphone", "game console"), 0.015),
        DeviceSet(("pc", "tv"), 0.015),
        DeviceSet(("smartphone", "pc", "tablet"), 0.080),
        DeviceSet(("smartphone", "pc", "game console"), 0.010),
        DeviceSet(("smartphone", "pc", "tv"), 0.010),
        DeviceSet(("smartphone", "pc", "tablet", "game console"), 0.005),
        DeviceSet(("smartphone", "pc", "tablet", "tv"), 0.005),
    ),
    anonymous_devices={"smartphone": 0.60, "pc": 0.33, "tablet": 0.055, "game console": 0.010, "tv": 0.005},
    transitions=(
        (0.68, 0.20, 0.06, 0.03, 0.03),
        (0.16, 0.73, 0.05, 0.03, 0.03),
        (0.24, 0.19, 0.51, 0.03, 0.03),
        (0.40, 0.28, 0.05, 0.24, 0.03),
        (0.28, 0.41, 0.08, 0.08, 0.15),
    ),
    channels={"direct": 0.77, "paid": 0.13, "organic": 0.08, "other": 0.02},
    week_days=(0.165, 0.125, 0.170, 0.160, 0.130, 0.125, 0.125),
    hours=_HOURS,
    recognised=0.68,
    login=0.15,
    login_page=4.5,
    pages={
        "smartphone": _pages(2.3, 8.0, 20.0, 4.0, 11.0),
        "pc": _pages(2.8, 12.0, 40.0, 4.5, 13.0),
        "tablet": _pages(2.6, 10.0, 25.0, 4.5, 12.0),
        "game console": _pages(2.8, 11.0, 25.0, 4.5, 13.0),
        "tv": _pages(2.8, 12.0, 25.0, 4.5, 13.0),
    },
    continued=0.35,
    pages_after=4.0,
    others=_OTHERS,
    buyers=_BUYERS,
    exact_gaps=0.001,
    query={
        "smartphone": (0.35, 0.85),
        "pc": (0.50, 0.70),
        "tablet": (0.30, 0.80),
        "game console": (0.15, 0.40),
        "tv": (0.10, 0.30),
    },
    add=(0.04, 0.20),
    remove=(0.25, 0.10),
    queries=2000,
    query_slope=0.9,
)
"""The usual shop; ``dataclasses.replace`` makes another one of it."""
