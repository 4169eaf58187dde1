"""The small perceptron probe: one hidden layer per question, all questions in one batched product.

Each question has its own hidden units, output, batches' mean and stopping point: nothing but the rows
is shared, and its first weights are a function of the seed and its own name, so that a question's
answer does not depend on which others are asked with it. Training stops per question where the
cross-entropy of the validation rows is lowest.
"""

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
