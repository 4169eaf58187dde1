"""Pairs of a caption and its picture: in batches to learn from, and held out to measure a head by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import evaluate
from diptych.metrics import DIRECTIONS, GroundTruth
from diptych.sparse.head import Kind, SparseHeads, head_of
from diptych.sparse.vocabulary import TermVocabulary

_RECALLS = ("R@1", "R@5", "R@10")
_MOST_IMAGES = 1000
_BLOCK = 512


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Dense rows of pictures and captions that belong together.

    Attributes:
        images, texts: dense rows.
        captions: the captions themselves.
        caption_image: (n_captions,) picture of each caption.
    """

    images: Embeddings
    texts: Embeddings
    captions: Sequence[str]
    caption_image: np.ndarray

    @classmethod
    def of(cls, encoded: EncodedCollection, captions: Sequence[str]) -> PairedRows:
        """Those of an embedded collection."""
        return cls(encoded.images, encoded.texts, captions, encoded.caption_image)

    @property
    def fingerprint(self) -> str:
        """Name by content: rows by what made them, captions, which is whose."""
        rows = [(one.encoder, one.data, len(one)) for one in (self.images, self.texts)]
        return fingerprint(rows, list(self.captions), np.asarray(self.caption_image).tolist())

    def check(self) -> None:
        """See that rows, captions and pictures belong together."""
        whose = np.asarray(self.caption_image)
        _check_same_space(self.images, self.texts, "rows of pictures have", "those of captions")
        if not len(self.texts) == len(self.captions) == len(whose):
            raise DataError(
                f"{len(self.texts):,} rows of captions, {len(self.captions):,} captions, {len(whose):,} pictures "
                "of them",
                "give the captions that were embedded, in their order",
            )
        if whose.ndim != 1 or whose.dtype.kind not in "iu":
            raise DataError(
                f"pictures of captions are {whose.dtype} of shape {whose.shape}",
                "give one whole number per caption",
            )
        strange = np.flatnonzero((whose < 0) | (whose >= len(self.images)))
        if len(strange):
            raise DataError(
                f"caption {strange[0]} is of picture {whose[strange[0]]}, there are {len(self.images):,} rows of "
                "pictures",
                "number pictures from 0, in the order of their rows",
            )
        self.images.check_finite()
        self.texts.check_finite()

    def check_validation(self, texts: Embeddings) -> None:
        """See that these belong together, and to the rows that are learned from."""
        self.check()
        if not len(self.images) or not len(self.texts):
            raise DataError(
                f"validation on {len(self.images)} pictures and {len(self.texts)} captions",
                "give rows, or leave validation out",
            )
        _check_same_space(self.texts, texts, "validation rows have", "those that are learned from")


def _check_same_space(first: Embeddings, second: Embeddings, has: str, others: str) -> None:
    for what in ("width", "encoder", "similarity"):
        mine, theirs = getattr(first, what), getattr(second, what)
        if mine != theirs:
            raise MismatchError(
                f"{has} {what} {mine}, {others} {theirs}",
                "embed both with the same encoder: diptych embed",
            )


def check_batch_size(batch_size: int, pairs: int) -> None:
    """See that there is a batch."""
    if batch_size > pairs:
        raise UsageError(
            f"batches of {batch_size} pairs from {pairs:,} captions",
            "give more captions, or set training.batch_size lower",
        )


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


def term_mask(rows: csr_array, device: torch.device) -> Tensor:
    """(n, |V|) boolean on ``device``: where sparse ``rows`` have something."""
    mask = torch.zeros(rows.shape, dtype=torch.bool, device=device)
    places = np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))
    mask[torch.from_numpy(places).to(device), torch.from_numpy(rows.indices.astype(np.int64)).to(device)] = (
        True
    )
    return mask


class Pairs:
    """All pairs of a caption and its picture; which meet in a batch is a function of (seed, epoch).

    Args:
        caption_terms: (n_captions, |V|) ones where a caption contains a term.
    """

    def __init__(
        self,
        rows: PairedRows,
        caption_terms: csr_array,
        batch_size: int,
        seed: int,
    ) -> None:
        check_batch_size(batch_size, len(rows.texts))
        self._rows, self._whose = rows, np.asarray(rows.caption_image)
        self._terms = caption_terms
        self._seed = seed
        self.steps = -(-len(rows.texts) // batch_size)
        """Batches per epoch."""

    def __len__(self) -> int:
        return len(self._whose)

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
        images = np.asarray(self._rows.images.rows[self._whose[captions]], dtype=np.float32)
        texts = np.asarray(self._rows.texts.rows[captions], dtype=np.float32)
        return PairBatch(
            torch.from_numpy(images).to(device),
            torch.from_numpy(texts).to(device),
            term_mask(self._terms[captions], device),
        )


class Validation:
    """Measures a head as it is searched with later: with expansion, unless the head never has any.

    Of more than 1,000 pictures as many are taken, evenly spaced, with all their captions.
    """

    def __init__(
        self, rows: PairedRows, vocabulary: TermVocabulary, expand: bool, device: torch.device
    ) -> None:
        rows.check()
        count = min(_MOST_IMAGES, len(rows.images))
        pictures = np.linspace(0, len(rows.images) - 1, count).round().astype(np.int64)
        captions = np.flatnonzero(np.isin(rows.caption_image, pictures))
        place = np.searchsorted(pictures, rows.caption_image[captions])
        order = np.argsort(place, kind="stable")
        captions = captions[order]
        self._truth = GroundTruth.from_caption_image(place[order], count)
        self._images = np.asarray(rows.images.rows[pictures], dtype=np.float32)
        self._texts = np.asarray(rows.texts.rows[captions], dtype=np.float32)
        self._own = (
            None if expand else vocabulary.caption_terms([rows.captions[int(row)] for row in captions])
        )
        self._device = device

    @torch.no_grad()
    def measure(self, heads: SparseHeads) -> dict[str, float]:
        """Recalls in per cent (``t2i R@5``, …), ``rsum``, ``flops`` (Eq. 3.1) and non-zeros of either side."""
        images = torch.cat(list(self._weights(heads, "image")))
        scores = np.empty((len(self._images), len(self._texts)), dtype=np.float32)
        used = torch.zeros(images.shape[1], dtype=torch.float64)
        start = 0
        for block in self._weights(heads, "text"):
            scores[:, start : start + len(block)] = (images @ block.T).cpu().numpy()
            used += (block > 0).sum(dim=0).cpu()
            start += len(block)
        result = evaluate(scores, None, self._truth, (*_RECALLS, "rsum"))
        of_images = (images > 0).sum(dim=0).cpu() / len(images)
        of_texts = used / len(self._texts)
        values = {"rsum": result.score("rsum").value, "flops": float(of_images.double() @ of_texts)}
        for direction in DIRECTIONS:
            for name in _RECALLS:
                values[f"{direction} {name}"] = 100 * result.value(name, direction)
        return values | {"image nonzeros": float(of_images.sum()), "text nonzeros": float(of_texts.sum())}

    def _weights(self, heads: SparseHeads, kind: Kind) -> Iterator[Tensor]:
        """(n, |V|) weights of a side, in blocks."""
        rows, head = self._images if kind == "image" else self._texts, head_of(heads, kind)
        for start in range(0, len(rows), _BLOCK):
            weights = head(torch.from_numpy(rows[start : start + _BLOCK]).to(self._device))
            if kind == "text" and self._own is not None:
                weights = weights * term_mask(self._own[start : start + _BLOCK], self._device)
            yield weights
