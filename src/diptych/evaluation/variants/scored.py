"""Where a variant's scores come from: rows or a matrix, and matching scores where there are any.

Everything is asked for parts of the test set: some images by some texts, as a protocol with fewer captions
or smaller galleries sees them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from diptych.core.draws import keys_of
from diptych.core.errors import DataError, UsageError
from diptych.evaluation.variants.choosing import best, in_order, kept
from diptych.evaluation.variants.settings import NotPossible
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.ground_truth import Direction, GroundTruth
from diptych.metrics.ranks import check_sizes
from diptych.metrics.similarities import similarity as similarity_of
from diptych.metrics.sources import GivenScores, Rows, ScoreSource
from diptych.metrics.topk import best_of


class Scored(Protocol):
    """A test set with its scores.

    Attributes:
        truth: who belongs to whom.
        about: what the scores depend on; JSON-able.
        most_matched: of how many candidates per query matching scores are there: 0 for none, None for all.
        image_keys: (n_images,) whole numbers that follow the images wherever they stand: of their ids where
            these are known, else their rows.
    """

    truth: GroundTruth
    about: Mapping[str, Any]
    most_matched: int | None
    image_keys: np.ndarray

    def part(self, images: Rows, texts: Rows, matched: bool) -> ScoreSource:
        """Scores of some images and texts; of the matching head where ``matched``."""

    def candidates(
        self, direction: Direction, images: Rows, texts: Rows, k: int, matched: bool
    ) -> tuple[Candidates, bool]:
        """The ``k`` best of each query by contrastive score, and whether the final score adds it.

        Without ``matched`` the final score ranks as the contrastive score does. Fewer than ``k`` where the
        gallery is smaller, or where some query has no more stored matching scores in it.
        """


class RowScores:
    """Scores of image rows and text rows, with stored matching scores of their candidates.

    Args:
        images: (n, d) float32, possibly memory-mapped.
        texts: (m, d) float32.
    """

    def __init__(
        self,
        images: np.ndarray,
        texts: np.ndarray,
        truth: GroundTruth,
        *,
        similarity: str = "cosine",
        reranked: Reranked | None = None,
        about: Mapping[str, Any] | None = None,
        image_ids: Sequence[str] | None = None,
    ) -> None:
        self._source = similarity_of(similarity).source(images, texts)
        check_sizes(self._source, truth)
        self.truth = truth
        self.about: Mapping[str, Any] = dict(about or {})
        self.image_keys = _keys(image_ids, truth)
        self._reranked = _checked(reranked, truth)
        self.most_matched: int | None = 0 if reranked is None else reranked.k

    def part(self, images: Rows, texts: Rows, matched: bool) -> ScoreSource:
        """Scores of some images and texts."""
        if matched:
            raise NotPossible("only some candidates have matching scores", "choose how many are ranked")
        return self._source.part(images, texts)

    def candidates(
        self, direction: Direction, images: Rows, texts: Rows, k: int, matched: bool
    ) -> tuple[Candidates, bool]:
        """The ``k`` best of each query."""
        if matched:
            return kept(self._reranked, direction, images, texts, k)
        items, scores = best_of(self._source.part(images, texts), direction, k)
        return in_order(items, scores), False


class MatrixScores:
    """A contrastive score matrix, and matching scores as a matrix or of stored candidates.

    Args:
        scores: (n_images, n_texts) contrastive scores.
        matching: (n_images, n_texts) scores of the matching head.
    """

    def __init__(
        self,
        scores: np.ndarray,
        truth: GroundTruth,
        *,
        matching: np.ndarray | None = None,
        reranked: Reranked | None = None,
        adds_contrastive: bool = False,
        about: Mapping[str, Any] | None = None,
        image_ids: Sequence[str] | None = None,
    ) -> None:
        if matching is not None and reranked is not None:
            raise UsageError("matching scores as a matrix and of candidates", "give one of them")
        self.truth = truth
        self.about: Mapping[str, Any] = dict(about or {})
        self.image_keys = _keys(image_ids, truth)
        self._scores = _matrix(scores, truth)
        self._matching = None if matching is None else _matrix(matching, truth)
        self._adds = adds_contrastive
        self._reranked = _checked(reranked, truth)
        self.most_matched: int | None = 0
        if matching is not None:
            self.most_matched = None
        elif reranked is not None:
            self.most_matched = reranked.k

    def part(self, images: Rows, texts: Rows, matched: bool) -> ScoreSource:
        """Scores of some images and texts."""
        if not matched:
            return GivenScores(self._scores[images][:, texts])
        if self._matching is None:
            raise NotPossible("only some candidates have matching scores", "choose how many are ranked")
        final = self._matching[images][:, texts]
        return GivenScores(final + self._scores[images][:, texts] if self._adds else final)

    def candidates(
        self, direction: Direction, images: Rows, texts: Rows, k: int, matched: bool
    ) -> tuple[Candidates, bool]:
        """The ``k`` best of each query."""
        if matched and self._matching is None:
            return kept(self._reranked, direction, images, texts, k)
        scores = _asked(self._scores[images][:, texts], direction)
        items, contrastive = best(scores, min(k, scores.shape[1]))
        if not matched or self._matching is None:
            return in_order(items, contrastive), False
        matching = _asked(self._matching[images][:, texts], direction)
        final = np.take_along_axis(matching, items, axis=1)
        return Candidates(items, contrastive.astype(np.float32), final.astype(np.float32)), self._adds


def _matrix(scores: np.ndarray, truth: GroundTruth) -> np.ndarray:
    source = GivenScores(scores)
    check_sizes(source, truth)
    return source.scores


def _keys(image_ids: Sequence[str] | None, truth: GroundTruth) -> np.ndarray:
    if image_ids is None:
        return np.arange(truth.n_images)
    if len(image_ids) != truth.n_images:
        raise DataError(f"{len(image_ids):,} image ids for {truth.n_images:,} images")
    return keys_of(image_ids)


def _checked(reranked: Reranked | None, truth: GroundTruth) -> Reranked | None:
    if reranked is None:
        return None
    have, want = (reranked.n_images, reranked.n_texts), (truth.n_images, truth.n_texts)
    if have != want:
        raise DataError(
            f"candidates of {have[0]:,} images and {have[1]:,} texts for {want[0]:,} images and {want[1]:,} texts",
            "give the candidates of the same split",
        )
    reranked.check()
    return reranked


def _asked(scores: np.ndarray, direction: Direction) -> np.ndarray:
    return scores if direction == "i2t" else scores.T
