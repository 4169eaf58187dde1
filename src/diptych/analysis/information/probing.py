"""Probing: from rows and questions to what each test row's answer costs in bits, with a probe and without.

A probe's family contains the constant prediction (training frequencies, smoothed): a question whose every probe does
worse on the validation rows gets it, and is held to 0 %. So held is V-information in the sense of Xu et al. (A theory
of usable information under computational constraints, ICLR 2020) with "optional ignorance"; bits of one row are its
pointwise V-information (Ethayarajh et al., ICML 2022). The control task (Hewitt and Liang, Designing and interpreting
probes with control tasks, EMNLP 2019) has the same training rows, settings and answer frequencies, and answers drawn
at random per image: test images are new, so one that is right more often than by chance tells of a leak between splits.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from diptych.analysis.information.questions import (
    MOST_ROWS,
    PROBES,
    SPLIT_NAMES,
    UNLABELLED,
    ProbeName,
    Questions,
    SplitName,
)
from diptych.core.context import track
from diptych.core.draws import draw_uniform
from diptych.core.errors import UnknownNameError
from diptych.core.fingerprint import fingerprint

# (n, d) rows, and (n, q) labels that are negative where a row has no label
LabelledRows = tuple[Tensor, Tensor]
_BLOCK = 2048


class Probes(ABC):
    """Probes of questions with the same labelled rows, fitted together."""

    @abstractmethod
    def log_probabilities(self, rows: Tensor) -> Tensor:
        """(n, d) rows to (n, q, most classes) log probabilities."""

    @abstractmethod
    def fit(self, train: LabelledRows, validation: LabelledRows, settings: Tensor | None = None) -> Tensor:
        """Fit each question with its setting, (q,), or the best one on validation rows; return them."""

    def measure(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return (n, q) log probabilities of the right answers, 0 where unlabelled, and (n, q) answers."""
        costs, answers = [], []
        with torch.no_grad():
            for part, mine in zip(rows.split(_BLOCK), labels.split(_BLOCK), strict=True):  # type: ignore[no-untyped-call]
                found = self.log_probabilities(part)
                costs.append(_of_labels(found, mine))
                answers.append(found.argmax(dim=2))
        return torch.cat(costs), torch.cat(answers)

    def cross_entropy(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Return (q,) the mean over the rows that have a label, in nats."""
        return -self.measure(rows, labels)[0].sum(dim=0) / (labels >= 0).sum(dim=0).clamp(min=1)


def _of_labels(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """Return (n, q) of (n, q, classes) by (n, q) labels: of the right class, 0 where unlabelled."""
    picked = log_probabilities.gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
    return picked.masked_fill(labels < 0, 0.0)


def _mean_loss(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    each = _of_labels(log_probabilities, labels).sum(dim=0) / (labels >= 0).sum(dim=0).clamp(min=1)
    return -each.sum()


# How strongly the linear probe is held back: per question, by the validation rows.
#
# The path leads from a strong penalty to a weak one, each solution the start of the next. A question
# leaves it when two penalties in a row did not lower its cross-entropy on the validation rows, so that
# the slow, weak end is walked by the questions that need it.

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
_IN_VAIN = 2


class Regressions(Probes):
    """Soft-max regressions of questions with as many classes each; settings are penalties.

    The loss of a question is mean cross-entropy (nats) + penalty/2 · ‖weights‖²; the bias is not penalised.
    """

    def __init__(self, names: Sequence[str], n_classes: Sequence[int], width: int, seed: int = 0) -> None:
        self.weights = torch.zeros(width + 1, len(n_classes), max(n_classes))  # the bias last

    def log_probabilities(self, rows: Tensor) -> Tensor:
        bias, weights = self.weights[-1].reshape(-1), self.weights[:-1].reshape(rows.shape[1], -1)
        logits = torch.addmm(bias, rows, weights).view(len(rows), *self.weights.shape[1:])
        return functional.log_softmax(logits, dim=2)

    def fit(self, train: LabelledRows, validation: LabelledRows, settings: Tensor | None = None) -> Tensor:
        if settings is not None:
            self.minimise(*train, settings)
            return settings
        n_questions = self.weights.shape[1]
        best, chosen = torch.full((n_questions,), torch.inf), torch.zeros(n_questions)
        in_vain = torch.zeros(n_questions, dtype=torch.int64)
        kept, part = self.weights.clone(), Regressions((), (1,), 0)
        part.weights, on_path = self.weights, torch.arange(n_questions)
        for penalty in PENALTIES:
            part.minimise(train[0], train[1][:, on_path], torch.full((len(on_path),), penalty))
            cost = part.cross_entropy(validation[0], validation[1][:, on_path])
            better = cost < best[on_path]
            mine = on_path[better]
            best[mine], chosen[mine], kept[:, mine] = cost[better], penalty, part.weights[:, better]
            in_vain[on_path] = torch.where(better, 0, in_vain[on_path] + 1)
            left = in_vain[on_path] < _IN_VAIN
            part.weights, on_path = part.weights[:, left], on_path[left]
            if not len(on_path):
                break
        self.weights = kept
        return chosen

    def minimise(self, rows: Tensor, labels: Tensor, penalty: Tensor, flat: float = 3e-4) -> None:
        """Go from the weights there are to where no slope is above ``flat``."""
        weights = self.weights = self.weights.detach().clone().requires_grad_()
        options = {"max_iter": 500, "history_size": 8, "line_search_fn": "strong_wolfe"}
        optimizer = torch.optim.LBFGS([weights], tolerance_grad=flat, **options)  # type: ignore[arg-type]

        def loss() -> Tensor:
            optimizer.zero_grad()
            squares = weights[:-1].square().sum(dim=(0, 2))
            found = (penalty / 2 * squares).sum() + _mean_loss(self.log_probabilities(rows), labels)
            found.backward()  # type: ignore[no-untyped-call]
            return found

        optimizer.step(loss)  # type: ignore[no-untyped-call]
        self.weights = weights.detach()


_FIRST, _SECOND, _ORDER = (int.from_bytes(word) for word in (b"first", b"second", b"order"))
_LEARNING_RATE, _WEIGHT_DECAY, _BATCH, _PATIENCE = 3e-3, 1.0, 256, 8
HIDDEN, EPOCHS = 64, 30  # units per question, and epochs at most


def question_number(name: str) -> int:
    return int(fingerprint(name), 16)


class Perceptrons(Probes):
    """(q) networks: :data:`HIDDEN` rectified units each, logits padded to the most classes; settings are epochs."""

    def __init__(self, names: Sequence[str], n_classes: Sequence[int], width: int, seed: int) -> None:
        self.seed, self.questions, most = seed, len(names), max(n_classes)
        numbers = [question_number(name) for name in names]

        def uniform(purpose: int, rows: int, columns: int, bound: float) -> Tensor:
            drawn = [draw_uniform(seed, purpose, number, np.arange(rows * columns)) for number in numbers]
            shaped = np.stack(drawn).reshape(-1, rows, columns)
            return torch.from_numpy(((2 * shaped - 1) * bound).astype(np.float32))

        first = uniform(_FIRST, width, HIDDEN, math.sqrt(6 / width))
        # the questions' first layers side by side, one product for all: (d, q · hidden) and (q · hidden,)
        self.weights = [
            first.permute(1, 0, 2).reshape(width, -1).contiguous(),
            torch.zeros(len(names) * HIDDEN),
            uniform(_SECOND, HIDDEN, most, math.sqrt(1 / HIDDEN)),
            torch.zeros(len(names), 1, most),
        ]
        self.impossible = torch.arange(most)[None, :] >= torch.tensor(n_classes)[:, None]

    def log_probabilities(self, rows: Tensor) -> Tensor:
        first, bias, second, second_bias = self.weights
        hidden = torch.addmm(bias, rows, first).relu_()
        units = hidden.view(len(rows), self.questions, HIDDEN).transpose(0, 1)
        logits = torch.baddbmm(second_bias, units, second).masked_fill(self.impossible[:, None], -torch.inf)
        return functional.log_softmax(logits, dim=2).transpose(0, 1)

    def fit(self, train: LabelledRows, validation: LabelledRows, settings: Tensor | None = None) -> Tensor:
        """Train with AdamW; it ends early when several epochs helped no question."""
        rows, labels = train
        # of few rows, more and smaller batches: at least eight steps an epoch
        batch = max(16, min(_BATCH, len(rows) // 8))
        kept = [one.clone() for one in self.weights]
        best = torch.full((self.questions,), torch.inf)
        best_epoch = torch.zeros(self.questions, dtype=torch.int64)
        optimizer = torch.optim.AdamW(
            [one.requires_grad_() for one in self.weights],
            lr=_LEARNING_RATE,
            weight_decay=_WEIGHT_DECAY,
            foreach=True,
        )
        for epoch in range(1, 1 + (EPOCHS if settings is None else int(settings.max()))):
            order = torch.from_numpy(np.argsort(draw_uniform(self.seed, _ORDER, epoch, np.arange(len(rows)))))
            for drawn in order.split(batch):  # type: ignore[no-untyped-call]
                loss = _mean_loss(self.log_probabilities(rows[drawn]), labels[drawn])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if settings is None:
                found = self.cross_entropy(*validation)
                better = found < best
                best = torch.where(better, found, best)
            else:
                better = torch.eq(settings, epoch)
            best_epoch[better] = epoch
            units = better.repeat_interleave(HIDDEN)
            for one, place, where in zip(kept, self.weights, (units, units, better, better), strict=True):
                index = (..., where) if one is kept[0] else (where,)
                one[index] = place.detach()[index]
            if settings is None and epoch - int(best_epoch.max()) >= _PATIENCE:
                break
        self.weights = kept
        return best_epoch


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


_ROWS, _CONTROL = (int.from_bytes(word) for word in (b"rows", b"control"))
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
    """Return (n, q) −log₂ of the constant prediction of each row's answer; 0 where unlabelled."""
    bits = np.zeros(labels.shape)
    for column, shares in enumerate(constant_frequencies(questions)):
        cost = np.append(-np.log2(shares), 0.0)  # the last is for UNLABELLED = -1
        bits[:, column] = cost[labels[:, column]]
    return bits


def control_labels(questions: Questions, place: SplitName, seed: int) -> np.ndarray:
    """Return (n, q) random answers of the same training frequencies, one per image and question."""
    part = questions.parts[place]
    labels = np.full(part.labels.shape, UNLABELLED, dtype=np.int64)
    for column, (key, n_classes) in enumerate(zip(questions.keys, questions.n_classes, strict=True)):
        given = questions.parts["train"].labels[:, column]
        counts = np.bincount(given[given >= 0], minlength=n_classes)
        drawn = draw_uniform(seed, _CONTROL, SPLIT_NAMES.index(place), question_number(key), part.images)
        answers = np.searchsorted(np.cumsum(counts) / counts.sum(), drawn, side="right")
        labelled = part.labels[:, column] != UNLABELLED
        labels[labelled, column] = np.minimum(answers, n_classes - 1)[labelled]
    return labels


def majority(questions: Questions) -> np.ndarray:
    """Return (q,) the most frequent answer of the training rows."""
    labels = questions.parts["train"].labels
    return np.array([np.bincount(given[given >= 0]).argmax() for given in labels.T], dtype=np.int64)


Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # (n, d) rows of train, validation and test


@dataclass(frozen=True, eq=False)
class Probed:
    bits: np.ndarray  # (n_test, q) −log₂ of the probability of the right answer; 0 where unlabelled
    right: np.ndarray  # (n_test, q) whether the most probable answer is the right one
    control_bits: np.ndarray  # the same of the control task, whose answers are others
    control_right: np.ndarray
    by_heart: np.ndarray  # (q,) accuracy of the control's probe on its training rows
    settings: np.ndarray  # (q,) the penalty or the number of epochs; 0 for the constant prediction


def probe(name: ProbeName, rows: Rows, questions: Questions, seed: int = 0, most: int = MOST_ROWS) -> Probed:
    """Train one kind of probe on every question, and on its control task; together on the same training rows."""
    if name not in PROBES:
        raise UnknownNameError("probe", name, PROBES)
    mean, directions = _half_whitening(rows[0])
    inputs = [torch.from_numpy(((given - mean) @ directions).astype(np.float32)) for given in rows]
    answers = {place: control_labels(questions, place, seed) for place in SPLIT_NAMES}
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
        own = [torch.from_numpy(part.parts[place].labels) for place in SPLIT_NAMES]
        drawn = [torch.from_numpy(answers[place][:, columns]) for place in SPLIT_NAMES]
        drawn[0] = drawn[0][torch.from_numpy(chosen)]
        fitted, control = (kind(part.keys, part.n_classes, used[0].shape[1], seed) for _ in range(2))
        chosen_settings = fitted.fit((used[0], own[0]), (used[1], own[1]))
        validation = part.parts["validation"].labels
        bits = constant_bits(part, validation).sum(axis=0) / (validation != UNLABELLED).sum(axis=0)
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
    """Return groups of questions with the same labelled training rows: their columns, and the rows."""
    groups: dict[tuple[bytes, int], list[int]] = {}
    labelled = questions.parts["train"].labels != UNLABELLED
    for column, n_classes in enumerate(questions.n_classes):
        key = labelled[:, column].tobytes(), n_classes if by_classes else 0
        groups.setdefault(key, []).append(column)
    found = []
    for columns in groups.values():
        rows = np.flatnonzero(labelled[:, columns[0]])
        if len(rows) > most:
            rows = np.sort(rows[np.argsort(draw_uniform(seed, _ROWS, rows), kind="stable")[:most]])
        found.append((np.array(columns), rows))
    return found


def _measured(
    fitted: Probes, rows: Tensor, labels: Tensor, questions: Questions, constant: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, q) bits of the right answers and whether they are the most probable ones, where labelled."""
    log_probabilities, answers = fitted.measure(rows, labels)
    given = labels.numpy()
    predicted = np.where(constant, majority(questions), answers.numpy())
    bits = -log_probabilities.numpy().astype(np.float64) / np.log(2)
    return bits, (given == predicted) & (given != UNLABELLED)
