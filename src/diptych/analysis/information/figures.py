"""An audit's figures of one side: per kind of information and per question."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.analysis.information.held import Held


@dataclass(frozen=True)
class GroupFigure:
    """One kind of information.

    Attributes:
        name: its name; what it means is in ``facts_of.IMAGE_GROUPS`` and its like.
        held: per probe.
        control: per probe, held / there on the control task; about 0 or below.
    """

    name: str
    held: dict[str, Held]
    control: dict[str, float]


@dataclass(frozen=True)
class Probing:
    """What one probe gives on one question.

    Attributes:
        held: bits.
        accuracy: on test rows.
        control_accuracy: on test rows of the control task.
        by_heart: the control's accuracy on the rows that its probe was trained on.
        control: held / there on the control task.
        setting: the penalty of a linear probe, the epochs of a perceptron; 0 for a constant prediction.
    """

    held: Held
    accuracy: float
    control_accuracy: float
    by_heart: float
    control: float
    setting: float

    @property
    def selectivity(self) -> float:
        """Accuracy less the control's (Hewitt and Liang, 2019)."""
        return self.accuracy - self.control_accuracy


@dataclass(frozen=True)
class QuestionFigure:
    """One question.

    Attributes:
        key: its name.
        classes: possible answers.
        rows: training and test rows that are asked.
        entropy: bits per answer without a probe.
        majority: accuracy of the most frequent training answer.
        groups: kind of information → share of the question's test answers that belong to it.
        probes: per probe.
    """

    key: str
    classes: int
    rows: tuple[int, int]
    entropy: float
    majority: float
    groups: dict[str, float]
    probes: dict[str, Probing]


@dataclass(frozen=True)
class Side:
    """Image rows or caption rows of one condition.

    Attributes:
        rows: of train, validation and test.
        groups: kinds of information, in the order they are told.
        questions: every question, as asked.
        notes: what was left out, one sentence each.
    """

    rows: tuple[int, int, int]
    groups: tuple[GroupFigure, ...]
    questions: tuple[QuestionFigure, ...]
    notes: tuple[str, ...]

    def group(self, name: str) -> GroupFigure | None:
        """A kind of information by its name; None where nothing of it is asked."""
        return next((group for group in self.groups if group.name == name), None)
