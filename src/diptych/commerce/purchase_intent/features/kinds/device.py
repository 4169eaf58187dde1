"""What the visitor holds in the hand, and how often sessions on it end in a purchase."""

from __future__ import annotations

from diptych.commerce.purchase_intent.features.categories import OneHot
from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.rates import SmoothedRate

__all__ = ["DEVICE", "DEVICE_RATE"]

_DEVICE = OneHot("device", "device")
_RATE = SmoothedRate("device-rate", "device")

DEVICE = FEATURES.add(
    Feature(
        name="device",
        label="device type",
        description="one column per device type of the training sessions, at most 50; another one is 0 in all of them",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("device",),
        fit=_DEVICE.fit,
        load=_DEVICE.load,
    )
)

DEVICE_RATE = FEATURES.add(
    Feature(
        name="device-rate",
        label="device conversion rate",
        description="share of training sessions on the device type that end in a purchase, drawn to the share of all "
        "as by 20 sessions more (ours)",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("device",),
        fit=_RATE.fit,
        load=_RATE.load,
    )
)
