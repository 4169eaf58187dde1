"""What a rule declares, and the registry of them.

Rules have a fixed order, and a row is counted under the first that drops it: so the rows that were read are the
events that were kept and what all rules dropped together.

1. Rows are judged one by one, while a file is read (:class:`RowRule`).
2. What is left is judged beside other events of the same client (:class:`BucketRule`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diptych.core.registry import Registry
from diptych.data.logs.cleaning import Cleaning, Period

UNREADABLE_ROW = "unreadable row"
"""Under this rule lines are counted, too, that the database could not even hand on as rows."""


@dataclass(frozen=True)
class Rule:
    """A reason to drop events.

    Attributes:
        name: in reports.
        description: one line of what is dropped.
        place: in the order of rules.
        asked: whether it applies at all.
    """

    name: str
    description: str
    place: int
    asked: Callable[[Cleaning], bool]


@dataclass(frozen=True)
class RowRule(Rule):
    """A rule that looks at one row.

    Attributes:
        drops: SQL of a condition over the columns of :mod:`diptych.data.logs.canonical`, never NULL.
        names: SQL of a text to count what was dropped by, NULL for nothing of the kind.
    """

    drops: Callable[[Cleaning, Period], str]
    names: str = "NULL"


@dataclass(frozen=True)
class BucketRule(Rule):
    """A rule that looks at all events of a client, which are in one bucket.

    Attributes:
        drops: SQL of the ``event_id`` of what is dropped of the table ``events``, each once.
        names: SQL of texts and numbers of events of what is dropped, empty for nothing of the kind.
    """

    drops: Callable[[Cleaning], str]
    names: Callable[[Cleaning], str] = lambda cleaning: ""


RULES: Registry[Rule] = Registry("rule", "diptych.data.logs.rules.kinds")


def asked_rules(cleaning: Cleaning) -> list[Rule]:
    """The rules that apply, in their order."""
    return sorted((rule for rule in RULES if rule.asked(cleaning)), key=lambda rule: rule.place)
