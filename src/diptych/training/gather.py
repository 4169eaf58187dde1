"""Several processes, one batch: embeddings of all of them, with gradients.

Each process encodes its share, gathers everyone's rows and computes the loss of the whole batch. The
backward pass sums what all processes want of a row before it goes back to the one that made it; with
the mean that DDP then takes over processes, parameters get exactly the gradient that one process
with the whole batch would compute. (Batch norm and dropout inside the towers still see a share.)
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as distributed
from torch import Tensor

__all__ = ["gather_rows", "positives_of", "world_mean", "world_size"]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, rows: Tensor) -> Tensor:
        world = distributed.get_world_size()
        sizes = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(world)]
        distributed.all_gather(sizes, torch.tensor([len(rows)], device=rows.device))
        counts = [int(size) for size in sizes]
        # all_gather wants equal shapes: shares that differ by a row are padded and cut again.
        padded = rows.new_zeros((max(counts), *rows.shape[1:]))
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in range(world)]
        distributed.all_gather(parts, padded)
        rank = distributed.get_rank()
        context.first = sum(counts[:rank])
        context.count = counts[rank]
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total)
        return total[context.first : context.first + context.count]


def gather_rows(rows: Tensor) -> Tensor:
    """(n, …) rows of this process → rows of all processes in order of rank, with gradients.

    In a single process they are returned as they are.
    """
    if world_size() == 1:
        return rows
    gathered: Tensor = _Gather.apply(rows)
    return gathered


def world_size() -> int:
    """How many processes share a batch."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1
    return distributed.get_world_size()


def world_mean(value: Tensor) -> Tensor:
    """The mean of a tensor over all processes, without gradients; itself in a single process."""
    if world_size() == 1:
        return value
    total = value.detach().clone()
    distributed.all_reduce(total)
    return total / world_size()


def positives_of(image_ids: Tensor, caption_image_ids: Tensor) -> Tensor:
    """(n_images, n_texts) boolean: which caption describes which image."""
    return image_ids[:, None] == caption_image_ids[None, :]
