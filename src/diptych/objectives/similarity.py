"""Scores of an image's embedding and a text's: cosine, or by how far order is violated.

Order embeddings see a caption as more general than its image, and general as smaller in every coordinate::

    s(image, text) = −‖max(0, text − image)‖²

which is 0 where the text lies below the image in every coordinate. It is not symmetric, and it is
meant for embeddings without negative coordinates. VSE++'s code takes the square root; that is
``order-root``.

Sources: Vendrov et al., Order-Embeddings of Images and Language, ICLR 2016, Eq. 2 and 5; Faghri et
al. 2018, whose code has order as an option.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from diptych.core.errors import MismatchError
from diptych.core.registry import Registry
from diptych.objectives.pairs import first_derivative_only

# How many coordinate differences exist at a time: four megabytes in single precision.
_BLOCK_ELEMENTS = 2**20


@dataclass(frozen=True)
class Similarity:
    """A similarity in the registry; called with (n, d) images and (m, d) texts, it gives (n, m) scores."""

    name: str  # what a recipe calls it
    description: str
    citation: str
    function: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, images: Tensor, texts: Tensor) -> Tensor:
        return self.function(images, texts)


SIMILARITIES: Registry[Similarity] = Registry("similarity", "diptych.objectives")


def similarity_of(name: str) -> Similarity:
    return SIMILARITIES.get(name)


def _checked(images: Tensor, texts: Tensor) -> None:
    if images.dim() != 2 or texts.dim() != 2 or images.shape[1] != texts.shape[1]:
        raise MismatchError(
            f"images have shape {tuple(images.shape)}, texts {tuple(texts.shape)}",
            "both are rows of embeddings of the same width",
        )


class _Gram(torch.autograd.Function):
    """rows @ rows.T; its gradient is one product where autograd's own takes two."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return rows @ rows.T

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        gradient: Tensor = (weights + weights.T) @ rows
        return gradient


def cosine_similarity(images: Tensor, texts: Tensor) -> Tensor:
    """(n_images, n_texts) products of unit rows; give the same rows twice for scores inside a modality."""
    _checked(images, texts)
    if images is texts:
        scores: Tensor = _Gram.apply(images)
        return scores
    return images @ texts.T


class _OrderViolation(torch.autograd.Function):
    """(n, m) ‖max(0, text − image)‖², a block of images at a time, both ways."""

    @staticmethod
    def _excess(images: Tensor, texts: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """(block, m, d) max(0, text − image)."""
        size = max(1, _BLOCK_ELEMENTS // max(1, texts.numel()))
        for start in range(0, len(images), size):
            block = slice(start, start + size)
            yield block, (texts - images[block, None]).relu_()

    @staticmethod
    def forward(ctx: Any, images: Tensor, texts: Tensor) -> Tensor:
        ctx.save_for_backward(images, texts)
        violation = images.new_empty(len(images), len(texts))
        for block, excess in _OrderViolation._excess(images, texts):
            violation[block] = excess.square_().sum(dim=2)
        return violation

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Tensor, Tensor]:
        first_derivative_only("order similarity")
        images, texts = ctx.saved_tensors
        by_image, by_text = torch.empty_like(images), torch.zeros_like(texts)
        for block, excess in _OrderViolation._excess(images, texts):
            pushed = excess.mul_(2 * weights[block, :, None])
            by_image[block] = -pushed.sum(dim=1)
            by_text += pushed.sum(dim=0)
        return by_image, by_text


def order_similarity(images: Tensor, texts: Tensor) -> Tensor:
    """(n_images, n_texts) −‖max(0, text − image)‖², at most 0; has no second derivative."""
    _checked(images, texts)
    violation: Tensor = _OrderViolation.apply(images, texts)
    return -violation


def order_root_similarity(images: Tensor, texts: Tensor) -> Tensor:
    """(n_images, n_texts) −‖max(0, text − image)‖, with a gradient of 0 where nothing is violated."""
    violation = -order_similarity(images, texts)
    # The root has no slope at 0: as published, one pair in perfect order makes the gradient NaN.
    kept = violation > 0
    return -torch.where(kept, torch.where(kept, violation, 1.0).sqrt(), 0.0)


for _declared in (
    Similarity("cosine", "product of unit rows", "Kiros et al. 2014; Faghri et al. 2018", cosine_similarity),
    Similarity(
        "order",
        "minus the squared violation of text ≤ image in every coordinate",
        "Vendrov et al. 2016, Eq. 2",
        order_similarity,
    ),
    Similarity(
        "order-root",
        "minus the violation of text ≤ image, not squared, as VSE++'s code has it",
        "Faghri et al. 2018, published code",
        order_root_similarity,
    ),
):
    SIMILARITIES.add(_declared)
