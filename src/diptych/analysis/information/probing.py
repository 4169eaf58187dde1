"""Probing: from rows and questions to what each test row's answer costs in bits, with a probe and without.

A probe's family contains the constant prediction (training frequencies, smoothed): a question whose every probe
does worse than that on the validation rows gets it, and is held to 0 %. So what is said to be held is
V-information in the sense of Xu et al. (A theory of usable information under computational constraints, ICLR
2020) with "optional ignorance", and bits of one row are its pointwise V-information (Ethayarajh et al., ICML
2022).

The control task (Hewitt and Liang, Designing and interpreting probes with control tasks, EMNLP 2019) has the same
training rows, settings and answer frequencies, and answers drawn at random per image. Our test images are new, so
a control can be right by chance alone, and one that is not tells of a leak between splits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from diptych.analysis.information.probes import Perceptrons, Probes, Regressions, question_number
from diptych.analysis.information.questions import NOT_ASKED, PLACES, Place, Questions
from diptych.core.context import track
from diptych.core.draws import draw_uniform
from diptych.core.errors import DataError, UnknownNameError

# Rows made fit for probes: centred, and their directions brought halfway to one spread.
#
# A penalty on a probe's weights makes directions of little variance expensive, and what a contrastive loss suppresses
# is in just those; rows whitened wholly make noise as cheap as signal. Halfway (each direction divided by the square
# root of its deviation) a linear probe finds as much as with either, or more, and is solved several times faster.

# A direction with less than this share of the largest variance is rounding error and is left out
_LEAST_SHARE = 1e-8


def _half_whitening(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a mean, (d,), and (d, r) directions, of which rows have a mean square of 1; r is at least 1."""
    rows = np.asarray(rows, dtype=np.float64)
    mean = rows.mean(axis=0)
    centred = rows - mean
    variances, directions = np.linalg.eigh(centred.T @ centred / len(rows))
    kept = variances > variances[-1] * _LEAST_SHARE
    if variances[-1] <= np.finfo(np.float32).eps ** 2:  # every row is the same
        return mean, np.zeros((rows.shape[1], 1))
    deviations = np.sqrt(variances[kept])
    # directions / √deviation have variance = deviation; then one factor for all of them
    return mean, directions[:, kept] / np.sqrt(deviations * deviations.mean())


ProbeName = Literal["linear", "mlp"]

PROBES: dict[ProbeName, str] = {
    "linear": "softmax regression, L2 penalty chosen on validation rows",
    "mlp": "one hidden layer of 64 rectified units, stopped on validation rows",
}  # the kinds of probe and what they are

_ROWS, _CONTROL = (int.from_bytes(word) for word in (b"rows", b"control"))
MOST_ROWS = 4000  # training rows per question, unless another number is given
SMOOTHINGS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # counts added to every class of a constant prediction


def constant_frequencies(questions: Questions) -> list[np.ndarray]:
    """Return per question training frequencies, smoothed as suits the validation rows.

    With few training rows a probe that only corrects plain frequencies would seem to have found something.
    """
    found = []
    for column, n_classes in enumerate(questions.n_classes):
        counts, judged = (
            np.bincount(given[given >= 0], minlength=n_classes)
            for given in (questions.parts[place].labels[:, column] for place in ("train", "validation"))
        )
        smoothed = [(counts + extra) / (counts + extra).sum() for extra in SMOOTHINGS]
        found.append(min(smoothed, key=lambda shares: -float(judged @ np.log(shares))))
    return found


def constant_bits(questions: Questions, labels: np.ndarray) -> np.ndarray:
    """(n, q) −log₂ of the constant prediction of each row's answer; 0 where not asked."""
    bits = np.zeros(labels.shape)
    for column, shares in enumerate(constant_frequencies(questions)):
        cost = np.append(-np.log2(shares), 0.0)  # the last is for NOT_ASKED = -1
        bits[:, column] = cost[labels[:, column]]
    return bits


def control_labels(questions: Questions, place: Place, seed: int) -> np.ndarray:
    """(n, q) random answers of the same training frequencies, one per image and question."""
    part = questions.parts[place]
    labels = np.full(part.labels.shape, NOT_ASKED, dtype=np.int64)
    for column, (key, n_classes) in enumerate(zip(questions.keys, questions.n_classes, strict=True)):
        given = questions.parts["train"].labels[:, column]
        counts = np.bincount(given[given >= 0], minlength=n_classes)
        drawn = draw_uniform(seed, _CONTROL, PLACES.index(place), question_number(key), part.images)
        answers = np.searchsorted(np.cumsum(counts) / counts.sum(), drawn, side="right")
        asked = part.labels[:, column] != NOT_ASKED
        labels[asked, column] = np.minimum(answers, n_classes - 1)[asked]
    return labels


def majority(questions: Questions) -> np.ndarray:
    """(q,) the most frequent answer of the training rows."""
    labels = questions.parts["train"].labels
    return np.array([np.bincount(given[given >= 0]).argmax() for given in labels.T], dtype=np.int64)


Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # (n, d) rows of train, validation and test


@dataclass(frozen=True, eq=False)
class Probed:
    bits: np.ndarray  # (n_test, q) −log₂ of the probability of the right answer; 0 where not asked
    right: np.ndarray  # (n_test, q) whether the most probable answer is the right one
    control_bits: np.ndarray  # the same of the control task, whose answers are others
    control_right: np.ndarray
    by_heart: np.ndarray  # (q,) accuracy of the control's probe on its training rows
    settings: np.ndarray  # (q,) the penalty or the number of epochs; 0 for the constant prediction


def probe(name: ProbeName, rows: Rows, questions: Questions, seed: int = 0, most: int = MOST_ROWS) -> Probed:
    """Train one kind of probe on every question, and on its control task; together on the same training rows."""
    if name not in PROBES:
        raise UnknownNameError("probe", name, PROBES)
    for place, given in zip(PLACES, rows, strict=True):
        if (asked := len(questions.parts[place].images)) != len(given):
            raise DataError(f"{len(given):,} {place} rows for questions about {asked:,}")
    mean, directions = _half_whitening(rows[0])
    inputs = [torch.from_numpy(((given - mean) @ directions).astype(np.float32)) for given in rows]
    answers = {place: control_labels(questions, place, seed) for place in PLACES}
    shape = questions.parts["test"].labels.shape
    found = Probed(
        constant_bits(questions, questions.parts["test"].labels),
        np.zeros(shape, dtype=bool),
        constant_bits(questions, answers["test"]),
        np.zeros(shape, dtype=bool),
        np.zeros(shape[1]),
        np.zeros(shape[1]),
    )
    kind = Regressions if name == "linear" else Perceptrons
    groups = _together(questions, seed, most, by_classes=name == "linear")
    for columns, chosen in track(groups, f"training {name} probes", unit="groups"):
        part = questions.subset(columns, chosen)
        used = [inputs[0][torch.from_numpy(chosen)], *inputs[1:]]
        own = [torch.from_numpy(part.parts[place].labels) for place in PLACES]
        drawn = [torch.from_numpy(answers[place][:, columns]) for place in PLACES]
        drawn[0] = drawn[0][torch.from_numpy(chosen)]
        fitted, control = (kind(part.keys, part.n_classes, used[0].shape[1], seed) for _ in range(2))
        chosen_settings = fitted.fit((used[0], own[0]), (used[1], own[1]))
        validation = part.parts["validation"].labels
        bits = constant_bits(part, validation).sum(axis=0) / (validation != NOT_ASKED).sum(axis=0)
        constant = fitted.cross_entropy(used[1], own[1]) >= torch.from_numpy(bits * np.log(2)).float()
        control.fit((used[0], drawn[0]), (used[1], drawn[1]), chosen_settings)
        found.settings[columns] = settings = torch.where(constant, 0, chosen_settings).numpy()
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


def _together(
    questions: Questions, seed: int, most: int, by_classes: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return groups of questions that the same training rows are asked: their columns, and the rows."""
    groups: dict[tuple[bytes, int], list[int]] = {}
    asked = questions.parts["train"].labels != NOT_ASKED
    for column, n_classes in enumerate(questions.n_classes):
        key = asked[:, column].tobytes(), n_classes if by_classes else 0
        groups.setdefault(key, []).append(column)
    found = []
    for columns in groups.values():
        rows = np.flatnonzero(asked[:, columns[0]])
        if len(rows) > most:
            rows = np.sort(rows[np.argsort(draw_uniform(seed, _ROWS, rows), kind="stable")[:most]])
        found.append((np.array(columns), rows))
    return found


def _measured(
    fitted: Probes, rows: Tensor, labels: Tensor, questions: Questions, constant: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(n, q) bits of the right answers and whether they are the most probable ones, where asked."""
    log_probabilities, answers = fitted.measure(rows, labels)
    given = labels.numpy()
    predicted = np.where(constant, majority(questions), answers.numpy())
    bits = -log_probabilities.numpy().astype(np.float64) / np.log(2)
    return bits, (given == predicted) & (given != NOT_ASKED)
