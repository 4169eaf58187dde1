"""The result of an audit: held bits per group and per question, for both sides and conditions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.metrics.bootstrap import Bootstrap, interval

_CHUNK = 100


@dataclass(frozen=True)
class Held:
    """The bits of one group of answers.

    Attributes:
        raw: held / there; below 0 when a probe does worse than none, and then reported as 0 %.
        low, high: ends of the interval of ``raw``; equal to it without resamples.
        there: bits per test row, on average over all of them.
        answers: how many answers, by weight.
    """

    raw: float
    low: float
    high: float
    there: float
    answers: float

    @property
    def percent(self) -> float:
        """What is reported: between 0 and 100."""
        return _percent(self.raw)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval in per cent, between 0 and 100."""
        return _percent(self.low), _percent(self.high)

    @property
    def bits(self) -> float:
        """Held bits per test row, 0 or more."""
        return self.there * self.percent / 100

    def show(self) -> str:
        """``42.6 (40.1–45.0)``."""
        low, high = self.ends
        return f"{self.percent:.1f} ({low:.1f}–{high:.1f})"


def held_of(
    there: np.ndarray, left: np.ndarray, answers: np.ndarray, images: np.ndarray, bootstrap: Bootstrap
) -> list[Held | None]:
    """Several groups of answers at once, on the same resamples.

    Args:
        there: (n, groups) bits of each row's answers in each group without a probe.
        left: (n, groups) the same with the probe.
        answers: (groups,) how many answers a group has, by weight.
        images: (n,) the image of each row.

    Returns:
        One per group; None where a group has no bits.
    """
    _, cluster = np.unique(images, return_inverse=True)
    sums = np.zeros((2, int(cluster.max(initial=-1)) + 1, there.shape[1]))
    np.add.at(sums[0], cluster, there)
    np.add.at(sums[1], cluster, there - left)
    totals, samples = sums.sum(axis=1), _resampled(sums, bootstrap)
    found: list[Held | None] = []
    for number, bits in enumerate(totals[0]):
        if bits <= 0:
            found.append(None)
            continue
        raw = float(totals[1, number] / bits)
        low, high = interval(samples[:, number], bootstrap.confidence) or (raw, raw)
        found.append(Held(raw, low, high, float(bits) / len(images), float(answers[number])))
    return found


def _resampled(sums: np.ndarray, bootstrap: Bootstrap) -> np.ndarray:
    """(samples, groups) held / there; NaN for a resample in which a group has no bits."""
    n = sums.shape[1]
    random = np.random.default_rng(bootstrap.seed)
    found = []
    for start in range(0, bootstrap.samples if n else 0, _CHUNK):
        size = min(_CHUNK, bootstrap.samples - start)
        times = random.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
        there, held = times @ sums[0], times @ sums[1]
        found.append(np.divide(held, there, out=np.full_like(held, np.nan), where=there > 0))
    return np.concatenate([np.empty((0, sums.shape[2])), *found])


def _percent(share: float) -> float:
    return 100 * min(1.0, max(0.0, share))


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


CONDITIONS = {"without": "without shortcuts", "with": "with shortcuts"}
"""What the rows were encoded from."""

SIDES = {"image": "image rows", "caption": "caption rows"}
"""Whose rows."""

READING = {
    "facts": "Shared and specific are different facts, some easier to see than others: compare one kind between "
    "runs, not two kinds within one. Undescribed mixes keys that captions never state (never described) with keys "
    "that captions of other images state.",
    "words": "Shared and specific are different words, some easier to see than others: compare one kind between "
    "runs, not two kinds within one.",
}
"""Content → how its kinds are to be read."""

FEW_TO_CHOOSE = 20
"""Fewer validation images than these choose penalties and stopping points by chance."""


@dataclass(frozen=True)
class AuditProtocol:
    """Everything the figures depend on besides the rows.

    Attributes:
        content: ``facts`` or ``words``.
        probes: name → what it is.
        most: training rows per question.
        seed: of probes and control tasks.
        samples, confidence: of the bootstrap.
        images: of train, validation and test.
        about: dataset, splits, encoder, data, shortcuts.
    """

    content: str
    probes: dict[str, str]
    most: int
    seed: int
    samples: int
    confidence: float
    images: tuple[int, int, int]
    about: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """One line, to be printed with the figures."""
        parts = [f"{key} {value}" for key, value in self.about.items() if value is not None]
        parts.append("images {:,} to train probes, {:,} to choose, {:,} to test".format(*self.images))
        parts.append(f"at most {self.most:,} training rows per question")
        parts += [f"{name} probe: {what}" for name, what in self.probes.items()]
        parts.append(f"control: random answers per image; seed {self.seed}")
        parts.append(
            f"held = 1 − cross-entropy with the probe / without it (training frequencies), {100 * self.confidence:g} % "
            f"intervals from {self.samples:,} resamples of test images"
        )
        return "; ".join(parts)


@dataclass(frozen=True, eq=False)
class Audit(Artifact, kind="information_audit", recreate="diptych analyse audit"):
    """What :func:`~diptych.analysis.information.audit.audit` returns.

    Attributes:
        protocol: what the figures depend on.
        conditions: ``without`` and, where there are shortcuts, ``with`` → side → figures.
    """

    protocol: AuditProtocol
    conditions: dict[str, dict[str, Side]]

    def held(self, condition: str, side: str, group: str, probe: str) -> Held | None:
        """One figure; None where nothing of the kind was asked."""
        found = self.conditions.get(condition, {}).get(side)
        figure = None if found is None else found.group(group)
        return None if figure is None else figure.held.get(probe)

    def notes(self) -> list[str]:
        """What a reader of the figures should know, one sentence each."""
        found: dict[str, None] = {}
        to_choose = self.protocol.images[1]
        if to_choose < FEW_TO_CHOOSE:
            found[
                f"only {to_choose} validation image{'' if to_choose == 1 else 's'} to choose penalties and stopping "
                f"points by, fewer than {FEW_TO_CHOOSE}: with others the figures may be quite different."
            ] = None
        for condition, sides in self.conditions.items():
            before = f"{CONDITIONS[condition]}, " if len(self.conditions) > 1 else ""
            for name, side in sides.items():
                found.update(dict.fromkeys(f"{before}{SIDES[name]}: {note}" for note in side.notes))
        return [note[0].upper() + note[1:] for note in found]


@dataclass(frozen=True)
class Gap:
    """Bits per image, on average over test images.

    Attributes:
        shared: stated by every caption, shortcut digits not among them.
        minimal: stated by one caption, on average over captions: what is minimal and sufficient for it.
        optimal: stated by any caption (task-relevant): what is task-optimal.
        shortcut: of shortcut digits among ``optimal``: 0 where no caption ends with what its picture carries.
        held: of ``optimal``, what the rows hold, and the ends of its interval.
    """

    shared: float
    minimal: float
    optimal: float
    shortcut: float
    held: tuple[float, float, float]

    @property
    def gap(self) -> tuple[float, float, float]:
        """``optimal`` less ``held``, and the ends of its interval."""
        value, low, high = self.held
        return self.optimal - value, self.optimal - high, self.optimal - low


def gap_of(side: Side, probe: str) -> Gap | None:
    """The gap of image rows by one probe; None where nobody says what captions state (words)."""
    optimal, minimal = side.group("task-relevant"), side.group("one caption")
    if optimal is None or minimal is None or probe not in optimal.held:
        return None
    whole = optimal.held[probe]
    facts = {
        name: 0.0 if (figure := side.group(name)) is None else figure.held[probe].there
        for name in ("shared", "partial", "specific")
    }
    # what captions state is facts of these three kinds, and digits; less than this is rounding
    rest = whole.there - sum(facts.values())
    shortcut = rest if rest > 1e-9 * whole.there else 0.0
    low, high = whole.ends
    return Gap(
        facts["shared"],
        minimal.held[probe].there,
        whole.there,
        shortcut,
        (whole.bits, whole.there * low / 100, whole.there * high / 100),
    )
