"""COCOS over a training set: batch after batch of stored rows, never more than one in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diptych.analysis.cocos import counts_of, gradient_weights, paper_counts_of, unit_factor
from diptych.analysis.cocos_report import CocosProtocol, CocosReport, RunningSpread, WeightHistogram
from diptych.analysis.counts import CocosCompat, Unit, check_compat, check_epsilon
from diptych.analysis.equation_counts import paper_loss
from diptych.core.context import track
from diptych.core.errors import UsageError
from diptych.data.batches import Batch
from diptych.objectives.declaration import OBJECTIVES, Objective, Within
from diptych.objectives.similarity import similarity_of

Scoring = Callable[[Tensor, Tensor], Tensor]
"""Rows (n, d) and rows (m, d) to scores (n, m); one of ``objectives.similarity`` or any other."""


def described_objective(objective: Objective) -> tuple[str, dict[str, Any]]:
    """Its name in the registry and its options as they are now, a learned temperature by value.

    The reduction is left out: what is counted is before it.
    """
    kind = next((kind for kind in OBJECTIVES if kind.build is type(objective)), None)
    if kind is None:
        return type(objective).__name__, {}
    options = {
        name: getattr(objective, name)
        for name in kind.options
        if name != "reduction" and hasattr(objective, name)
    }
    return kind.name, {
        name: float(value.detach()) if isinstance(value, Tensor) else value for name, value in options.items()
    }


def cocos_over(
    images: np.ndarray,
    texts: np.ndarray,
    batches: Iterable[Batch],
    objective: Objective,
    epsilon: float = 0.01,
    *,
    unit: Unit = "temperature",
    compat: CocosCompat = "none",
    similarity: Scoring | None = None,
    about: dict[str, Any] | None = None,
) -> CocosReport:
    """Count contributing samples in every batch; mean ± sd over batches, and weight distributions.

    As in Section 5 of the paper: the rows come from a frozen encoder in evaluation mode, without
    dropout and augmentation, and the batches are those of training.

    Args:
        images: (n_images, d) rows, may be memory-mapped.
        texts: (n_captions, d) rows.
    """
    check_epsilon(epsilon)
    if check_compat(compat) != "none":
        paper_loss(objective)
    factor = unit_factor(objective, unit)
    similar = similarity or similarity_of("cosine")
    spreads: dict[str, dict[str, RunningSpread]] = {}
    weights: dict[str, dict[str, WeightHistogram]] = {}
    n_batches, n_images, n_captions = 0, [], []
    for batch in track(batches, "counting contributing samples", unit="batches"):
        left, right = _rows(images, batch.images), _rows(texts, batch.captions)
        scores = similar(left, right)
        within = Within(similar(left, left), similar(right, right)) if objective.needs_within else None
        places = torch.arange(len(batch.images))
        positives = torch.from_numpy(batch.caption_image)[None, :] == places[:, None]
        weighed = {
            direction: found.scaled(factor)
            for direction, found in gradient_weights(objective, scores, positives, within).items()
        }
        if compat != "none":
            counted = paper_counts_of(objective, scores, positives, epsilon, unit, compat)
        else:
            counted = {direction: counts_of(found, epsilon) for direction, found in weighed.items()}
        for direction, counts in counted.items():
            named = spreads.setdefault(direction, {})
            for name, value in counts.values().items():
                named.setdefault(name, RunningSpread()).add(value)
        for direction, found in weighed.items():
            kinds = weights.setdefault(direction, {})
            parts = {"negatives": found.of_negatives, "positives": found.of_positives}
            if found.within is not None:
                parts["within"] = found.of_within
            for kind, part in parts.items():
                kinds.setdefault(kind, WeightHistogram()).add(part.numpy(), len(found.values))
        n_batches += 1
        n_images.append(len(batch.images))
        n_captions.append(len(batch.captions))
    if not n_batches:
        raise UsageError("no batch to count in", "give at least one batch")
    name, options = described_objective(objective)
    return CocosReport(
        CocosProtocol(
            objective=name,
            options=options,
            similarity=str(getattr(similar, "name", getattr(similar, "__name__", "given"))),
            epsilon=epsilon,
            unit=unit,
            compat=compat,
            batches=n_batches,
            images=(min(n_images), max(n_images)),
            captions=(min(n_captions), max(n_captions)),
            about=dict(about or {}),
        ),
        {
            direction: {name: running.spread() for name, running in named.items()}
            for direction, named in spreads.items()
        },
        weights,
    )


def _rows(stored: np.ndarray, rows: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(stored[rows], dtype=np.float32))
