"""The information audit: how much of each kind of information frozen rows hold, in per cent.

A *probe* (Alain and Bengio, Understanding intermediate layers using linear classifier probes, 2016) predicts one
fact from a row. *Held* is the share of the fact's bits that it finds on test images: V-information (Xu et al.
2020) over entropy, a lower bound that can be compared between encoders because the probes are the same (Pimentel et
al., Information-theoretic probing for linguistic structure, ACL 2020).

Facts of an image are grouped by the captions that state them: the audit measures how much of what only one caption
says survives in the image's embedding (thesis chapter 4), and how far that is from task-optimal
(:func:`gap_of`). Probes are
trained on rows of the split that the encoder was trained on: where it fits these in ways that do not carry over, the
figures are about what holds for new images.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diptych.analysis.information.questions import (
    GROUPS,
    MOST_ROWS,
    PROBES,
    UNLABELLED,
    ProbeName,
    Questions,
    has_facts,
    side_questions,
)
from diptych.core.artifact import Artifact
from diptych.core.table import Table, Tabular
from diptych.data.collection import Collection
from diptych.metrics.bootstrap import Bootstrap, interval, resampled_sums

if TYPE_CHECKING:
    from diptych.analysis.information.probing import Probed


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
    sums = np.zeros((int(cluster.max(initial=-1)) + 1, 2 * there.shape[1]))
    np.add.at(sums, cluster, np.concatenate([there, there - left], axis=1))
    totals = np.split(sums.sum(axis=0), 2)
    bits, held = np.split(resampled_sums(sums, bootstrap), 2, axis=1)
    # a resample in which a group has no bits stays NaN
    samples = np.divide(held, bits, out=np.full(bits.shape, np.nan), where=bits > 0)
    found: list[Held | None] = [None] * there.shape[1]
    for number in np.flatnonzero(totals[0] > 0).tolist():
        whole, raw = float(totals[0][number]), float(totals[1][number] / totals[0][number])
        low, high = interval(samples[:, number], bootstrap.confidence) or (raw, raw)
        found[number] = Held(raw, low, high, whole / len(images), float(answers[number]))
    return found


@dataclass(frozen=True)
class GroupFigure:
    """One kind of information of :data:`~diptych.analysis.information.questions.GROUPS`."""

    name: str
    held: dict[str, Held]  # per probe
    control: dict[str, float]  # per probe, held / there on the control task; about 0 or below


@dataclass(frozen=True)
class Probing:
    held: Held
    accuracy: float  # on test rows
    control_accuracy: float  # on test rows of the control task
    by_heart: float  # the control's accuracy on the rows that its probe was trained on
    control: float  # held / there on the control task
    setting: float  # the penalty of a linear probe, the epochs of a perceptron; 0 for a constant prediction

    @property
    def selectivity(self) -> float:
        """Return accuracy less the control's (Hewitt and Liang, 2019)."""
        return self.accuracy - self.control_accuracy


@dataclass(frozen=True)
class QuestionFigure:
    key: str  # its name
    classes: int  # possible answers
    rows: tuple[int, int]  # training and test rows that have a label
    entropy: float  # bits per answer without a probe
    majority: float  # accuracy of the most frequent training answer
    groups: dict[str, float]  # kind of information → share of the question's test answers that belong to it
    probes: dict[str, Probing]


@dataclass(frozen=True)
class Side:
    """Image rows or caption rows of one condition."""

    rows: tuple[int, int, int]  # of train, validation and test
    groups: tuple[GroupFigure, ...]  # kinds of information, in the order they are reported
    questions: tuple[QuestionFigure, ...]
    notes: tuple[str, ...]  # what was left out, one sentence each

    def held(self, group: str, probe: str) -> Held | None:
        """Return what a probe finds of a kind of information; None where no question is of it."""
        return next((one.held.get(probe) for one in self.groups if one.name == group), None)


CONDITIONS = {"without": "without shortcuts", "with": "with shortcuts"}  # what the rows were encoded from
SIDES = {"image": "image rows", "caption": "caption rows"}  # whose rows

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
class Audit(Tabular, Artifact, kind="information_audit", recreate="diptych analyse audit"):
    """Result of :func:`audit`."""

    protocol: AuditProtocol
    conditions: dict[str, dict[str, Side]]  # "without" and, if there are shortcuts, "with" → side → figures

    def held(self, condition: str, side: str, group: str, probe: str) -> Held | None:
        found = self.conditions.get(condition, {}).get(side)
        return None if found is None else found.held(group, probe)

    def lines(self) -> list[str]:
        return [self.protocol.line(), *self.notes()]

    def tables(self) -> list[Table]:
        """Return per side what is held of each kind of information."""
        from diptych.analysis.information.tables import kinds_tables

        return kinds_tables({"audit": self})

    def of(self, condition: str) -> str:
        """Return how titles name a condition, where there are several."""
        return f", {CONDITIONS[condition]}" if len(self.conditions) > 1 else ""

    def notes(self) -> list[str]:
        found, to_choose = [], self.protocol.images[1]
        if to_choose < FEW_TO_CHOOSE:
            found.append(
                f"only {to_choose} validation images to choose penalties and stopping points by, fewer than "
                f"{FEW_TO_CHOOSE}: with others the figures may be quite different."
            )
        for condition, sides in self.conditions.items():
            before = self.of(condition).removeprefix(", ")
            for name, side in sides.items():
                found += [f"{f'{before}, ' if before else ''}{SIDES[name]}: {note}" for note in side.notes]
        return [note[0].upper() + note[1:] for note in dict.fromkeys(found)]


@dataclass(frozen=True)
class Gap:
    """Bits per image, on average over test images."""

    shared: float  # stated by every caption, shortcut digits not among them
    minimal: float  # stated by one caption, on average over captions: what is minimal and sufficient for it
    optimal: float  # stated by any caption (task-relevant): what is task-optimal
    # of shortcut digits among ``optimal``: 0 where no caption ends with what its image carries
    shortcut: float
    held: tuple[float, float, float]  # of ``optimal``, what the rows hold, and the ends of its interval

    @property
    def gap(self) -> tuple[float, float, float]:
        """Return ``optimal`` less ``held``, and the ends of its interval."""
        value, low, high = self.held
        return self.optimal - value, self.optimal - high, self.optimal - low


def gap_of(side: Side, probe: str) -> Gap | None:
    """Return the gap of image rows by one probe; None where it is unknown what captions state (words)."""
    whole, minimal = side.held("task-relevant", probe), side.held("one caption", probe)
    if whole is None or minimal is None:
        return None
    stated = [side.held(name, probe) for name in ("shared", "partial", "specific")]
    shared, *others = (0.0 if one is None else one.there for one in stated)
    # what captions state is facts of these three kinds, and digits; less than this is rounding
    rest = whole.there - (shared + sum(others))
    shortcut = rest if rest > 1e-9 * whole.there else 0.0
    low, high = (whole.there * end / 100 for end in whole.ends)
    return Gap(shared, minimal.there, whole.there, shortcut, (whole.bits, low, high))


@dataclass(frozen=True, eq=False)
class Encoded:
    """One split as it was encoded."""

    collection: Collection  # with records that say facts, codes or both
    images: np.ndarray  # (n_images, d) embeddings
    texts: np.ndarray  # (n_captions, d) embeddings


Splits = tuple[Encoded, Encoded, Encoded]  # train, validation and test


def audit(
    conditions: Mapping[str, Splits],
    probes: Sequence[ProbeName] = ("linear", "mlp"),
    *,
    seed: int = 0,
    most: int = MOST_ROWS,
    bootstrap: Bootstrap | None = None,
    about: dict[str, Any] | None = None,
) -> Audit:
    """Audit the embeddings of both sides under every condition."""
    from diptych.analysis.information.probing import probe

    bootstrap = bootstrap or Bootstrap()
    parts = [one.collection for one in next(iter(conditions.values()))]

    def audited(side: Literal["image", "caption"], splits: Splits) -> Side:
        rows: Any = tuple(np.asarray(one.images if side == "image" else one.texts) for one in splits)
        questions = side_questions(side, [one.collection for one in splits], most)
        probed = {name: probe(name, rows, questions, seed, most) for name in probes}
        kinds = GROUPS["facts" if has_facts(splits[0].collection) else "words"][side]
        groups, single = figures_of(kinds, questions, probed, seed, bootstrap)
        return Side((len(rows[0]), len(rows[1]), len(rows[2])), groups, single, questions.notes)

    return Audit(
        AuditProtocol(
            "facts" if has_facts(parts[0]) else "words",
            {name: PROBES[name] for name in probes},
            most,
            seed,
            bootstrap.samples,
            bootstrap.confidence,
            (parts[0].n_images, parts[1].n_images, parts[2].n_images),
            dict(about or {}),
        ),
        {
            condition: {"image": audited("image", splits), "caption": audited("caption", splits)}
            for condition, splits in conditions.items()
        },
    )


def figures_of(
    names: Iterable[str],
    questions: Questions,
    probed: Mapping[ProbeName, Probed],
    seed: int,
    bootstrap: Bootstrap,
) -> tuple[tuple[GroupFigure, ...], tuple[QuestionFigure, ...]]:
    """Return what probes found of each kind of information, and of each question."""
    from diptych.analysis.information.probing import constant_bits, control_labels, majority

    part = questions.parts["test"]
    there = constant_bits(questions, part.labels)
    control = constant_bits(questions, control_labels(questions, "test", seed))
    kinds = [name for name in names if name in questions.groups and questions.groups[name].any()]
    weights = np.stack([questions.groups[name] for name in kinds])
    tested, trained = (
        (questions.parts[place].labels != UNLABELLED).sum(axis=0) for place in ("test", "train")
    )
    most_frequent = (part.labels == majority(questions)).sum(axis=0) / tested
    shares = {name: given.sum(axis=0) / tested for name, given in questions.groups.items()}
    groups = [GroupFigure(name, {}, {}) for name in kinds]
    single = [
        QuestionFigure(
            key=key,
            classes=questions.n_classes[column],
            rows=(int(trained[column]), int(tested[column])),
            entropy=float(there[:, column].sum() / tested[column]),
            majority=float(most_frequent[column]),
            groups={name: float(share[column]) for name, share in shares.items() if share[column]},
            probes={},
        )
        for column, key in enumerate(questions.keys)
    ]
    for name, found in probed.items():
        kept, left, chance, of_control = (
            np.einsum("nq,gnq->ng", bits, weights)
            for bits in (there, found.bits, control, found.control_bits)
        )
        by_chance = (chance - of_control).sum(axis=0) / chance.sum(axis=0).clip(min=1e-12)
        of_kinds = held_of(kept, left, weights.sum(axis=(1, 2)), part.images, bootstrap)
        for group, held, share in zip(groups, of_kinds, by_chance.tolist(), strict=True):
            group.control[name] = share
            if held is not None:
                group.held[name] = held
        of_questions = held_of(there, found.bits, tested, part.images, bootstrap)
        right, control_right = (one.sum(axis=0) / tested for one in (found.right, found.control_right))
        controls = 1 - found.control_bits.sum(axis=0) / control.sum(axis=0)
        for column, (one, held) in enumerate(zip(single, of_questions, strict=True)):
            assert held is not None  # a labelled question has bits
            figures = (right, control_right, found.by_heart, controls, found.settings)
            one.probes[name] = Probing(held, *(float(given[column]) for given in figures))
    return tuple(groups), tuple(single)
