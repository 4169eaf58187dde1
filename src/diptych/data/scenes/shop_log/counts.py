"""Counting the sessions as they were drawn, block by block.

They are counted from the generator's own sessions, not from its events and not by the code that describes logs.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from diptych.data.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.data.scenes.shop_log.sessions import NEVER, NO_QUERY, Visits
from diptych.data.scenes.shop_log.world import STYLES

_DEVICES, _CHANNELS = len(THESIS_DEVICES), len(THESIS_CHANNELS)


class Counts:
    """What has been counted; classes are 0 for others and 1 for purchase sessions.

    Attributes:
        lengths: (2, d, length) sessions.
        week_days: (2, 7) sessions.
        hours: (2, 24) sessions.
        channels: (2, c) sessions.
        query_counts: (2, d, queries) submitted queries by their number.
        devices_of_visitors: (2, d + 1) known visitors without and with a purchase session, by number of devices.
        transitions: (d, d) from a known visitor's session before to a purchase session.
        after_purchase: (2, 2) sessions of known visitors, without and with an earlier purchase session.
        totals: events, clients and anonymous sessions.
    """

    def __init__(self, queries: int) -> None:
        self.lengths = np.zeros((2, _DEVICES, 1), np.int64)
        self.week_days = np.zeros((2, 7), np.int64)
        self.hours = np.zeros((2, 24), np.int64)
        self.channels = np.zeros((2, _CHANNELS), np.int64)
        self.query_counts = np.zeros((2, _DEVICES, queries), np.int64)
        self.devices_of_visitors = np.zeros((2, _DEVICES + 1), np.int64)
        self.transitions = np.zeros((_DEVICES, _DEVICES), np.int64)
        self.after_purchase = np.zeros((2, 2), np.int64)
        self.totals: Counter[str] = Counter()

    def add(self, visits: Visits) -> None:
        """Count the sessions of a block: no visitor is in two of them."""
        sessions, paths = visits.sessions, visits.paths
        purchase = sessions.purchase.astype(np.int64)
        queried = paths.query != NO_QUERY
        actions = 1 + queried.astype(np.int64) + paths.add + (paths.removed >= 0)
        length = np.bincount(paths.session, weights=actions, minlength=len(sessions)).astype(np.int64)
        self._add_lengths(purchase, sessions.device, length)
        _count(self.week_days, purchase, sessions.week_day)
        _count(self.hours, purchase, sessions.hour)
        _count(self.channels, purchase, sessions.channel)
        of = paths.session[queried]
        _count(self.query_counts, purchase[of], sessions.device[of], paths.query[queried] // STYLES)
        clients = np.unique(sessions.person * _DEVICES + sessions.device)
        known = sessions.known_page < NEVER
        self.totals.update(
            {
                "events": int(length.sum() + (known & (sessions.known_page > 1)).sum()),
                "clients": len(clients),
                "anonymous sessions": int((~known).sum()),
            }
        )
        self._add_known(sessions.person[known], sessions.device[known], purchase[known])

    def _add_lengths(self, purchase: np.ndarray, device: np.ndarray, length: np.ndarray) -> None:
        longest = int(length.max(initial=0))
        if longest >= self.lengths.shape[2]:
            more = longest + 1 - self.lengths.shape[2]
            self.lengths = np.pad(self.lengths, ((0, 0), (0, 0), (0, more)))
        _count(self.lengths, purchase, device, length)

    def _add_known(self, person: np.ndarray, device: np.ndarray, purchase: np.ndarray) -> None:
        """Count what needs to know whose sessions these are, in the order of visitors and time."""
        if not len(person):
            return
        follows = person[1:] == person[:-1]
        before_purchase = follows & (purchase[1:] == 1)
        _count(self.transitions, device[:-1][before_purchase], device[1:][before_purchase])
        _, visitor = np.unique(person, return_inverse=True)
        owned = np.zeros((visitor[-1] + 1, _DEVICES), bool)
        owned[visitor, device] = True
        purchases = np.bincount(visitor, weights=purchase).astype(np.int64)
        _count(self.devices_of_visitors, (purchases > 0).astype(np.int64), owned.sum(axis=1))
        earlier = np.cumsum(purchase) - purchase  # of all visitors up to here …
        earlier -= earlier[np.searchsorted(visitor, visitor)]  # … of this one
        _count(self.after_purchase, (earlier > 0).astype(np.int64), purchase)


def _count(table: np.ndarray, *places: np.ndarray) -> None:
    """Add 1 to the table at each place."""
    flat = np.ravel_multi_index(places, table.shape)
    table += np.bincount(flat, minlength=table.size).reshape(table.shape)
