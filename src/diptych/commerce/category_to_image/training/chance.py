"""What chance decides in a training, each a function of (seed, epoch, step or product) and of nothing before it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from diptych.core.draws import draw_uniform, keys_of

__all__ = ["StepDropout", "batches_of", "hidden_modalities"]

_ORDER, _HIDDEN, _DROPOUT = (
    int(number) for number in keys_of(["order of products", "hidden modality", "dropout of heads"])
)
_SIXTEEN_BITS = 1 << 16


def batches_of(n: int, size: int, seed: int, epoch: int) -> Iterator[np.ndarray]:
    """All of 0, …, n − 1 once, in an order of this epoch's own, ``size`` at a time; the last batch may be smaller.

    A last one of a single pair, which has nothing to be told apart from, is part of the one before.
    """
    order = np.argsort(draw_uniform(seed, _ORDER, epoch, np.arange(n)), kind="stable")
    ends = list(range(size, n, size))
    if ends and n - ends[-1] == 1:
        ends.pop()
    yield from np.split(order, ends)


def hidden_modalities(
    share: float, n_modalities: int, seed: int, epoch: int, rows: np.ndarray
) -> np.ndarray | None:
    """(len(rows),) number of the modality that is hidden of each product, -1 for none; None where none can be."""
    if not share or n_modalities < 2:
        return None
    draws = draw_uniform(seed, _HIDDEN, epoch, rows)
    return np.where(draws < share, (draws / share * n_modalities).astype(np.int64), -1)


class StepDropout:
    """Dropout of the hidden layers in one step: gives multipliers, other ones at every call.

    Args:
        share: of numbers that are dropped, to within 2^-17.
        seed: of the training.
        epoch: counted from 0.
        step: of the epoch.
    """

    def __init__(self, share: float, seed: int, epoch: int, step: int) -> None:
        self._least = round(share * _SIXTEEN_BITS)
        self._kept = np.float32(1 / (1 - self._least / _SIXTEEN_BITS))
        key = [seed % 2**64, (epoch << 40 | step << 8 | _DROPOUT & 0xFF) % 2**64]
        self._bits = np.random.Philox(key=np.array(key, dtype=np.uint64))

    def __call__(self, rows: int, width: int) -> Tensor:
        """(rows, width) float32: 0 where dropped, 1/(1 − share) elsewhere."""
        bits = self._bits.random_raw(-(-rows * width // 4)).view(np.uint16)[: rows * width]
        kept = torch.empty((rows, width), dtype=torch.float32)
        np.multiply(bits >= self._least, self._kept, out=kept.numpy().reshape(-1))
        return kept
