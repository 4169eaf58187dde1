"""The result of an audit: held bits per group and per question, for both sides and conditions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.metrics.bootstrap import Bootstrap, interval

_CHUNK = 100


def _percent(share: float) -> float:
    return 100 * min(1.0, max(0.0, share))


@dataclass(frozen=True)
class Held:
    """The bits of one group of answers, and what a probe finds of them."""

    raw: float  # held / there; below 0 when a probe does worse than none, and then reported as 0 %
    low: float  # ends of the interval of ``raw``; equal to it without resamples
    high: float
    there: float  # bits per test row, on average over all of them
    answers: float  # how many answers, by weight

    @property
    def percent(self) -> float:
        """Between 0 and 100."""
        return _percent(self.raw)

    @property
    def ends(self) -> tuple[float, float]:
        return _percent(self.low), _percent(self.high)

    @property
    def bits(self) -> float:
        """Per test row, 0 or more."""
        return self.there * self.percent / 100


def held_of(
    there: np.ndarray, left: np.ndarray, answers: np.ndarray, images: np.ndarray, bootstrap: Bootstrap
) -> list[Held | None]:
    """Return what is held per group, on the same resamples of images, from (n, groups) bits; None without bits."""
    _, cluster = np.unique(images, return_inverse=True)
    sums = np.zeros((2, int(cluster.max(initial=-1)) + 1, there.shape[1]))
    np.add.at(sums[0], cluster, there)
    np.add.at(sums[1], cluster, there - left)
    n, random, totals = sums.shape[1], np.random.default_rng(bootstrap.seed), sums.sum(axis=1)
    samples = np.full((bootstrap.samples if n else 0, there.shape[1]), np.nan)
    for start in range(0, len(samples), _CHUNK):
        part = samples[start : start + _CHUNK]
        times = random.multinomial(n, np.full(n, 1 / n), size=len(part)).astype(np.float64)
        bits, held = times @ sums[0], times @ sums[1]
        np.divide(held, bits, out=part, where=bits > 0)  # a resample in which a group has no bits stays NaN
    found: list[Held | None] = [None] * there.shape[1]
    for number in np.flatnonzero(totals[0] > 0).tolist():
        bits, raw = totals[0, number], float(totals[1, number] / totals[0, number])
        low, high = interval(samples[:, number], bootstrap.confidence) or (raw, raw)
        found[number] = Held(raw, low, high, float(bits) / len(images), float(answers[number]))
    return found


@dataclass(frozen=True)
class GroupFigure:
    """One kind of information of :data:`~diptych.analysis.information.GROUPS`."""

    name: str
    held: dict[str, Held]  # per probe
    control: dict[str, float]  # per probe, held / there on the control task; about 0 or below


@dataclass(frozen=True)
class Probing:
    """What one probe gives on one question."""

    held: Held
    accuracy: float  # on test rows
    control_accuracy: float  # on test rows of the control task
    by_heart: float  # the control's accuracy on the rows that its probe was trained on
    control: float  # held / there on the control task
    setting: float  # the penalty of a linear probe, the epochs of a perceptron; 0 for a constant prediction

    @property
    def selectivity(self) -> float:
        """Accuracy less the control's (Hewitt and Liang, 2019)."""
        return self.accuracy - self.control_accuracy


@dataclass(frozen=True)
class QuestionFigure:
    key: str  # its name
    classes: int  # possible answers
    rows: tuple[int, int]  # training and test rows that are asked
    entropy: float  # bits per answer without a probe
    majority: float  # accuracy of the most frequent training answer
    groups: dict[str, float]  # kind of information → share of the question's test answers that belong to it
    probes: dict[str, Probing]


@dataclass(frozen=True)
class Side:
    """Image rows or caption rows of one condition."""

    rows: tuple[int, int, int]  # of train, validation and test
    groups: tuple[GroupFigure, ...]  # kinds of information, in the order they are told
    questions: tuple[QuestionFigure, ...]
    notes: tuple[str, ...]  # what was left out, one sentence each

    def held(self, group: str, probe: str) -> Held | None:
        """Return what a probe finds of a kind of information; None where nothing of it is asked."""
        return next((one.held.get(probe) for one in self.groups if one.name == group), None)


CONDITIONS = {"without": "without shortcuts", "with": "with shortcuts"}  # what the rows were encoded from
SIDES = {"image": "image rows", "caption": "caption rows"}  # whose rows

READING = {
    "facts": "Shared and specific are different facts, some easier to see than others: compare one kind between "
    "runs, not two kinds within one. Undescribed mixes keys that captions never state (never described) with keys "
    "that captions of other images state.",
    "words": "Shared and specific are different words, some easier to see than others: compare one kind between "
    "runs, not two kinds within one.",
}  # content → how its kinds are to be read

FEW_TO_CHOOSE = 20  # fewer validation images than these choose penalties and stopping points by chance


@dataclass(frozen=True)
class AuditProtocol:
    """Everything the figures depend on besides the rows."""

    content: str  # "facts" or "words"
    probes: dict[str, str]  # name → what it is
    most: int  # training rows per question
    seed: int  # of probes and control tasks
    samples: int  # of the bootstrap, as is the confidence
    confidence: float
    images: tuple[int, int, int]  # of train, validation and test
    about: dict[str, Any] = field(default_factory=dict)  # dataset, splits, encoder, data, shortcuts

    def line(self) -> str:
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
    """What :func:`~diptych.analysis.information.audit` returns."""

    protocol: AuditProtocol
    conditions: dict[str, dict[str, Side]]  # "without" and, if there are shortcuts, "with" → side → figures

    def held(self, condition: str, side: str, group: str, probe: str) -> Held | None:
        found = self.conditions.get(condition, {}).get(side)
        return None if found is None else found.held(group, probe)

    def of(self, condition: str) -> str:
        """Return how titles name a condition, where there are several."""
        return f", {CONDITIONS[condition]}" if len(self.conditions) > 1 else ""

    def notes(self) -> list[str]:
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
    """Bits per image, on average over test images."""

    shared: float  # stated by every caption, shortcut digits not among them
    minimal: float  # stated by one caption, on average over captions: what is minimal and sufficient for it
    optimal: float  # stated by any caption (task-relevant): what is task-optimal
    # of shortcut digits among ``optimal``: 0 where no caption ends with what its picture carries
    shortcut: float
    held: tuple[float, float, float]  # of ``optimal``, what the rows hold, and the ends of its interval

    @property
    def gap(self) -> tuple[float, float, float]:
        """``optimal`` less ``held``, and the ends of its interval."""
        value, low, high = self.held
        return self.optimal - value, self.optimal - high, self.optimal - low


def gap_of(side: Side, probe: str) -> Gap | None:
    """Return the gap of image rows by one probe; None where nobody says what captions state (words)."""
    whole, minimal = side.held("task-relevant", probe), side.held("one caption", probe)
    if whole is None or minimal is None:
        return None
    shared, partial, specific = (
        0.0 if (one := side.held(name, probe)) is None else one.there
        for name in ("shared", "partial", "specific")
    )
    # what captions state is facts of these three kinds, and digits; less than this is rounding
    rest = whole.there - (shared + partial + specific)
    shortcut = rest if rest > 1e-9 * whole.there else 0.0
    low, high = whole.ends
    ends = whole.there * low / 100, whole.there * high / 100
    return Gap(shared, minimal.there, whole.there, shortcut, (whole.bits, *ends))
