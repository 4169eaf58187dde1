"""Probes: linear, perceptron, and the constant ones that they are compared with."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from diptych.analysis.information.questions import NOT_ASKED, PLACES, Place, Questions
from diptych.core.draws import draw_uniform
from diptych.core.fingerprint import fingerprint

_MEMORY = 8
_HALVINGS = 12
_ARMIJO = 1e-4
_FLAT = 1e-12
_FIRST_STEP = 1.0


class Heads:
    """How the logits of questions with different numbers of classes lie side by side.

    Questions with the same number of classes form one block, so that a soft-max is one call per block
    and nothing is padded.
    """

    def __init__(self, n_classes: Sequence[int]) -> None:
        self.n_classes = tuple(n_classes)
        self.blocks: list[tuple[int, slice, list[int]]] = []
        start = 0
        for size in sorted(set(self.n_classes)):
            questions = [number for number, n in enumerate(self.n_classes) if n == size]
            self.blocks.append((size, slice(start, start + size * len(questions)), questions))
            start += size * len(questions)
        self.width = start
        self.question = torch.empty(start, dtype=torch.int64)
        for size, columns, questions in self.blocks:
            self.question[columns] = torch.tensor(questions).repeat_interleave(size)

    def summed(self, values: Tensor) -> Tensor:
        """(width,) values, one per column, to (q,): their sum over each question's columns."""
        return values.new_zeros(len(self.n_classes)).index_add_(0, self.question, values)

    def subset(self, questions: Sequence[int]) -> tuple[Heads, Tensor]:
        """The heads of some questions, and where the columns of theirs are among all."""
        part = Heads([self.n_classes[number] for number in questions])
        columns = torch.empty(part.width, dtype=torch.int64)
        for size, place, numbers in part.blocks:
            starts = [int((self.question == questions[number]).nonzero()[0]) for number in numbers]
            columns[place] = (torch.tensor(starts)[:, None] + torch.arange(size)).view(-1)
        return part, columns

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """(n, width) logits to log probabilities, of the same shape."""
        out = torch.empty_like(logits)
        for size, columns, questions in self.blocks:
            block = logits[:, columns].view(-1, len(questions), size)
            out[:, columns] = functional.log_softmax(block, dim=2).view(-1, size * len(questions))
        return out

    def of_labels(self, values: Tensor, labels: Tensor) -> Tensor:
        """(n, width) values and (n, q) labels to (n, q): the value of the right class, 0 where not asked."""
        out = values.new_zeros(labels.shape)
        for size, columns, questions in self.blocks:
            block = values[:, columns].view(-1, len(questions), size)
            mine = labels[:, questions]
            picked = block.gather(2, mine.clamp(min=0)[:, :, None])[:, :, 0]
            out[:, questions] = picked.masked_fill(mine < 0, 0.0)
        return out

    def most_probable(self, values: Tensor) -> Tensor:
        """(n, width) values to (n, q) class numbers."""
        out = torch.empty((len(values), len(self.n_classes)), dtype=torch.int64)
        for size, columns, questions in self.blocks:
            out[:, questions] = values[:, columns].view(-1, len(questions), size).argmax(dim=2)
        return out

    def spread(self, values: Tensor) -> Tensor:
        """(n, q) values to (n, width): each question's value in all of its columns."""
        return values[:, self.question]

    def shares(self, labels: Tensor) -> Tensor:
        """(n, q) labels to (n, width): 1 / (rows asked) at the right class, 0 elsewhere."""
        out = torch.zeros(len(labels), self.width)
        weight = 1.0 / (labels >= 0).sum(dim=0).clamp(min=1)
        for size, columns, questions in self.blocks:
            mine = labels[:, questions]
            block = out[:, columns].view(-1, len(questions), size)
            values = (mine >= 0) * weight[questions]
            block.scatter_(2, mine.clamp(min=0)[:, :, None], values[:, :, None].to(block.dtype))
            out[:, columns] = block.reshape(len(labels), -1)
        return out


def fit_linear(
    rows: Tensor,
    labels: Tensor,
    heads: Heads,
    penalty: Tensor,
    start: Tensor | None = None,
    *,
    tolerance: float = 1e-3,
    most_steps: int = 300,
) -> Tensor:
    """Weights that minimise, per question, mean cross-entropy (nats) + penalty/2 · ‖weights‖².

    Args:
        rows: (n, d) float32.
        labels: (n, q) class numbers, negative where a row is not asked.
        penalty: (q,) positive; the bias is not penalised.
    """
    slope_at = _Loss(rows, labels, heads, penalty)
    weights = torch.zeros(rows.shape[1] + 1, heads.width) if start is None else start.clone()
    loss, gradient = slope_at(weights)
    pairs: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=_MEMORY)
    for _ in range(most_steps):
        unsolved = heads.summed(gradient.square().sum(dim=0)).sqrt() > tolerance
        if not unsolved.any():
            break
        direction = _direction(gradient, pairs, heads) * unsolved[heads.question]
        slope = heads.summed((direction * gradient).sum(dim=0))
        step = torch.ones_like(slope)
        for _ in range(_HALVINGS):
            candidate = weights + direction * step[heads.question]
            new_loss, new_gradient = slope_at(candidate)
            # single precision cannot see a smaller fall of the loss
            too_far = new_loss > loss + _ARMIJO * step * slope + 1e-6 * loss
            if not too_far.any():
                break
            step = torch.where(too_far, step / 2, step)
        moved, change = candidate - weights, new_gradient - gradient
        product = heads.summed((moved * change).sum(dim=0))
        inverse = torch.where(product > _FLAT, 1 / product.clamp(min=_FLAT), torch.zeros(()))
        pairs.append((moved, change, inverse))
        weights, loss, gradient = candidate, new_loss, new_gradient
    return weights


class _Loss:
    """Penalised loss per head, (q,), and its gradient, (d + 1, width)."""

    def __init__(self, rows: Tensor, labels: Tensor, heads: Heads, penalty: Tensor) -> None:
        self.rows, self.heads = rows, heads
        self.right = heads.shares(labels)
        # each row counts the same in every class column of a question that it is asked
        self.weight = heads.spread((labels >= 0) / (labels >= 0).sum(dim=0).clamp(min=1))
        self.penalty = penalty
        self.of_columns = penalty[heads.question]

    def __call__(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        log_p = self.heads.log_probabilities(torch.addmm(weights[-1], self.rows, weights[:-1]))
        squares = self.heads.summed(weights[:-1].square().sum(dim=0))
        loss = self.penalty / 2 * squares - self.heads.summed((log_p * self.right).sum(dim=0))
        error = log_p.exp_().mul_(self.weight).sub_(self.right)
        gradient = torch.empty_like(weights)
        torch.mm(self.rows.T, error, out=gradient[:-1])
        gradient[:-1] += self.of_columns * weights[:-1]
        gradient[-1] = error.sum(dim=0)
        return loss, gradient


def _direction(gradient: Tensor, pairs: deque[tuple[Tensor, Tensor, Tensor]], heads: Heads) -> Tensor:
    """The two-loop recursion, per head; a pair without curvature in a head plays no part in it."""
    direction = -gradient
    factors = []
    for moved, change, inverse in reversed(pairs):
        factor = inverse * heads.summed((moved * direction).sum(dim=0))
        direction = direction - factor[heads.question] * change
        factors.append(factor)
    scale = gradient.new_full((len(heads.n_classes),), _FIRST_STEP)
    if pairs:
        _, change, inverse = pairs[-1]
        squares = heads.summed(change.square().sum(dim=0))
        scale = torch.where(inverse > 0, 1 / (inverse * squares).clamp(min=_FLAT), scale)
    direction = direction * scale[heads.question]
    for (moved, change, inverse), factor in zip(pairs, reversed(factors), strict=True):
        back = inverse * heads.summed((change * direction).sum(dim=0))
        direction = direction + moved * (factor - back)[heads.question]
    return direction


_FIRST, _SECOND, _ORDER = (int.from_bytes(word) for word in (b"first", b"second", b"order"))


def question_number(name: str) -> int:
    """A whole number that stands for a question in draws."""
    return int(fingerprint(name), 16)


class Perceptrons:
    """(q) networks: ``hidden`` rectified units each, logits padded to the most classes."""

    def __init__(
        self, names: Sequence[str], n_classes: Sequence[int], width: int, hidden: int, seed: int
    ) -> None:
        self.n_classes, self.seed = tuple(n_classes), seed
        most = max(n_classes)
        numbers = [question_number(name) for name in names]

        def uniform(purpose: int, rows: int, columns: int, bound: float) -> Tensor:
            drawn = [
                draw_uniform(seed, purpose, number, np.arange(rows * columns)).reshape(rows, columns)
                for number in numbers
            ]
            return torch.from_numpy(((2 * np.stack(drawn) - 1) * bound).astype(np.float32))

        first = uniform(_FIRST, width, hidden, math.sqrt(6 / width))
        self.weights = {
            # (d, q · hidden): one product for the first layers of all questions
            "first": first.permute(1, 0, 2).reshape(width, -1).contiguous(),
            "first bias": torch.zeros(len(names) * hidden),
            "second": uniform(_SECOND, hidden, most, math.sqrt(1 / hidden)),
            "second bias": torch.zeros(len(names), 1, most),
        }
        self.hidden = hidden
        self.impossible = torch.arange(most)[None, :] >= torch.tensor(self.n_classes)[:, None]

    def log_probabilities(self, rows: Tensor, weights: dict[str, Tensor] | None = None) -> Tensor:
        """(n, d) rows to (q, n, most classes) log probabilities; impossible classes have -inf."""
        given = self.weights if weights is None else weights
        hidden = torch.addmm(given["first bias"], rows, given["first"]).relu_()
        units = hidden.view(len(rows), len(self.n_classes), self.hidden).transpose(0, 1)
        logits = torch.baddbmm(given["second bias"], units, given["second"])
        return functional.log_softmax(logits.masked_fill(self.impossible[:, None], -torch.inf), dim=2)

    def cross_entropy(self, rows: Tensor, labels: Tensor, block: int = 2048) -> Tensor:
        """(q,) mean over the rows that are asked, in nats; without gradients, in blocks."""
        found, _ = self.measure(rows, labels, block)
        return -found.sum(dim=0) / (labels >= 0).sum(dim=0).clamp(min=1)

    def measure(self, rows: Tensor, labels: Tensor, block: int = 2048) -> tuple[Tensor, Tensor]:
        """(n, q) log probabilities of the right answers, 0 where not asked, and (n, q) answers."""
        costs, answers = [], []
        with torch.no_grad():
            for start in range(0, len(rows), block):
                found = self.log_probabilities(rows[start : start + block])
                costs.append(_of_labels(found, labels[start : start + block]).T)
                answers.append(found.argmax(dim=2).T)
        return torch.cat(costs), torch.cat(answers)

    def fit(
        self,
        rows: Tensor,
        labels: Tensor,
        validation_rows: Tensor,
        validation_labels: Tensor,
        epochs: int | Tensor,
        *,
        learning_rate: float = 3e-3,
        weight_decay: float = 1.0,
        most_per_batch: int = 256,
        patience: int = 8,
    ) -> Tensor:
        """Train with AdamW; keep each question's weights of its best epoch.

        Args:
            rows, labels: (n, d) and (n, q) of the training rows.
            validation_rows, validation_labels: to stop by.
            epochs: at most so many, fewer when none of ``patience`` in a row helped any question; or (q,)
                exactly so many for each question, whatever validation says.

        Returns:
            (q,) the epoch kept.
        """
        # of few rows, more and smaller batches: at least eight steps an epoch
        batch = max(16, min(most_per_batch, len(rows) // 8))
        last = int(epochs.max()) if isinstance(epochs, Tensor) else epochs
        kept = {name: value.clone() for name, value in self.weights.items()}
        best = torch.full((len(self.n_classes),), torch.inf)
        best_epoch = torch.zeros(len(self.n_classes), dtype=torch.int64)
        parameters = {name: value.requires_grad_() for name, value in self.weights.items()}
        optimizer = torch.optim.AdamW(
            list(parameters.values()), lr=learning_rate, weight_decay=weight_decay, foreach=True
        )
        for epoch in range(1, last + 1):
            order = torch.from_numpy(np.argsort(draw_uniform(self.seed, _ORDER, epoch, np.arange(len(rows)))))
            for start in range(0, len(order), batch):
                drawn = order[start : start + batch]
                mine = labels[drawn]
                picked = _of_labels(self.log_probabilities(rows[drawn]), mine)
                loss = -(picked.sum(dim=1) / (mine >= 0).sum(dim=0).clamp(min=1)).sum()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if isinstance(epochs, Tensor):
                better = torch.eq(epochs, epoch)
            else:
                found = self.cross_entropy(validation_rows, validation_labels)
                better = found < best
                best = torch.where(better, found, best)
            best_epoch[better] = epoch
            self._keep(kept, better)
            if isinstance(epochs, int) and epoch - int(best_epoch.max()) >= patience:
                break
        self.weights = kept
        return best_epoch

    def _keep(self, kept: dict[str, Tensor], better: Tensor) -> None:
        units = better.repeat_interleave(self.hidden)
        with torch.no_grad():
            kept["first"][:, units] = self.weights["first"][:, units]
            kept["first bias"][units] = self.weights["first bias"][units]
            for name in ("second", "second bias"):
                kept[name][better] = self.weights[name][better]


def _of_labels(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """(q, n, classes) and (n, q) to (q, n): of the right class, 0 where not asked."""
    mine = labels.T
    picked = log_probabilities.gather(2, mine.clamp(min=0)[:, :, None])[:, :, 0]
    return picked.masked_fill(mine < 0, 0.0)


_CONTROL = int.from_bytes(b"control")

SMOOTHINGS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Counts added to every class of a constant prediction."""


def constant_frequencies(questions: Questions) -> list[np.ndarray]:
    """Per question the constant prediction: training frequencies, smoothed as suits the validation rows.

    They are (n_c + a) / (n + a · classes) with the best ``a`` of a few: with few training rows the plain
    frequencies are a bad prediction, and a probe that only corrects them would seem to have found something.
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
        number = PLACES.index(place)
        drawn = draw_uniform(seed, _CONTROL, number, question_number(key), part.images)
        answers = np.searchsorted(np.cumsum(counts) / counts.sum(), drawn, side="right")
        asked = part.labels[:, column] != NOT_ASKED
        labels[asked, column] = np.minimum(answers, n_classes - 1)[asked]
    return labels


def majority(questions: Questions) -> np.ndarray:
    """(q,) the most frequent answer of the training rows."""
    labels = questions.parts["train"].labels
    return np.array([np.bincount(given[given >= 0]).argmax() for given in labels.T], dtype=np.int64)
