"""How the visitor came."""

from __future__ import annotations

from diptych.commerce.purchase_intent.features.categories import OneHot
from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature

__all__ = ["CHANNEL"]

_CHANNEL = OneHot("channel", "channel")

CHANNEL = FEATURES.add(
    Feature(
        name="channel",
        label="channel type",
        description="one column per channel of the training sessions, at most 50; another one is 0 in all of them",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("channel",),
        fit=_CHANNEL.fit,
        load=_CHANNEL.load,
    )
)
