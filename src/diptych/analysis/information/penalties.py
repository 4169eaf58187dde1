"""How strongly the linear probe is held back: per question, by the validation rows.

The path goes from a strong penalty to a weak one, each solution the start of the next. A question
leaves it when two penalties in a row did not lower its cross-entropy on the validation rows, so that
the slow, weak end is walked by the questions that need it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diptych.analysis.information.linear import Heads, fit_linear

__all__ = ["PENALTIES", "cross_entropy", "linear_logits", "linear_path"]

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
        validation_rows, validation_labels: to choose by.
        heads: of all questions.

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
