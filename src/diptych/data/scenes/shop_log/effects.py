"""What is planted in a shop log: every parameter that its sessions are drawn with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from diptych.core.errors import UsageError
from diptych.data.logs.schema import THESIS_CHANNELS, THESIS_DEVICES

CLASSES = ("other", "purchase")
"""Sessions without and with a purchase; as numbers 0 and 1."""

PAGE_TYPES = ("home", "category", "search", "product", "basket", "checkout", "account", "service")
"""What a chain can be at; the confirmation of a purchase is in no chain."""

CONFIRMATION = "confirmation"

_EVEN = 1e-9


@dataclass(frozen=True)
class DeviceSet:
    """The devices of some customers.

    Attributes:
        devices: 1 to 4 of them.
        share: of all customers.
    """

    devices: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class Pages:
    """How many pages sessions of a device have, as mixtures of geometric distributions.

    Attributes:
        others: (share, mean) of each part, for sessions without a purchase; from 1 page on.
        until_basket: (share, mean) of each part, of the pages that a purchase session has before its first 4
            pages that all of them have: the last three of these are basket, checkout and confirmation.
    """

    others: tuple[tuple[float, float], ...]
    until_basket: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chain:
    """A Markov chain over :data:`PAGE_TYPES`.

    Attributes:
        start: probability of each as the first page.
        next: a row for each page, the probability of each as the page that follows.
        dwell: for each page and, last, the confirmation: mean of the logarithm of the dwell time in seconds.
        spread: standard deviation of that logarithm.
    """

    start: tuple[float, ...]
    next: tuple[tuple[float, ...], ...]
    dwell: tuple[float, ...]
    spread: float


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

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


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
