"""Probing: from rows and questions to what each test row's answer costs in bits, with a probe and without.

A probe is trained on the training rows, its strength chosen on the validation rows, and measured on
the test rows. Its family contains the constant prediction (training frequencies, smoothed): a question whose
every probe does worse than that on the validation rows gets it, and is held to 0 %. So what is said to
be held is V-information in the sense of Xu et al. (A theory of usable information under computational
constraints, ICLR 2020) with "optional ignorance", and bits of one row are its pointwise V-information
(Ethayarajh et al., Understanding dataset difficulty with V-usable information, ICML 2022).

The control task (Hewitt and Liang, Designing and interpreting probes with control tasks, EMNLP 2019)
has the same training rows, settings and answer frequencies, and answers drawn at random per image. Their
words come again in the test set with the same random answer; our test images are new, so a control can
be right by chance alone, and one that is not tells of a leak between splits. How far a probe can
learn answers by heart is its control's accuracy on the *training* rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from diptych.analysis.information.audit_report import GroupFigure, Held, Probing, QuestionFigure, held_of
from diptych.analysis.information.linear import (
    Heads,
    Perceptrons,
    constant_bits,
    control_labels,
    fit_linear,
    majority,
)
from diptych.analysis.information.questions import NOT_ASKED, PLACES, Questions
from diptych.core.context import track
from diptych.core.draws import draw_uniform
from diptych.core.errors import DataError, UnknownNameError
from diptych.metrics.bootstrap import Bootstrap

# Rows made fit for probes: centred, and their directions brought halfway to one spread.
#
# A penalty on a probe's weights makes directions of little variance expensive, and what a contrastive
# loss suppresses is in just those; rows whitened wholly make noise as cheap as signal. Halfway (each
# direction divided by the square root of its deviation) a linear probe finds as much on validation rows
# as with either, or more, and is solved several times faster than with rows as they are. The functions
# that a probe can express are the same in all three.

_LEAST_SHARE = 1e-8
"""A direction with less than this share of the largest variance is rounding error and is left out."""


@dataclass(frozen=True, eq=False)
class HalfWhitening:
    """Fitted on training rows; its rows have a mean square of 1 per direction.

    Attributes:
        mean: (d,) float64.
        directions: (d, r) float64; r is how many directions have any variance, at least 1.
    """

    mean: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> HalfWhitening:
        """Fitted on (n, d) ``rows``."""
        rows = np.asarray(rows, dtype=np.float64)
        mean = rows.mean(axis=0)
        centred = rows - mean
        variances, directions = np.linalg.eigh(centred.T @ centred / len(rows))
        kept = variances > variances[-1] * _LEAST_SHARE
        if variances[-1] <= np.finfo(np.float32).eps ** 2:  # every row is the same
            return cls(mean, np.zeros((rows.shape[1], 1)))
        deviations = np.sqrt(variances[kept])
        # directions / √deviation have variance = deviation; then one factor for all of them
        return cls(mean, directions[:, kept] / np.sqrt(deviations * deviations.mean()))

    def __call__(self, rows: np.ndarray) -> Tensor:
        """(n, d) rows to (n, r) float32."""
        return torch.from_numpy(((rows - self.mean) @ self.directions).astype(np.float32))


# How strongly the linear probe is held back: per question, by the validation rows.
#
# The path goes from a strong penalty to a weak one, each solution the start of the next. A question
# leaves it when two penalties in a row did not lower its cross-entropy on the validation rows, so that
# the slow, weak end is walked by the questions that need it.

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)

_PATIENCE = 2


def linear_logits(rows: Tensor, weights: Tensor) -> Tensor:
    """(n, d) rows and (d + 1, width) weights, the bias last, to (n, width)."""
    return torch.addmm(weights[-1], rows, weights[:-1])


def cross_entropy(rows: Tensor, labels: Tensor, heads: Heads, weights: Tensor) -> Tensor:
    """(q,) mean over the rows that are asked, in nats."""
    found = heads.of_labels(heads.log_probabilities(linear_logits(rows, weights)), labels)
    return -found.sum(dim=0) / (labels >= 0).sum(dim=0).clamp(min=1)


def linear_path(
    rows: Tensor, labels: Tensor, validation_rows: Tensor, validation_labels: Tensor, heads: Heads
) -> tuple[Tensor, Tensor]:
    """The weights of each question at the penalty that suits the validation rows best.

    Args:
        rows, labels: (n, d) and (n, q) of the training rows.

    Returns:
        (d + 1, width) weights, and the (q,) penalties chosen.
    """
    n_questions = len(heads.n_classes)
    kept = torch.zeros(rows.shape[1] + 1, heads.width)
    best = torch.full((n_questions,), torch.inf)
    chosen = torch.zeros(n_questions)
    in_vain = torch.zeros(n_questions, dtype=torch.int64)
    on_path = torch.arange(n_questions)
    weights = kept.clone()
    for penalty in PENALTIES:
        part, columns = heads.subset(on_path.tolist())
        found = fit_linear(
            rows, labels[:, on_path], part, torch.full((len(on_path),), penalty), weights[:, columns]
        )
        weights[:, columns] = found
        cost = cross_entropy(validation_rows, validation_labels[:, on_path], part, found)
        better = cost < best[on_path]
        best[on_path[better]] = cost[better]
        chosen[on_path[better]] = penalty
        in_vain[on_path] = torch.where(better, 0, in_vain[on_path] + 1)
        mine = columns[better[part.question]]
        kept[:, mine] = weights[:, mine]
        on_path = on_path[in_vain[on_path] < _PATIENCE]
        if not len(on_path):
            break
    return kept, chosen


ProbeName = Literal["linear", "mlp"]

PROBES: dict[ProbeName, str] = {
    "linear": "softmax regression, L2 penalty chosen on validation rows",
    "mlp": "one hidden layer of 64 rectified units, stopped on validation rows",
}
"""The kinds of probe and what they are."""

_ROWS = int.from_bytes(b"rows")

HIDDEN, EPOCHS = 64, 30
"""Of the perceptron: units per question, and epochs at most."""

MOST_ROWS = 4000
"""Training rows per question, unless another number is given."""

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""(n, d) rows of train, validation and test."""


@dataclass(frozen=True, eq=False)
class Probed:
    """What one kind of probe gives on the test rows.

    Attributes:
        bits: (n_test, q) −log₂ of the probability of the right answer; 0 where not asked.
        right: (n_test, q) whether the most probable answer is the right one.
        control_bits: (n_test, q) the same of the control task, whose answers are others.
        control_right: (n_test, q).
        by_heart: (q,) accuracy of the control's probe on its training rows.
        settings: (q,) the penalty or the number of epochs; 0 for the constant prediction.
    """

    bits: np.ndarray
    right: np.ndarray
    control_bits: np.ndarray
    control_right: np.ndarray
    by_heart: np.ndarray
    settings: np.ndarray


def probe(name: ProbeName, rows: Rows, questions: Questions, seed: int = 0, most: int = MOST_ROWS) -> Probed:
    """Train one kind of probe on every question, and on its control task.

    Questions that are asked of the same training rows are trained together.

    Args:
        rows: (n, d) of train, validation and test, as long as the questions' parts.
    """
    if name not in PROBES:
        raise UnknownNameError("probe", name, PROBES)
    for place, given in zip(PLACES, rows, strict=True):
        if len(questions.parts[place].images) != len(given):
            asked = len(questions.parts[place].images)
            raise DataError(f"{len(given):,} {place} rows for questions about {asked:,}")
    scaled = HalfWhitening.of(rows[0])
    inputs = [scaled(given) for given in rows]
    shape = questions.parts["test"].labels.shape
    found = Probed(
        constant_bits(questions, questions.parts["test"].labels),
        np.zeros(shape, dtype=bool),
        constant_bits(questions, control_labels(questions, "test", seed)),
        np.zeros(shape, dtype=bool),
        np.zeros(shape[1]),
        np.zeros(shape[1]),
    )
    answers = {place: control_labels(questions, place, seed) for place in PLACES}
    for columns, chosen in track(_together(questions, seed, most), f"training {name} probes", unit="groups"):
        part = questions.subset(columns, chosen)
        used = [inputs[0][torch.from_numpy(chosen)], *inputs[1:]]
        own = [torch.from_numpy(part.parts[place].labels) for place in PLACES]
        drawn = [torch.from_numpy(answers[place][:, columns]) for place in PLACES]
        drawn[0] = drawn[0][torch.from_numpy(chosen)]
        fitted, control, settings = (_linear if name == "linear" else _perceptrons)(
            used, own, drawn, part, seed
        )
        found.settings[columns] = settings
        for bits, right, probed, labels in (
            (found.bits, found.right, fitted, own[2]),
            (found.control_bits, found.control_right, control, drawn[2]),
        ):
            cost, correct = _measured(probed, used[2], labels, part, settings == 0)
            # a constant prediction costs what it costs without a probe, by the frequencies of all rows
            bits[:, columns] = np.where(settings == 0, bits[:, columns], cost)
            right[:, columns] = correct
        _, by_heart = _measured(control, used[0], drawn[0], part, settings == 0)
        found.by_heart[columns] = by_heart.mean(axis=0)
    return found


def _together(questions: Questions, seed: int, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Groups of questions that the same training rows are asked: their columns, and the rows."""
    groups: dict[bytes, list[int]] = {}
    asked = questions.parts["train"].labels != NOT_ASKED
    for column in range(len(questions.keys)):
        groups.setdefault(np.packbits(asked[:, column]).tobytes(), []).append(column)
    found = []
    for columns in groups.values():
        rows = np.flatnonzero(asked[:, columns[0]])
        if len(rows) > most:
            rows = np.sort(rows[np.argsort(draw_uniform(seed, _ROWS, rows), kind="stable")[:most]])
        found.append((np.array(columns), rows))
    return found


Fitted = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(n, d) rows and (n, q) labels to (n, q) log probabilities of the right answers and (n, q) answers."""


def _linear(
    inputs: Sequence[Tensor], own: Sequence[Tensor], drawn: Sequence[Tensor], questions: Questions, seed: int
) -> tuple[Fitted, Fitted, np.ndarray]:
    heads = Heads(questions.n_classes)
    weights, penalties = linear_path(inputs[0], own[0], inputs[1], own[1], heads)
    constant = cross_entropy(inputs[1], own[1], heads, weights) >= _constant_nats(questions)
    control = fit_linear(inputs[0], drawn[0], heads, penalties)

    def fitted(given: Tensor) -> Fitted:
        def measure(rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
            found = heads.log_probabilities(linear_logits(rows, given))
            return heads.of_labels(found, labels), heads.most_probable(found)

        return measure

    return fitted(weights), fitted(control), torch.where(constant, 0.0, penalties).numpy()


def _perceptrons(
    inputs: Sequence[Tensor], own: Sequence[Tensor], drawn: Sequence[Tensor], questions: Questions, seed: int
) -> tuple[Fitted, Fitted, np.ndarray]:
    def fresh() -> Perceptrons:
        return Perceptrons(questions.keys, questions.n_classes, inputs[0].shape[1], HIDDEN, seed)

    found, control = fresh(), fresh()
    epochs = found.fit(inputs[0], own[0], inputs[1], own[1], EPOCHS)
    constant = found.cross_entropy(inputs[1], own[1]) >= _constant_nats(questions)
    control.fit(inputs[0], drawn[0], inputs[1], drawn[1], epochs)
    return found.measure, control.measure, torch.where(constant, 0, epochs).numpy().astype(np.float64)


def _constant_nats(questions: Questions) -> Tensor:
    labels = questions.parts["validation"].labels
    bits = constant_bits(questions, labels).sum(axis=0) / (labels != NOT_ASKED).sum(axis=0)
    return torch.from_numpy(bits * np.log(2)).float()


def _measured(
    fitted: Fitted, rows: Tensor, labels: Tensor, questions: Questions, constant: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(n, q) bits of the right answers and whether they are the most probable ones, where asked."""
    log_probabilities, answers = fitted(rows, labels)
    given = labels.numpy()
    predicted = np.where(constant, majority(questions), answers.numpy())
    bits = -log_probabilities.numpy().astype(np.float64) / np.log(2)
    return bits, (given == predicted) & (given != NOT_ASKED)


def group_figures(
    names: Iterable[str],
    questions: Questions,
    probed: Mapping[ProbeName, Probed],
    seed: int,
    bootstrap: Bootstrap,
) -> tuple[GroupFigure, ...]:
    """What probes found of each kind of information that any test answer belongs to."""
    given = {name: questions.groups[name] for name in names if name in questions.groups}
    weights = np.stack(list(given.values()))
    answers = weights.sum(axis=(1, 2))
    there, of_control = _without(questions, seed)
    by_probe = {
        probe: (
            held_of(
                _sums(there, weights),
                _sums(found.bits, weights),
                answers,
                questions.parts["test"].images,
                bootstrap,
            ),
            _sums(of_control - found.control_bits, weights).sum(axis=0)
            / _sums(of_control, weights).sum(axis=0).clip(min=1e-12),
        )
        for probe, found in probed.items()
    }
    return tuple(
        GroupFigure(
            name,
            {probe: found for probe, (held, _) in by_probe.items() if (found := held[number]) is not None},
            {probe: float(control[number]) for probe, (_, control) in by_probe.items()},
        )
        for number, name in enumerate(given)
        if answers[number]
    )


def question_figures(
    questions: Questions, probed: Mapping[ProbeName, Probed], seed: int, bootstrap: Bootstrap
) -> tuple[QuestionFigure, ...]:
    """What probes found of each question; arguments as of :func:`group_figures`."""
    labels = questions.parts["test"].labels
    asked = (labels != NOT_ASKED).sum(axis=0)
    trained = (questions.parts["train"].labels != NOT_ASKED).sum(axis=0)
    there, of_control = _without(questions, seed)
    most_frequent = (labels == majority(questions)).sum(axis=0) / asked
    held: dict[ProbeName, list[Held]] = {
        # none is None: a question that is asked has bits
        probe: [
            one for one in held_of(there, found.bits, asked, questions.parts["test"].images, bootstrap) if one
        ]
        for probe, found in probed.items()
    }
    return tuple(
        QuestionFigure(
            key=key,
            classes=questions.n_classes[column],
            rows=(int(trained[column]), int(asked[column])),
            entropy=float(there[:, column].sum() / asked[column]),
            majority=float(most_frequent[column]),
            groups={
                name: float(weights[:, column].sum() / asked[column])
                for name, weights in questions.groups.items()
                if weights[:, column].any()
            },
            probes={
                probe: Probing(
                    held=held[probe][column],
                    accuracy=float(found.right[:, column].sum() / asked[column]),
                    control_accuracy=float(found.control_right[:, column].sum() / asked[column]),
                    by_heart=float(found.by_heart[column]),
                    control=float(1 - found.control_bits[:, column].sum() / of_control[:, column].sum()),
                    setting=float(found.settings[column]),
                )
                for probe, found in probed.items()
            },
        )
        for column, key in enumerate(questions.keys)
    )


def _without(questions: Questions, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, q) bits of the test answers without a probe, and of those of the control task."""
    control = control_labels(questions, "test", seed)
    return constant_bits(questions, questions.parts["test"].labels), constant_bits(questions, control)


def _sums(bits: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, q) bits and (groups, n, q) weights to (n, groups)."""
    sums: np.ndarray = np.einsum("nq,gnq->ng", bits, weights)
    return sums
