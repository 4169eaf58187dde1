"""How good a head is now, on validation rows: recall both ways and what a search would cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import evaluate
from diptych.metrics import DIRECTIONS, GroundTruth
from diptych.sparse.head import Kind, SparseHeads, head_of
from diptych.sparse.pairs import check_pairs, pairs_fingerprint, term_mask
from diptych.sparse.vocabulary import TermVocabulary

_RECALLS = ("R@1", "R@5", "R@10")
_MOST_IMAGES = 1000
_BLOCK = 512


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Dense rows that no training saw, and which belong together.

    Attributes:
        images: dense rows of pictures.
        texts: dense rows of captions.
        captions: the captions themselves.
        caption_image: (n_captions,) picture of each caption.
    """

    images: Embeddings
    texts: Embeddings
    captions: Sequence[str]
    caption_image: np.ndarray

    @classmethod
    def of(cls, encoded: EncodedCollection, captions: Sequence[str]) -> ValidationRows:
        """Those of an embedded collection."""
        return cls(encoded.images, encoded.texts, captions, encoded.caption_image)

    @property
    def fingerprint(self) -> str:
        """Name by content: rows by what made them, captions, which is whose."""
        return pairs_fingerprint(self.images, self.texts, self.captions, self.caption_image)


class Validation:
    """Measures a head as it is searched with later: with expansion, unless the head never has any.

    Of more than 1,000 pictures as many are taken, evenly spaced, with all their captions.
    """

    def __init__(
        self, rows: ValidationRows, vocabulary: TermVocabulary, expand: bool, device: torch.device
    ) -> None:
        check_pairs(rows.images, rows.texts, rows.captions, rows.caption_image)
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
