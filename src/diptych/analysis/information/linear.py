"""The linear probe: softmax regressions of many questions on the same rows, all at once.

Each question is a head of its own with its own penalty; heads share the matrix products and nothing
else, so a question's answer does not depend on which others are asked with it. The loss of a head is
convex: it is solved to a tolerance by L-BFGS (Nocedal and Wright, Numerical Optimization, 2006,
algorithms 7.4 and 3.1) with curvature pairs, steps and convergence per head.
"""

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
