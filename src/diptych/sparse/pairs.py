"""Pairs of captions and images as dense rows: what a head is trained and validated on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from diptych.core.errors import DataError, MismatchError
from diptych.core.fingerprint import fingerprint
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import evaluate
from diptych.metrics import DIRECTIONS, GroundTruth
from diptych.sparse.head import term_mask
from diptych.sparse.sparsifier import Sparsifier

_RECALLS = ("R@1", "R@5", "R@10")
_MOST_IMAGES = 1000


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Dense rows of images and captions that belong together.

    Attributes:
        images, texts: dense rows.
        captions: the captions themselves.
        caption_image: (n_captions,) image of each caption.
    """

    images: Embeddings
    texts: Embeddings
    captions: Sequence[str]
    caption_image: np.ndarray

    @classmethod
    def of(cls, encoded: EncodedCollection, captions: Sequence[str]) -> PairedRows:
        """Return those of an embedded collection."""
        return cls(encoded.images, encoded.texts, captions, encoded.caption_image)

    @property
    def fingerprint(self) -> str:
        """Name by content: rows by what made them, captions, which is whose."""
        rows = [(one.encoder, one.data, len(one)) for one in (self.images, self.texts)]
        return fingerprint(rows, list(self.captions), np.asarray(self.caption_image).tolist())

    def check(self, training: PairedRows | None = None) -> None:
        """See that rows, captions and images belong together, and validation rows to those of the training."""
        for one, other in (
            (self.images, self.texts),
            (self.texts, training.texts if training else self.texts),
        ):
            for what in ("width", "encoder", "similarity"):
                mine, theirs = getattr(one, what), getattr(other, what)
                if mine != theirs:
                    raise MismatchError(
                        f"{one.kind} rows have {what} {mine}, {other.kind} rows {theirs}",
                        "embed both with the same encoder: diptych embed",
                    )
        whose, images, texts = np.asarray(self.caption_image), len(self.images), len(self.texts)
        numbers = whose.dtype.kind in "iu" and whose.shape == (texts,) == (len(self.captions),)
        if not images or not texts or not numbers or not 0 <= whose.min() <= whose.max() < images:
            raise DataError(
                f"{images:,} rows of images, {texts:,} rows of captions, {len(self.captions):,} captions, "
                f"image numbers {whose.dtype} of shape {whose.shape}",
                "give the captions that were embedded, in their order, and of each the row of its image",
            )
        self.images.check_finite()
        self.texts.check_finite()


class PairBatch(NamedTuple):
    """A batch on its device; an image with several captions in the batch stands several times."""

    images: Tensor  # (n, d) float32 dense rows
    texts: Tensor  # (n, d) float32 dense rows
    in_caption: Tensor  # (n, |V|) boolean, which terms each caption contains


class Pairs:
    """All pairs of a caption and its image; which meet in a batch is a function of (seed, epoch).

    Args:
        caption_terms: (n_captions, |V|) ones where a caption contains a term.
    """

    def __init__(self, rows: PairedRows, caption_terms: csr_array, batch_size: int, seed: int) -> None:
        self._rows, self._whose = rows, np.asarray(rows.caption_image)
        self._terms, self._seed = caption_terms, seed
        self.steps = -(-len(self._whose) // batch_size)
        """Batches per epoch."""

    def __len__(self) -> int:
        return len(self._whose)

    @property
    def document_frequency(self) -> np.ndarray:
        """(|V|,) share of captions that contain each term."""
        counts: np.ndarray = np.bincount(self._terms.indices, minlength=self._terms.shape[1])
        return counts / len(self)

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Return the caption rows of each batch; every caption once."""
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self))
        return np.array_split(order, self.steps)

    def load(self, captions: np.ndarray, device: torch.device) -> PairBatch:
        """Return the pairs of some captions."""
        rows = self._rows.images.rows[self._whose[captions]], self._rows.texts.rows[captions]
        images, texts = (torch.from_numpy(np.asarray(one, dtype=np.float32)).to(device) for one in rows)
        return PairBatch(images, texts, term_mask(self._terms[captions], device))


class Validation:
    """Measures a head as it is searched with later: with expansion, unless the head never has any.

    Of more than 1,000 images as many are taken, evenly spaced, with all their captions.
    """

    def __init__(self, rows: PairedRows) -> None:
        count = min(_MOST_IMAGES, len(rows.images))
        images = np.linspace(0, len(rows.images) - 1, count).round().astype(np.int64)
        captions = np.flatnonzero(np.isin(rows.caption_image, images))
        place = np.searchsorted(images, rows.caption_image[captions])
        order = np.argsort(place, kind="stable")
        captions = captions[order]
        self._truth = GroundTruth.from_caption_image(place[order], count)
        self._images, self._texts = rows.images.rows[images], rows.texts.rows[captions]
        self._captions = [rows.captions[row] for row in captions.tolist()]

    def measure(self, head: Sparsifier) -> dict[str, float]:
        """Return recalls in per cent (``t2i R@5``, …), ``rsum``, ``flops`` (Eq. 3.1) and non-zeros of either side."""
        own = None if head.expands else head.vocabulary.caption_terms(self._captions)
        images, texts = head.sparsify(self._images, "image"), head.sparsify(self._texts, "text", own)
        result = evaluate(images, texts, self._truth, (*_RECALLS, "rsum"))
        counts = (
            torch.from_numpy(np.bincount(rows.indices, minlength=rows.shape[1])) for rows in (images, texts)
        )
        of_images, of_texts = next(counts) / images.shape[0], next(counts).double() / texts.shape[0]
        values = {"rsum": result.value("rsum"), "flops": float(of_images.double() @ of_texts)}
        values |= {f"{way} {name}": 100 * result.value(name, way) for way in DIRECTIONS for name in _RECALLS}
        return values | {"image nonzeros": float(of_images.sum()), "text nonzeros": float(of_texts.sum())}
