"""The linear probe: softmax regressions of all questions at once, by L-BFGS, each with its own penalty."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

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
    """Return (d + 1, width) weights, each question at its best penalty on the validation rows; and that, (q,)."""
    n_questions = len(heads.n_classes)
    kept = torch.zeros(rows.shape[1] + 1, heads.width)
    best = torch.full((n_questions,), torch.inf)
    chosen = torch.zeros(n_questions)
    in_vain = torch.zeros(n_questions, dtype=torch.int64)
    on_path = torch.arange(n_questions)
    weights = kept.clone()
    for penalty in PENALTIES:
        part, columns = heads.subset(on_path.tolist())
        penalties = torch.full((len(on_path),), penalty)
        found = fit_linear(rows, labels[:, on_path], part, penalties, weights[:, columns])
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
