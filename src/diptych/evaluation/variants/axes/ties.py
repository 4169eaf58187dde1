"""ties: what stands where when scores are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Settings

_WORDS = {
    "compat": "of equal scores later gallery rows come first",
    "pessimistic": "of equal scores the negatives come first",
    "optimistic": "of equal scores the positives come first",
}


def _ruled(settings: Settings, rule: str) -> Settings:
    return replace(settings, ties=rule)


def _differs(settings: Settings) -> bool:
    """Whether the rule is another than the default of these settings."""
    return settings.ties != replace(settings, ties="").tie_rule


def _choices(inputs: Inputs) -> Sequence[Choice]:
    default = Choice("expected", "every order of equal scores is equally likely", partial(_ruled, rule=""))
    others = [Choice(rule, words, partial(_ruled, rule=rule), _differs) for rule, words in _WORDS.items()]
    return [default, *others]


TIES = AXES.add(
    Axis(
        name="ties",
        description="what stands where when scores are equal",
        choices=_choices,
    )
)
