"""A check of a leak audit: one way in which the answer may have got into the question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.scoring.fitting import Slices
from diptych.core.errors import UsageError
from diptych.core.registry import Registry

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.data.logs.log import Log


@dataclass(frozen=True)
class AuditOptions:
    """How an audit is made.

    Attributes:
        feature_set: whose features are looked at.
        steps: which are looked at where a model has to be fitted; all others where it need not.
        model: the classifier that looks for leaks.
        repeats: how many times labels are permuted.
        most: sessions that a model is fitted on, and measured on, at most; drawn by ``seed``.
        highest: ROC AUC of a single column from which on it is an alarm.
        margin: how far the ROC AUC after permuted labels may lie above 0.5.
        fewest: purchases that a ROC AUC is taken seriously from.
        seed: of everything drawn.
    """

    feature_set: str = "extended"
    steps: tuple[int, ...] | None = None
    model: str = "hist-gradient-boosting"
    repeats: int = 6
    most: int = 20_000
    highest: float = 0.95
    margin: float = 0.05
    fewest: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 2:
            raise UsageError(f"{self.repeats} permutations have no interval", "2 or more")
        if not (0.5 < self.highest < 1 and 0 < self.margin < 0.5):
            raise UsageError(
                f"highest is {self.highest:g} and margin {self.margin:g}", "above 0.5 and 0, below 1 and 0.5"
            )


@dataclass(frozen=True)
class AuditInput:
    """What a check may look at.

    Attributes:
        features: the table of features.
        log: that it was made of, where it is there.
        slices: the parts that a scorer would be made of.
        options: how.
    """

    features: FeatureTable
    log: Log | None
    slices: Slices
    options: AuditOptions


@dataclass(frozen=True)
class Finding:
    """What a check found in one place.

    Attributes:
        check: its name.
        where: a setting and step, or a column; empty of the whole.
        statistic: what ``value`` is; empty where there is no number.
        value: it.
        low, high: ends of its interval, where it has one.
        limit: from where on it is an alarm, where it can be one.
        alarm: whether it is one.
        text: what it means, in one sentence.
    """

    check: str
    where: str
    text: str
    alarm: bool = False
    statistic: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: e.g. ``single-column``.
        description: one line: what it does, and when it raises an alarm.
        order: of the checks in a report, lowest first.
        run: its findings; none only where there is nothing to look at, which it says in one.
    """

    name: str
    description: str
    order: int
    run: Callable[[AuditInput], list[Finding]]


CHECKS: Registry[Check] = Registry("check", "diptych.commerce.purchase_intent.auditing.kinds")
"""All checks; each is declared in a file of its own."""
