"""The usual shop: parameters of documented size, which make a log like that of thesis chapter 6.

About 5 % of the sessions end in a purchase, and about 20 % of those with at least 12 pages. 56 % are anonymous and
55 % on smartphones. PCs, search engines, evenings and the middle of the week sell best, and who has bought before
buys again. A quarter of the purchasers and a sixth of the other customers are seen on several devices.
"""

from __future__ import annotations

from diptych.data.scenes.shop_log.effects import Chain, DeviceSet, Effects, Pages


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
