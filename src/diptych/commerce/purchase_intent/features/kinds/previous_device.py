"""The device of the visitor's session before, and its conversion rate: the thesis found that they hurt.

So they are in no set unless they are asked for (thesis section 6.5.3).
"""

from __future__ import annotations

from diptych.commerce.purchase_intent.features.categories import OneHot
from diptych.commerce.purchase_intent.features.columns import EARLIER_DEVICES
from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.rates import SmoothedRate

__all__ = ["PREVIOUS_DEVICE", "PREVIOUS_DEVICE_RATE"]

_BEFORE = EARLIER_DEVICES[0]
_DEVICE = OneHot("previous-device", _BEFORE)
_RATE = SmoothedRate("previous-device-rate", _BEFORE)

PREVIOUS_DEVICE = FEATURES.add(
    Feature(
        name="previous-device",
        label="previous device type",
        description="device type of the visitor's session before, one column each; the thesis left it out",
        group="history",
        dynamic=False,
        baseline=False,
        columns=(_BEFORE,),
        fit=_DEVICE.fit,
        load=_DEVICE.load,
        default=False,
    )
)

PREVIOUS_DEVICE_RATE = FEATURES.add(
    Feature(
        name="previous-device-rate",
        label="previous device conversion rate",
        description="share of training sessions after one on that device type that end in a purchase, smoothed; none "
        "where there is no session before; the thesis left it out",
        group="history",
        dynamic=False,
        baseline=False,
        columns=(_BEFORE,),
        fit=_RATE.fit,
        load=_RATE.load,
        default=False,
    )
)
