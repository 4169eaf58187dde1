"""What the planted parameters of a shop log say in closed form, so that what is measured can be held against it.

Everything here is an expectation over all logs of these parameters; one log differs from it by chance. Sessions of one
visitor are alike (``repeat``), so with it rates of purchases scatter more than those of as many sessions that have
nothing to do with each other; in a log made with ``repeat = 0`` they do not. Dropping sessions that would overlap
another one (under 1 %) is left out of account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diptych.commerce.logs.log import THESIS_CHANNELS, THESIS_DEVICES
from diptych.commerce.scenes.visits import FORCED, MONTH, NO_DEVICE, SEARCH, TYPES, ShopWorld, week_day

_CLASSES = ("other", "purchase")


def expected(world: ShopWorld) -> dict[str, Any]:
    """Conversion, times of sessions, device transitions, queries."""
    joint = _joint(world)
    return {
        "devices": _conversion(joint, world.chance, THESIS_DEVICES, axis=0),
        "channels": _conversion(joint, world.chance, THESIS_CHANNELS, axis=1),
        "week_days": _over_time(joint, world.chance, axis=2),
        "hours": _over_time(joint, world.chance, axis=3),
        "device_transitions": _transitions(world, joint),
        "queries_per_session": _queries_per_session(world),
    }


def _joint(world: ShopWorld) -> np.ndarray:
    """(d, c, 7, 24) share of sessions: what a session's device, channel, week day and hour are is independent."""
    effects = world.effects
    visitors = np.array([1 - effects["customers"], effects["customers"]])
    sessions = visitors * (1 + (np.array(effects["sessions"]) - 1) * len(world.calendar.days_us) / MONTH)
    devices = sessions @ world.sets.rows @ _moves(world)[:, NO_DEVICE] / sessions.sum()
    channels = world.channels.rows[0]
    week_days = np.bincount(week_day(world.calendar.days_us), weights=world.days.rows[0], minlength=7)
    joint: np.ndarray = np.einsum("d,c,w,h->dcwh", devices, channels, week_days, world.hours.rows[0])
    return joint


def _moves(world: ShopWorld) -> np.ndarray:
    """(s, d + 1, d) transitions among each set of devices; the last row is their long-run shares."""
    return world.moves.rows.reshape(-1, NO_DEVICE + 1, NO_DEVICE)


def _margin(table: np.ndarray, axis: int) -> np.ndarray:
    values: np.ndarray = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis))
    return values


def _conversion(joint: np.ndarray, chance: np.ndarray, names: Sequence[str], axis: int) -> dict[str, Any]:
    share, bought = _margin(joint, axis), _margin(joint * chance, axis)
    return {
        name: {"share": float(share[place]), "rate": float(bought[place] / share[place])}
        for place, name in enumerate(names)
    }


def _over_time(joint: np.ndarray, chance: np.ndarray, axis: int) -> dict[str, list[float]]:
    """Class → share of its sessions at each place."""
    of_class = (_margin(joint * (1 - chance), axis), _margin(joint * chance, axis))
    return {name: (values / values.sum()).tolist() for name, values in zip(_CLASSES, of_class, strict=True)}


def _transitions(world: ShopWorld, joint: np.ndarray) -> dict[str, dict[str, float]]:
    """From a known customer's session before to a purchase session: the planted transitions among the devices that
    customers have, weighed by the chance that a session on the device is a purchase."""
    moves = _moves(world)
    had = world.sets.rows[1][:, None, None] * moves[:, NO_DEVICE, :, None] * moves[:, :NO_DEVICE]
    pairs = had.sum(axis=0) * (_margin(joint * world.chance, 0) / _margin(joint, 0))
    return {
        before: {
            after: float(pairs[row, place] / pairs[row].sum()) for place, after in enumerate(THESIS_DEVICES)
        }
        for row, before in enumerate(THESIS_DEVICES)
        if pairs[row].sum() > 0
    }


def _queries_per_session(world: ShopWorld) -> dict[str, dict[str, float]]:
    """Class → device → mean number: of the pages of results that the chains come by."""
    of_others, of_buyers = world.chains.rows.reshape(2, TYPES + 1, TYPES)
    after = _visits(of_others, world.after.rows[0, 1:])
    found: dict[str, dict[str, float]] = {name: {} for name in _CLASSES}
    for place, device in enumerate(THESIS_DEVICES):
        others = _visits(of_others, world.pages.rows[place])
        purchases = _visits(of_buyers, world.confirmation.rows[place, FORCED:]) + after
        for name, searches, queried in zip(_CLASSES, (others, purchases), world.queried[place], strict=True):
            found[name][device] = float(searches * queried)
    return found


def _visits(chain: np.ndarray, shares: np.ndarray) -> float:
    """Mean number of pages of results on a chain that has 1, 2, … pages with these shares."""
    at_least = np.cumsum(shares[::-1])[::-1]
    at, total = chain[TYPES], 0.0
    for going_on in at_least:
        total += going_on * at[SEARCH]
        at = at @ chain[:TYPES]
    return float(total)
