"""Pairs of a caption and its picture, in batches: which of them meet is a function of (seed, epoch)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.encoders.embeddings import Embeddings


@dataclass(frozen=True)
class PairBatch:
    """A batch on its device.

    Attributes:
        images: (n, d) float32 dense rows; a picture with several captions in the batch stands several times.
        texts: (n, d) float32 dense rows.
        in_caption: (n, |V|) boolean, which terms each caption contains.
    """

    images: Tensor
    texts: Tensor
    in_caption: Tensor


def check_pairs(
    images: Embeddings, texts: Embeddings, captions: Sequence[str], caption_image: np.ndarray
) -> None:
    """See that rows, captions and pictures belong together."""
    caption_image = np.asarray(caption_image)
    for what, of_images, of_texts in (
        ("width", images.width, texts.width),
        ("encoder", images.encoder, texts.encoder),
        ("similarity", images.similarity, texts.similarity),
    ):
        if of_images != of_texts:
            raise MismatchError(
                f"rows of pictures have {what} {of_images}, those of captions {of_texts}",
                "embed both with the same encoder: diptych embed",
            )
    if not len(texts) == len(captions) == len(caption_image):
        raise DataError(
            f"{len(texts):,} rows of captions, {len(captions):,} captions, {len(caption_image):,} pictures of them",
            "give the captions that were embedded, in their order",
        )
    if caption_image.ndim != 1 or caption_image.dtype.kind not in "iu":
        raise DataError(
            f"pictures of captions are {caption_image.dtype} of shape {caption_image.shape}",
            "give one whole number per caption",
        )
    strange = np.flatnonzero((caption_image < 0) | (caption_image >= len(images)))
    if len(strange):
        raise DataError(
            f"caption {strange[0]} is of picture {caption_image[strange[0]]}, there are {len(images):,} rows of "
            "pictures",
            "number pictures from 0, in the order of their rows",
        )
    images.check_finite()
    texts.check_finite()


def check_batch_size(batch_size: int, pairs: int) -> None:
    """See that there is a batch."""
    if batch_size > pairs:
        raise UsageError(
            f"batches of {batch_size} pairs from {pairs:,} captions",
            "give more captions, or set training.batch_size lower",
        )


def pairs_fingerprint(
    images: Embeddings, texts: Embeddings, captions: Sequence[str], caption_image: np.ndarray
) -> str:
    """Name by content of what is learned from: rows by what made them, captions, which is whose."""
    rows = [(one.encoder, one.data, len(one)) for one in (images, texts)]
    return fingerprint(rows, list(captions), np.asarray(caption_image).tolist())


def term_mask(rows: csr_array, device: torch.device) -> Tensor:
    """(n, |V|) boolean on ``device``: where sparse ``rows`` have something."""
    mask = torch.zeros(rows.shape, dtype=torch.bool, device=device)
    places = np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))
    mask[torch.from_numpy(places).to(device), torch.from_numpy(rows.indices.astype(np.int64)).to(device)] = (
        True
    )
    return mask


class Pairs:
    """All pairs of a caption and its picture.

    Args:
        caption_image: (n_captions,) picture of each caption.
        caption_terms: (n_captions, |V|) ones where a caption contains a term.
    """

    def __init__(
        self,
        images: Embeddings,
        texts: Embeddings,
        caption_image: np.ndarray,
        caption_terms: csr_array,
        batch_size: int,
        seed: int,
    ) -> None:
        check_batch_size(batch_size, len(caption_image))
        self._images, self._texts = images, texts
        self._caption_image = caption_image
        self._terms = caption_terms
        self._seed = seed
        self.steps = -(-len(caption_image) // batch_size)
        """Batches per epoch."""

    def __len__(self) -> int:
        return len(self._caption_image)

    @property
    def document_frequency(self) -> np.ndarray:
        """(|V|,) share of captions that contain each term."""
        counts = np.bincount(self._terms.indices, minlength=self._terms.shape[1])
        shares: np.ndarray = counts / len(self)
        return shares

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """The caption rows of each batch; every caption once."""
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self))
        return np.array_split(order, self.steps)

    def load(self, captions: np.ndarray, device: torch.device) -> PairBatch:
        """The pairs of some captions."""
        images = np.asarray(self._images.rows[self._caption_image[captions]], dtype=np.float32)
        texts = np.asarray(self._texts.rows[captions], dtype=np.float32)
        return PairBatch(
            torch.from_numpy(images).to(device),
            torch.from_numpy(texts).to(device),
            term_mask(self._terms[captions], device),
        )
