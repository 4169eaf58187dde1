"""Probes: softmax regressions of all questions at once, by L-BFGS, and small networks, trained side by side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from diptych.core.draws import draw_uniform
from diptych.core.fingerprint import fingerprint

_MEMORY = 8
_HALVINGS = 12
_ARMIJO = 1e-4
_FLAT = 1e-12
_FIRST_STEP = 1.0


class Heads:
    """Logits of questions side by side; those with as many classes form a block, so that nothing is padded."""

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

    def columns_of(self, part: Heads, questions: Sequence[int]) -> Tensor:
        """Return where the columns of a part's heads, those of ``questions``, are among all."""
        columns = torch.empty(part.width, dtype=torch.int64)
        for size, place, numbers in part.blocks:
            starts = [int((self.question == questions[number]).nonzero()[0]) for number in numbers]
            columns[place] = (torch.tensor(starts)[:, None] + torch.arange(size)).view(-1)
        return columns

    def log_probabilities(self, logits: Tensor) -> Tensor:
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
        out = torch.empty((len(values), len(self.n_classes)), dtype=torch.int64)
        for size, columns, questions in self.blocks:
            out[:, questions] = values[:, columns].view(-1, len(questions), size).argmax(dim=2)
        return out


# How strongly the linear probe is held back: per question, by the validation rows.
#
# The path goes from a strong penalty to a weak one, each solution the start of the next. A question
# leaves it when two penalties in a row did not lower its cross-entropy on the validation rows, so that
# the slow, weak end is walked by the questions that need it.

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
_IN_VAIN = 2


Asked = tuple[Tensor, Tensor]  # (n, d) rows, and (n, q) labels that are negative where a row is not asked


class Probes(ABC):
    """Probes of questions that the same rows are asked, fitted together."""

    @abstractmethod
    def fit(self, train: Asked, validation: Asked, settings: Tensor | None = None) -> Tensor:
        """Fit each question with its setting, (q,), or the best one on validation rows; return them."""

    @abstractmethod
    def measure(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return (n, q) log probabilities of the right answers, 0 where not asked, and (n, q) answers."""

    def cross_entropy(self, rows: Tensor, labels: Tensor) -> Tensor:
        """(q,) mean over the rows that are asked, in nats."""
        return -self.measure(rows, labels)[0].sum(dim=0) / (labels >= 0).sum(dim=0).clamp(min=1)


class Regressions(Probes):
    """Soft-max regressions; their settings are penalties."""

    def __init__(self, names: Sequence[str], n_classes: Sequence[int], width: int, seed: int = 0) -> None:
        self.heads = Heads(n_classes)
        self.weights = torch.zeros(width + 1, self.heads.width)  # the bias last

    def log_probabilities(self, rows: Tensor) -> Tensor:
        return self.heads.log_probabilities(torch.addmm(self.weights[-1], rows, self.weights[:-1]))

    def measure(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        found = self.log_probabilities(rows)
        return self.heads.of_labels(found, labels), self.heads.most_probable(found)

    def fit(self, train: Asked, validation: Asked, settings: Tensor | None = None) -> Tensor:
        heads, (rows, labels) = self.heads, train
        if settings is not None:
            self.weights = fit_linear(rows, labels, heads, settings)
            return settings
        n_questions = len(heads.n_classes)
        best = torch.full((n_questions,), torch.inf)
        chosen = torch.zeros(n_questions)
        in_vain = torch.zeros(n_questions, dtype=torch.int64)
        on_path = torch.arange(n_questions)
        weights = self.weights.clone()
        for penalty in PENALTIES:
            part = Regressions((), [heads.n_classes[number] for number in on_path.tolist()], rows.shape[1])
            columns = heads.columns_of(part.heads, on_path.tolist())
            penalties = torch.full((len(on_path),), penalty)
            part.weights = fit_linear(rows, labels[:, on_path], part.heads, penalties, weights[:, columns])
            weights[:, columns] = part.weights
            cost = part.cross_entropy(validation[0], validation[1][:, on_path])
            better = cost < best[on_path]
            best[on_path[better]] = cost[better]
            chosen[on_path[better]] = penalty
            in_vain[on_path] = torch.where(better, 0, in_vain[on_path] + 1)
            mine = columns[better[part.heads.question]]
            self.weights[:, mine] = weights[:, mine]
            on_path = on_path[in_vain[on_path] < _IN_VAIN]
            if not len(on_path):
                break
        return chosen


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
    """Return weights that minimise, per question, mean cross-entropy (nats) + penalty/2 · ‖weights‖².

    ``rows`` are (n, d) float32, ``labels`` (n, q), negative where a row is not asked; the bias is not penalised.
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
        # each row counts the same in every class column of a question that it is asked
        self.weight = ((labels >= 0) / (labels >= 0).sum(dim=0).clamp(min=1))[:, heads.question]
        # 1 / (rows asked) at the right class, 0 elsewhere
        self.right = torch.zeros(len(labels), heads.width)
        for size, columns, questions in heads.blocks:
            mine = labels[:, questions].clamp(min=0)[:, :, None]
            right = torch.zeros(len(labels), len(questions), size).scatter_(2, mine, 1.0)
            self.right[:, columns] = right.view(len(labels), -1) * self.weight[:, columns]
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
_BLOCK = 2048
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
            drawn = [
                draw_uniform(seed, purpose, number, np.arange(rows * columns)).reshape(rows, columns)
                for number in numbers
            ]
            return torch.from_numpy(((2 * np.stack(drawn) - 1) * bound).astype(np.float32))

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
        """(n, d) rows to (q, n, most classes) log probabilities; impossible classes have -inf."""
        first, bias, second, second_bias = self.weights
        hidden = torch.addmm(bias, rows, first).relu_()
        units = hidden.view(len(rows), self.questions, HIDDEN).transpose(0, 1)
        logits = torch.baddbmm(second_bias, units, second)
        return functional.log_softmax(logits.masked_fill(self.impossible[:, None], -torch.inf), dim=2)

    def measure(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        costs, answers = [], []
        with torch.no_grad():
            blocks = (torch.split(one, _BLOCK) for one in (rows, labels))
            for part, mine in zip(*blocks, strict=True):
                found = self.log_probabilities(part)
                costs.append(_of_labels(found, mine).T)
                answers.append(found.argmax(dim=2).T)
        return torch.cat(costs), torch.cat(answers)

    def fit(self, train: Asked, validation: Asked, settings: Tensor | None = None) -> Tensor:
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
                mine = labels[drawn]
                picked = _of_labels(self.log_probabilities(rows[drawn]), mine)
                loss = -(picked.sum(dim=1) / (mine >= 0).sum(dim=0).clamp(min=1)).sum()
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
            for place, one in enumerate(self.weights):
                where = ((..., units), (units,), (better,), (better,))[place]
                kept[place][where] = one.detach()[where]
            if settings is None and epoch - int(best_epoch.max()) >= _PATIENCE:
                break
        self.weights = kept
        return best_epoch


def _of_labels(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """(q, n, classes) and (n, q) to (q, n): of the right class, 0 where not asked."""
    mine = labels.T
    picked = log_probabilities.gather(2, mine.clamp(min=0)[:, :, None])[:, :, 0]
    return picked.masked_fill(mine < 0, 0.0)
