"""What a scorer answers: a probability, what it means, and why it is what it is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import Feature
from diptych.commerce.purchase_intent.features.view import NOTHING, SessionsView


@dataclass(frozen=True)
class Reason:
    """What one feature does to the odds of a purchase in this session.

    Attributes:
        feature: its name.
        label: as people call it.
        value: in this session, as text.
        typical: its middle or most frequent value among sessions that the scorer was trained on, as text.
        effect: log-odds of this session less the mean of what they were with the feature's values of training
            sessions in place of its own.
        text: all of it in plain words.
    """

    feature: str
    label: str
    value: str
    typical: str
    effect: float
    text: str

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "feature": self.feature,
            "value": self.value,
            "typical": self.typical,
            "effect": self.effect,
            "text": self.text,
        }


@dataclass(frozen=True)
class Score:
    """The probability that a session ends in a purchase, as far as it is known.

    Attributes:
        p: calibrated probability; 1 of a session in which something was bought already.
        step: how many pages it rests on, -1 of a whole session.
        setting: anonymous, identified or all.
        base_rate: share of purchases among the sessions that the scorer of this setting and step learned from.
        threshold: from which probability on it is taken for a purchase, chosen for the best F1.
        reasons: features with the greatest effects, greatest first.
        notes: what was odd, or assumed, each a sentence.
        bought: whether something was bought already: nothing is left to predict.
    """

    p: float
    step: int
    setting: str
    base_rate: float
    threshold: float
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    bought: bool = False

    @property
    def lift(self) -> float:
        """How many times as likely as of any such session."""
        return self.p / self.base_rate

    @property
    def is_likely(self) -> bool:
        """Whether it is taken for a purchase."""
        return self.p >= self.threshold

    def line(self) -> str:
        """One line for people."""
        after = "of the whole session" if self.step < 0 else f"after {self.step} page{'s' * (self.step != 1)}"
        return (
            f"p = {self.p:.3f} {after}, {self.setting}: {self.lift:.2g} × the base rate of {self.base_rate:.3f}, "
            f"{'above' if self.is_likely else 'below'} the threshold of {self.threshold:.3f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "p": self.p,
            "step": self.step,
            "setting": self.setting,
            "base_rate": self.base_rate,
            "lift": self.lift,
            "threshold": self.threshold,
            "likely": self.is_likely,
            "bought": self.bought,
            "reasons": [reason.to_dict() for reason in self.reasons],
            "notes": list(self.notes),
        }


_WEEK_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_AROUND = ("start_hour", "start_dow")
"""Numbers that go around: their middle means nothing, their most frequent value does."""

_MOST = 1000.0

_LONGEST = 60
"""Characters of a text that are shown."""


def value_in_words(feature: Feature, view: SessionsView, columns: np.ndarray) -> str:
    """A feature's value in a view of one session.

    Args:
        columns: (columns,) the feature's own in the matrix.
    """
    raw = _raw(feature, view, columns[None])
    if raw is None:
        return ", ".join(f"{value:.4g}" for value in columns)
    return _in_words(feature, raw.tolist()[0])


def typical_value(feature: Feature, view: SessionsView, columns: np.ndarray) -> str:
    """The middle of a number, the most frequent of anything else, among the sessions of a view.

    Args:
        columns: (n, columns) the feature's own in the matrix.
    """
    raw = _raw(feature, view, columns)
    if raw is None:
        return "–"
    if raw.dtype == object or (len(feature.columns) == 1 and feature.columns[0] in _AROUND):
        counts = Counter(raw.tolist())
        return _in_words(feature, min(counts, key=lambda value: (-counts[value], value)))
    there = raw[~np.isnan(raw)]
    # None is typical where most have none.
    return _in_words(feature, float(np.median(there)) if 2 * len(there) > len(raw) else math.nan)


def reason_of(feature: Feature, value: str, typical: str, effect: float) -> Reason:
    """The reason, with its sentence: ``number of orders: 3, typically 0; raises the odds 2.4×``."""
    factor = math.exp(min(abs(effect), 2 * math.log(_MOST)))
    times = f"more than {_MOST:.0f}×" if factor > _MOST else f"{factor:.3g}×"
    usual = "as is typical" if value == typical else f"typically {typical}"
    does = "raises the odds" if effect > 0 else "lowers the odds"
    return Reason(
        feature=feature.name,
        label=feature.label,
        value=value,
        typical=typical,
        effect=effect,
        text=f"{feature.label}: {value}, {usual}; {does} {times}",
    )


def _raw(feature: Feature, view: SessionsView, columns: np.ndarray) -> np.ndarray | None:
    """(n,) what people would call the value: its one column of the matrix, or that of the view it is made of."""
    if columns.shape[1] == 1:
        return columns[:, 0]
    return view.columns[feature.columns[0]] if feature.columns else None


def _in_words(feature: Feature, value: float | str) -> str:
    if isinstance(value, str):
        return "none" if value == NOTHING else value[:_LONGEST] + "…" * (len(value) > _LONGEST)
    if math.isnan(value):
        return "none"
    if feature.columns == ("start_dow",):
        return _WEEK_DAYS[int(value)]
    if feature.columns == ("start_hour",):
        return f"{int(value)} h"
    return f"{value:.4g}"
