"""The perceptron probe: one small network per question, trained side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from diptych.core.draws import draw_uniform
from diptych.core.fingerprint import fingerprint

_FIRST, _SECOND, _ORDER = (int.from_bytes(word) for word in (b"first", b"second", b"order"))
_BLOCK = 2048
_LEARNING_RATE, _WEIGHT_DECAY, _BATCH, _PATIENCE = 3e-3, 1.0, 256, 8

HIDDEN, EPOCHS = 64, 30
"""Units per question, and epochs at most."""


def question_number(name: str) -> int:
    """Return a whole number that stands for a question in draws."""
    return int(fingerprint(name), 16)


class Perceptrons:
    """(q) networks: :data:`HIDDEN` rectified units each, logits padded to the most classes."""

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

    def cross_entropy(self, rows: Tensor, labels: Tensor) -> Tensor:
        """(q,) mean over the rows that are asked, in nats; without gradients, in blocks."""
        return -self.measure(rows, labels)[0].sum(dim=0) / (labels >= 0).sum(dim=0).clamp(min=1)

    def measure(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """(n, q) log probabilities of the right answers, 0 where not asked, and (n, q) answers."""
        costs, answers = [], []
        with torch.no_grad():
            for part, mine in zip(rows.split(_BLOCK), labels.split(_BLOCK), strict=True):
                found = self.log_probabilities(part)
                costs.append(_of_labels(found, mine).T)
                answers.append(found.argmax(dim=2).T)
        return torch.cat(costs), torch.cat(answers)

    def fit(
        self,
        rows: Tensor,
        labels: Tensor,
        validation_rows: Tensor,
        validation_labels: Tensor,
        epochs: Tensor | None = None,
    ) -> Tensor:
        """Train with AdamW; keep each question's weights of its best epoch on validation rows.

        Training ends early when no epoch of several in a row helped any question. With (q,) ``epochs`` each question
        has exactly so many, whatever validation says. Returns (q,) the epochs kept.
        """
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
        for epoch in range(1, 1 + (EPOCHS if epochs is None else int(epochs.max()))):
            order = torch.from_numpy(np.argsort(draw_uniform(self.seed, _ORDER, epoch, np.arange(len(rows)))))
            for drawn in order.split(batch):
                mine = labels[drawn]
                picked = _of_labels(self.log_probabilities(rows[drawn]), mine)
                loss = -(picked.sum(dim=1) / (mine >= 0).sum(dim=0).clamp(min=1)).sum()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if epochs is None:
                found = self.cross_entropy(validation_rows, validation_labels)
                better = found < best
                best = torch.where(better, found, best)
            else:
                better = torch.eq(epochs, epoch)
            best_epoch[better] = epoch
            units = better.repeat_interleave(HIDDEN)
            for place, one in enumerate(self.weights):
                where = ((..., units), (units,), (better,), (better,))[place]
                kept[place][where] = one.detach()[where]
            if epochs is None and epoch - int(best_epoch.max()) >= _PATIENCE:
                break
        self.weights = kept
        return best_epoch


def _of_labels(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """(q, n, classes) and (n, q) to (q, n): of the right class, 0 where not asked."""
    mine = labels.T
    picked = log_probabilities.gather(2, mine.clamp(min=0)[:, :, None])[:, :, 0]
    return picked.masked_fill(mine < 0, 0.0)
