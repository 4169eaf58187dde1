"""The loss of a whole batch and its gradients, at once or in chunks, on one device or several.

In chunks (gradient caching) a batch is encoded twice: first without gradients, to have all rows and
from them the loss and its gradient with respect to every row; then chunk by chunk with gradients, to
carry each row's gradient into the towers. The gradients are those of the whole batch, in the memory
of one chunk.

Source: Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, 2021.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as distributed
from torch import Tensor

from diptych.core.errors import RecipeError
from diptych.objectives import Within
from diptych.training.averaging import batch_norms
from diptych.training.examples import Loaded
from diptych.training.trainee import Reconstructor, Trainee

# Several processes, one batch: embeddings of all of them, with gradients.
#
# Each process encodes its share, gathers everyone's rows and computes the loss of the whole batch. The
# backward pass sums the gradients of a row in all processes before it returns to the one that made it; with
# the mean that DDP then takes over processes, parameters get exactly the gradient that one process
# with the whole batch would compute. (Batch norm and dropout inside the towers still see a share.)


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
    """Map (n, …) rows of this process → rows of all processes in order of rank, with gradients.

    In a single process they are returned as they are.
    """
    if world_size() == 1:
        return rows
    return _Gather.apply(rows)  # type: ignore[no-any-return]


def world_size() -> int:
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1
    return distributed.get_world_size()


def world_mean(value: Tensor) -> Tensor:
    """Return the mean of a tensor over all processes, without gradients; itself in a single process."""
    if world_size() == 1:
        return value
    total = value.detach().clone()
    distributed.all_reduce(total)
    return total / world_size()


def positives_of(image_ids: Tensor, caption_image_ids: Tensor) -> Tensor:
    return image_ids[:, None] == caption_image_ids[None, :]


Similarity = Callable[[Tensor, Tensor], Tensor]


class Losses(NamedTuple):
    """Of one batch: the objective's loss, and the reconstruction's where there is one."""

    contrastive: float
    reconstruction: float


class BatchLoss:
    """Computes a batch's losses and leaves their gradients in the parameters.

    Args:
        similarity: scores of image rows (b, d) and caption rows (c, d), (b, c).
    """

    def __init__(
        self,
        fabric: Any,
        module: Any,
        trainee: Trainee,
        similarity: Similarity,
        cached: bool,
        chunk: int | None = None,
    ) -> None:
        self._fabric, self._module, self._trainee = fabric, module, trainee
        self._similarity, self._cached, self._chunk = similarity, cached, chunk
        trainee.train()
        if chunk is not None and batch_norms(trainee):
            raise RecipeError(
                f"batches.chunk = {chunk} with batch norm in training: a chunk's statistics are not the batch's",
                "leave batches.chunk out, set model.image.freeze_batch_norm, or take batch norm out of the heads",
            )

    def __call__(self, batch: Loaded, share: float, last: bool, seed: int) -> Losses:
        """Add ``share`` of this batch's gradients to those of the parameters."""
        # Several processes have shares of different sizes, and all have to add up gradients the same way.
        if self._chunk is None or (world_size() == 1 and _largest(batch) <= self._chunk):
            with self._fabric.no_backward_sync(self._module, enabled=not last):
                return self._whole(batch.to(self._fabric.device), share)
        with self._fabric.no_backward_sync(self._module, enabled=True):
            losses = self._in_chunks(batch, share, seed)
        if last and world_size() > 1:
            for parameter in self._trainee.parameters():
                if parameter.requires_grad and parameter.grad is not None:
                    parameter.grad.copy_(world_mean(parameter.grad))
        return losses

    def _whole(self, batch: Loaded, share: float) -> Losses:
        images, texts = self._encode(batch)
        loss, count = self._contrastive(images, texts, batch)
        reconstructor = self._trainee.reconstruction
        if reconstructor is None:
            self._fabric.backward(loss * share)
            return Losses(float(loss.detach()), 0.0)
        mean = self._reconstructed(reconstructor, texts.float(), batch) * (world_size() / count)
        self._fabric.backward((loss + reconstructor.weight * mean) * share)
        return Losses(float(loss.detach()), float(world_mean(mean.detach())))

    def _in_chunks(self, batch: Loaded, share: float, seed: int) -> Losses:
        device = self._fabric.device
        parts = list(_chunks(batch, self._chunk or 1))
        with torch.no_grad():
            rows = [self._seeded(part.to(device), seed, number) for number, part in enumerate(parts)]
        images = torch.cat([pair[0] for pair in rows]).float().requires_grad_()
        texts = torch.cat([pair[1] for pair in rows]).float().requires_grad_()
        loss, count = self._contrastive(images, texts, batch.ids_to(device))
        self._fabric.backward(loss * share)
        mean = torch.zeros((), device=texts.device)
        reconstructor = self._trainee.reconstruction
        if reconstructor is not None:
            start = 0
            for part in parts:
                stop = start + len(part.tokens)
                some = self._reconstructed(reconstructor, texts[start:stop], part.to(device)) * (
                    world_size() / count
                )
                self._fabric.backward(some * reconstructor.weight * share)
                mean, start = mean + some.detach(), stop
        image_start = text_start = 0
        for number, part in enumerate(parts):
            image_rows, text_rows = self._seeded(part.to(device), seed, number)
            image_stop, text_stop = image_start + len(image_rows), text_start + len(text_rows)
            self._carry(image_rows, images, slice(image_start, image_stop))
            self._carry(text_rows, texts, slice(text_start, text_stop))
            image_start, text_start = image_stop, text_stop
        return Losses(float(loss.detach()), float(world_mean(mean)))

    def _seeded(self, part: Loaded, seed: int, number: int) -> tuple[Tensor, Tensor]:
        torch.manual_seed(seed + 15_485_863 * number)
        return self._encode(part)

    def _carry(self, rows: Tensor, whole: Tensor, place: slice) -> None:
        """Send the gradient of ``whole[place]`` on into what made ``rows``, if anything there learns."""
        if rows.requires_grad and whole.grad is not None:
            # It carries a 16-bit loss scale already, which Fabric multiplies by once more. A scale is a
            # power of two: dividing by it loses nothing.
            scaler = getattr(self._fabric._precision, "scaler", None)
            scale = 1.0 if scaler is None else scaler.get_scale()
            self._fabric.backward(rows, gradient=(whole.grad[place] / scale).to(rows.dtype))

    def _encode(self, batch: Loaded) -> tuple[Tensor, Tensor]:
        images, texts = self._module(batch.images, batch.tokens, batch.lengths, self._cached)
        return images, texts

    def _reconstructed(self, reconstructor: Reconstructor, texts: Tensor, batch: Loaded) -> Tensor:
        """Return the summed losses of a batch's captions; the decoder computes in the towers' precision."""
        with self._fabric.autocast():
            return reconstructor.losses(texts, batch).sum()

    def _contrastive(self, images: Tensor, texts: Tensor, batch: Loaded) -> tuple[Tensor, int]:
        """Return the objective's loss over the rows of all processes, and how many captions those are."""
        all_images, all_texts = gather_rows(images.float()), gather_rows(texts.float())
        positives = positives_of(gather_rows(batch.image_ids), gather_rows(batch.caption_image_ids))
        scores = self._similarity(all_images, all_texts)
        objective = self._trainee.objective
        if not objective.needs_within:
            return objective(scores, positives), len(all_texts)
        within = Within(self._similarity(all_images, all_images), self._similarity(all_texts, all_texts))
        return objective(scores, positives, within), len(all_texts)


def _largest(batch: Loaded) -> int:
    return max(len(batch.images), len(batch.tokens))


def _chunks(batch: Loaded, size: int) -> Iterator[Loaded]:
    pieces = -(-_largest(batch) // size)
    for number in range(pieces):
        yield batch.part(number, pieces)
