"""digits: whether printed numbers were rounded or cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs


def _choices(inputs: Inputs) -> Sequence[Choice]:
    return [
        Choice("rounded", "printed numbers are rounded", lambda settings: replace(settings, rule="round")),
        Choice(
            "cut off",
            "digits behind the printed ones are cut off",
            lambda settings: replace(settings, rule="truncate"),
        ),
    ]


DIGITS = AXES.add(
    Axis(
        name="digits",
        description="whether printed numbers are rounded or cut off; it decides on agreement to the digit alone",
        choices=_choices,
    )
)
