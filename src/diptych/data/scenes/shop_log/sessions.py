"""What a session is before any page is opened: when, on which device, by which way in, and what for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.data.scenes.shop_log.calendar import DAY, HOUR
from diptych.data.scenes.shop_log.chance import SESSION_KEYS, Draw, choose, geometric, session_draw
from diptych.data.scenes.shop_log.people import People
from diptych.data.scenes.shop_log.rows import Rows
from diptych.data.scenes.shop_log.world import NO_DEVICE, World

RECOGNISED = 1
"""The page at which a customer is known who is recognised on arrival."""

NEVER = 1 << 20
"""The page at which the others are known."""


@dataclass(frozen=True)
class Sessions(Rows):
    """Sessions in the order of visitors and time, all (n,).

    Attributes:
        person: row of the visitor in the block.
        key: number that all draws of the session are for.
        start_us: universal time of the first event.
        week_day: local, of the start.
        hour: local, of the start.
        device: number in ``THESIS_DEVICES``.
        channel: number in ``THESIS_CHANNELS``.
        known_page: the first page at which the customer is known, :data:`RECOGNISED` or :data:`NEVER`.
        chance: probability of a purchase, of device, channel, week day and hour.
        purchase: whether it is one.
        pages: how many are opened.
        confirmation: which of them confirms the purchase; 0 in others.
    """

    person: np.ndarray
    key: np.ndarray
    start_us: np.ndarray
    week_day: np.ndarray
    hour: np.ndarray
    device: np.ndarray
    channel: np.ndarray
    known_page: np.ndarray
    chance: np.ndarray
    purchase: np.ndarray
    pages: np.ndarray
    confirmation: np.ndarray


def draw_sessions(world: World, people: People) -> Sessions:
    """All sessions that these visitors begin.

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
    """A session's device: by the transition from the customer's last session in which the customer is known.

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
