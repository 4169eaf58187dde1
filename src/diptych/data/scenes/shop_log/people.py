"""Who visits the shop: customers with several devices and anonymous visitors with one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.data.scenes.shop_log.chance import SESSION_KEYS, Draw, choose, geometric, visitor_draw
from diptych.data.scenes.shop_log.columns import COUNTRIES
from diptych.data.scenes.shop_log.rows import Rows
from diptych.data.scenes.shop_log.world import World

MONTH = 28
"""Days that a mean number of sessions is of."""

_COUNTRY_SHARES = (0.83, 0.13, 0.04)


@dataclass(frozen=True)
class People(Rows):
    """Visitors, all (n,).

    Attributes:
        number: of the visitor in the log.
        customer: whether the visitor has an account.
        sessions: how many the visitor begins; few of them are dropped, where the one before still runs.
        devices: number of the set of devices.
        propensity: how little the visitor is inclined to buy, standard normal: what the person's sessions share.
        country: number of it.
    """

    number: np.ndarray
    customer: np.ndarray
    sessions: np.ndarray
    devices: np.ndarray
    propensity: np.ndarray
    country: np.ndarray


def draw_people(world: World, number: np.ndarray) -> People:
    """The visitors of these numbers; each depends on its own number alone."""
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
