"""mAP: what an average precision is divided by; two measures go by the name mAP@k."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from diptych.evaluation.printed.target import cell_parts
from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Renaming, Settings, Step

_PLAIN = re.compile(r"mAP@([0-9]+)")


def _over_hits(name: str) -> str:
    return _PLAIN.sub(r"mAP-hits@\1", name)


_OVER_HITS: Step[Renaming] = Step("over hits", _over_hits)


def _divided(settings: Settings) -> Settings:
    return replace(settings, precision=_OVER_HITS)


def _choices(inputs: Inputs) -> Sequence[Choice]:
    own = Choice(
        "over positives",
        "mAP@k is divided by all positives that could be among the first k",
        lambda settings: replace(settings, precision=None),
    )
    if not any(_PLAIN.fullmatch(cell_parts(name)[1]) for name in inputs.target.cells):
        return [own]
    words = "mAP@k is divided by the positives that are found among the first k, as published code does"
    return [own, Choice("over hits", words, _divided)]


AVERAGE_PRECISION = AXES.add(
    Axis(
        name="mAP",
        description="whether an average precision is divided by all positives or by those that were found",
        choices=_choices,
    )
)
