"""unranked: what becomes of items that were not among the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Settings


def _ruled(settings: Settings, rule: str) -> Settings:
    return replace(settings, unranked=rule)


def _applies(settings: Settings) -> bool:
    """Whether something is unranked, and the rule is not the one that goes without saying."""
    usual = replace(settings, unranked="").unranked_rule
    return settings.depth != "everything" and settings.unranked != usual


def _two_scores(settings: Settings) -> bool:
    """The contrastive order after candidates in that order is the whole ranking."""
    return settings.depth != "everything" and settings.matched


def _choices(inputs: Inputs) -> Sequence[Choice]:
    return [
        Choice("usual", "as k_test says", partial(_ruled, rule="")),
        Choice("miss", "what was not ranked is found by no cut-off", partial(_ruled, rule="miss"), _applies),
        Choice(
            "published",
            "what was not ranked ties at -100, later gallery rows first",
            partial(_ruled, rule="published"),
            _applies,
        ),
        Choice(
            "contrastive",
            "what was not ranked follows in the order of the contrastive score",
            partial(_ruled, rule="contrastive"),
            _two_scores,
        ),
    ]


UNRANKED = AXES.add(
    Axis(
        name="unranked",
        description="what becomes of items that are no candidates: missed, tied at -100 as published, or after them",
        choices=_choices,
    )
)
