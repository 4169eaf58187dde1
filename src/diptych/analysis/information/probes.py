"""Probes: softmax regressions of many questions at once, and small networks, trained side by side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from diptych.core.draws import draw_uniform
from diptych.core.fingerprint import fingerprint

Asked = tuple[Tensor, Tensor]  # (n, d) rows, and (n, q) labels that are negative where a row is not asked
_BLOCK = 2048


class Probes(ABC):
    """Probes of questions that the same rows are asked, fitted together."""

    @abstractmethod
    def log_probabilities(self, rows: Tensor) -> Tensor:
        """(n, d) rows to (n, q, most classes) log probabilities."""

    @abstractmethod
    def fit(self, train: Asked, validation: Asked, settings: Tensor | None = None) -> Tensor:
        """Fit each question with its setting, (q,), or the best one on validation rows; return them."""

    def measure(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return (n, q) log probabilities of the right answers, 0 where not asked, and (n, q) answers."""
        costs, answers = [], []
        with torch.no_grad():
            for part, mine in zip(rows.split(_BLOCK), labels.split(_BLOCK), strict=True):  # type: ignore[no-untyped-call]
                found = self.log_probabilities(part)
                costs.append(_of_labels(found, mine))
                answers.append(found.argmax(dim=2))
        return torch.cat(costs), torch.cat(answers)

    def cross_entropy(self, rows: Tensor, labels: Tensor) -> Tensor:
        """(q,) mean over the rows that are asked, in nats."""
        return -self.measure(rows, labels)[0].sum(dim=0) / (labels >= 0).sum(dim=0).clamp(min=1)


def _of_labels(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """(n, q, classes) and (n, q) to (n, q): of the right class, 0 where not asked."""
    picked = log_probabilities.gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
    return picked.masked_fill(labels < 0, 0.0)


def _mean_loss(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """Return the sum over questions of their mean cross-entropy."""
    each = _of_labels(log_probabilities, labels).sum(dim=0) / (labels >= 0).sum(dim=0).clamp(min=1)
    return -each.sum()


# How strongly the linear probe is held back: per question, by the validation rows.
#
# The path goes from a strong penalty to a weak one, each solution the start of the next. A question
# leaves it when two penalties in a row did not lower its cross-entropy on the validation rows, so that
# the slow, weak end is walked by the questions that need it.

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
_IN_VAIN = 2


class Regressions(Probes):
    """Soft-max regressions of questions with as many classes each; settings are penalties.

    Minimised is, per question, mean cross-entropy (nats) + penalty/2 · ‖weights‖²; the bias is not penalised.
    """

    def __init__(self, names: Sequence[str], n_classes: Sequence[int], width: int, seed: int = 0) -> None:
        self.weights = torch.zeros(width + 1, len(n_classes), max(n_classes))  # the bias last

    def log_probabilities(self, rows: Tensor) -> Tensor:
        bias, weights = self.weights[-1].reshape(-1), self.weights[:-1].reshape(rows.shape[1], -1)
        logits = torch.addmm(bias, rows, weights).view(len(rows), *self.weights.shape[1:])
        return functional.log_softmax(logits, dim=2)

    def fit(self, train: Asked, validation: Asked, settings: Tensor | None = None) -> Tensor:
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
