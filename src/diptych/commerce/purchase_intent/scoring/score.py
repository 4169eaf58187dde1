"""What a scorer answers: a probability, what it means, and why it is what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
