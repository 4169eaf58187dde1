"""The best probability that anybody can give: that of the distributions which the log was drawn from.

For a session with at least 12 pages and a step k of 0 to 10, where no purchase lies before page k + 3 (so that
at least :data:`BUFFER` pages are open between step and confirmation), the odds of a purchase are the product of

- the odds by what is known at its start: device, channel, local week day and hour;
- how much likelier it is of a purchase session than of another one on this device to have at least 12 pages, and
  no confirmation before page k + 3;
- for each of the first k pages, how much likelier it follows the one before in the buyers' chain than in the others';
- for each of the first k - 1 of them, how much likelier its dwell time is; a planted gap of 30 minutes says nothing.

``probability`` is of this and of nothing else: not of the visitor's propensity, other sessions, queries or the
basket. ``probability_with_history`` replaces the odds at the start by those after all earlier sessions of the same
person and their outcomes, whether or not the person was known in them: what is integrated over is the propensity
(by :data:`NODES` nodes), which is standard normal beforehand and has been weighed by every outcome. Both are exact
in the model: among sessions with probability p a part p are purchase sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.extras import require
from diptych.data.logs.schema import SECOND
from diptych.data.scenes.shop_log.chance import Rows
from diptych.data.scenes.shop_log.events import cookie_of
from diptych.data.scenes.shop_log.raw import COOKIE, WORK, numbered
from diptych.data.scenes.shop_log.sessions import Sessions, Visits
from diptych.data.scenes.shop_log.world import LONGEST_GAP, START, World, logistic

if TYPE_CHECKING:
    import pyarrow as pa

LAST_STEP = 10
BUFFER = 2
"""As thesis section 6.5.1: pages that a session has after the last step, and before the confirmation."""

NODES = 48

_LEAST_PAGES = LAST_STEP + BUFFER


@dataclass(frozen=True)
class Foresight(Rows):
    """Probabilities, one row per session and step, all (n,).

    Attributes:
        session: row of the session in the block.
        step: pages that are open.
        identified: whether the customer is known by then.
        probability: by the session alone.
        probability_with_history: by the session and the person's earlier ones.
    """

    session: np.ndarray
    step: np.ndarray
    identified: np.ndarray
    probability: np.ndarray
    probability_with_history: np.ndarray


def foresight(world: World, visits: Visits) -> Foresight:
    """The oracle's word on a block, session by session."""
    sessions = visits.sessions
    long = np.flatnonzero(sessions.pages >= _LEAST_PAGES)
    steps = np.arange(LAST_STEP + 1)
    seen = _long_enough(world)[sessions.device[long]] + _by_pages(world, visits, long)
    confirmation = sessions.confirmation[long, None]
    inside = (confirmation == 0) | (confirmation > steps + BUFFER)
    chances = (sessions.chance, chance_with_history(world, visits))
    row, step = np.nonzero(inside)
    return Foresight(
        session=long[row],
        step=step,
        identified=(sessions.known_page[long, None] <= np.maximum(steps, 1))[inside],
        **{
            name: logistic(np.log(chance / (1 - chance))[long, None] + seen)[inside]
            for name, chance in zip(("probability", "probability_with_history"), chances, strict=True)
        },
    )


def _long_enough(world: World) -> np.ndarray:
    """(d, steps) log ratio of how likely a purchase session and another one belong to the population of a step."""
    others = world.others_pages[:, _LEAST_PAGES - 1 :].sum(axis=1)
    pages_of = np.arange(
        1, world.confirmation.shape[1] + 1
    )  # the confirmation is the last page, or more follow
    at_least = np.cumsum(world.after[::-1])[::-1]  # P(as many pages after it, or more)
    missing = np.clip(_LEAST_PAGES - pages_of, 0, None)
    purchases = np.stack(
        [
            (world.confirmation * at_least[missing])[:, step + BUFFER :].sum(axis=1)
            for step in range(LAST_STEP + 1)
        ],
        axis=1,
    )
    ratio: np.ndarray = np.log(purchases) - np.log(others)[:, None]
    return ratio


def _by_pages(world: World, visits: Visits, long: np.ndarray) -> np.ndarray:
    """(l, steps) sum of the log ratios of page types, and of the dwell times that have ended."""
    first = (np.cumsum(visits.sessions.pages) - visits.sessions.pages)[long]
    rows = first[:, None] + np.arange(LAST_STEP)
    kind, dwell_us = visits.paths.kind[rows], visits.paths.dwell_us[rows]
    before = np.hstack([np.full((len(long), 1), START), kind[:, :-1]])
    # the confirmation may be among these pages, but then the steps behind it are not asked for
    kind = np.minimum(kind, START - 1)
    pages = (np.log(world.chains[1]) - np.log(world.chains[0]))[before, kind]
    dwell = _dwell_ratio(world, kind, dwell_us)
    ratios = np.zeros((len(long), LAST_STEP + 1))
    ratios[:, 1:] = np.cumsum(pages, axis=1)
    ratios[:, 2:] += np.cumsum(dwell, axis=1)[:, :-1]
    return ratios


def _dwell_ratio(world: World, kind: np.ndarray, dwell_us: np.ndarray) -> np.ndarray:
    """Log ratio of the two truncated log-normal densities."""
    low, high = world.dwell_limits
    log_seconds = np.log(dwell_us / SECOND)

    def log_density(purchase: int) -> np.ndarray:
        away = (log_seconds - world.dwell[purchase][kind]) / world.spread[purchase]
        inside = (high - low)[purchase][kind]
        values: np.ndarray = -(away**2) / 2 - np.log(world.spread[purchase] * inside)
        return values

    return np.where(dwell_us == LONGEST_GAP, 0.0, log_density(1) - log_density(0))


def chance_with_history(world: World, visits: Visits) -> np.ndarray:
    """(n,) probability of a purchase at each session's start, after the outcomes of the person's earlier ones."""
    from numpy.polynomial.hermite_e import hermegauss
    from scipy.special import ndtr, ndtri

    sessions, repeat = visits.sessions, world.effects.repeat
    propensity, weights = hermegauss(NODES)
    chance_at = ndtr((ndtri(sessions.chance)[:, None] - np.sqrt(repeat) * propensity) / np.sqrt(1 - repeat))
    posterior = np.tile(weights / weights.sum(), (len(visits.people), 1))
    chance = np.empty(len(sessions))
    for rows in _turns(sessions):
        who = sessions.person[rows]
        chance[rows] = (posterior[who] * chance_at[rows]).sum(axis=1)
        likelihood = np.where(sessions.purchase[rows, None], chance_at[rows], 1 - chance_at[rows])
        weighed = posterior[who] * likelihood
        posterior[who] = weighed / weighed.sum(axis=1, keepdims=True)
    return chance


def _turns(sessions: Sessions) -> list[np.ndarray]:
    """Rows of all first sessions, of all second ones, and so on."""
    first = np.searchsorted(sessions.person, sessions.person)
    turn = np.arange(len(sessions)) - first
    order = np.argsort(turn, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(turn[order])) + 1) if len(order) else []


def oracle_table(world: World, visits: Visits) -> pa.Table:
    """The rows of ``oracle.parquet``: the session's client and start in microseconds, and :class:`Foresight`."""
    pa = require("pyarrow", "commerce", WORK)
    told = foresight(world, visits)
    sessions = visits.sessions.take(told.session)
    cookies = cookie_of(world, visits.people.number[sessions.person], sessions.device)
    return pa.table(
        {
            "client": numbered(cookies, COOKIE),
            "start_us": sessions.start_us,
            "step": told.step,
            "identified": told.identified,
            "probability": told.probability,
            "probability_with_history": told.probability_with_history,
            "label": sessions.purchase,
        }
    )
