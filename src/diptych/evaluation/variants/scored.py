"""A test set with its scores: rows or a matrix, and matching scores where there are any.

Everything is asked for parts of the test set: some images by some texts, as a protocol with fewer captions
or smaller galleries sees them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.core.draws import keys_of
from diptych.core.errors import DataError, UsageError
from diptych.evaluation.variants.settings import NotPossible
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.ground_truth import Direction, GroundTruth
from diptych.metrics.ranks import check_sizes
from diptych.metrics.sources import GivenScores, Rows, ScoreSource
from diptych.metrics.sources import similarity as similarity_of
from diptych.metrics.topk import best_of


class Scored:
    """A test set with contrastive scores, and matching scores as a matrix or of stored candidates.

    Attributes:
        truth: which texts are relevant to which images.
        about: what the scores depend on; JSON-able.
        most_matched: of how many candidates per query matching scores are there: 0 for none, None for all.
        image_keys: (n_images,) whole numbers that follow the images wherever they stand: of their ids where
            these are known, else their rows.
    """

    def __init__(
        self,
        source: ScoreSource,
        truth: GroundTruth,
        *,
        matching: GivenScores | None = None,
        reranked: Reranked | None = None,
        adds_contrastive: bool = False,
        about: Mapping[str, Any] | None = None,
        image_ids: Sequence[str] | None = None,
    ) -> None:
        if matching is not None and reranked is not None:
            raise UsageError("matching scores as a matrix and of candidates", "give one of them")
        for one in (source, matching):
            if one is not None:
                check_sizes(one, truth)
        if image_ids is not None and len(image_ids) != truth.n_images:
            raise DataError(f"{len(image_ids):,} image ids for {truth.n_images:,} images")
        if reranked is not None:
            have, want = (reranked.n_images, reranked.n_texts), (truth.n_images, truth.n_texts)
            if have != want:
                raise DataError(
                    f"candidates of {have[0]:,} images and {have[1]:,} texts for {want[0]:,} images and "
                    f"{want[1]:,} texts",
                    "give the candidates of the same split",
                )
            reranked.check()
        self.truth = truth
        self.about: Mapping[str, Any] = dict(about or {})
        self.image_keys = np.arange(truth.n_images) if image_ids is None else keys_of(image_ids)
        self._source, self._matching, self._reranked = source, matching, reranked
        self._adds = adds_contrastive
        self.most_matched: int | None = 0 if reranked is None else reranked.k
        if matching is not None:
            self.most_matched = None

    def part(self, images: Rows, texts: Rows, matched: bool) -> ScoreSource:
        """Return scores of some images and texts; of the matching head where ``matched``."""
        part = self._source.part(images, texts)
        if not matched:
            return part
        if self._matching is None:
            raise NotPossible("only some candidates have matching scores", "choose how many are ranked")
        final = self._matching.part(images, texts)
        if not self._adds:
            return final
        assert isinstance(part, GivenScores)
        return GivenScores(final.scores + part.scores)

    def candidates(
        self, direction: Direction, images: Rows, texts: Rows, k: int, matched: bool
    ) -> tuple[Candidates, bool]:
        """Return the ``k`` best of each query by contrastive score, and whether the final score adds it.

        Without ``matched`` the final score ranks as the contrastive score does. Fewer than ``k`` where the
        gallery is smaller, or where some query has no more stored matching scores in it.
        """
        if matched and self._matching is None:
            return _stored(self._reranked, direction, images, texts, k)
        items, contrastive = best_of(self._source.part(images, texts), direction, k)
        if not matched or self._matching is None:
            return _in_order(items, contrastive), False
        matching = self._matching.part(images, texts).scores
        turned = matching if direction == "i2t" else matching.T
        final = np.take_along_axis(turned, items, axis=1)
        return Candidates(items, contrastive.astype(np.float32), final.astype(np.float32)), self._adds


class RowScores(Scored):
    """Scores of (n, d) image rows and (m, d) text rows, with stored matching scores of their candidates."""

    def __init__(
        self,
        images: np.ndarray,
        texts: np.ndarray,
        truth: GroundTruth,
        *,
        similarity: str = "cosine",
        **options: Any,
    ) -> None:
        super().__init__(similarity_of(similarity).source(images, texts), truth, **options)


class MatrixScores(Scored):
    """Scores of a (n_images, n_texts) contrastive matrix, and of a matching matrix of the same shape."""

    def __init__(
        self, scores: np.ndarray, truth: GroundTruth, *, matching: np.ndarray | None = None, **options: Any
    ) -> None:
        second = None if matching is None else GivenScores(matching)
        super().__init__(GivenScores(scores), truth, matching=second, **options)


def _in_order(items: np.ndarray, scores: np.ndarray) -> Candidates:
    """Return candidates that the contrastive score itself ranks.

    Their final score is minus how many different scores stand above: float32 cannot tell all of float64
    apart, small whole numbers it can.
    """
    steps = np.zeros(scores.shape, dtype=np.float32)
    np.cumsum(scores[:, 1:] < scores[:, :-1], axis=1, out=steps[:, 1:])
    return Candidates(items, scores.astype(np.float32), -steps)


def _stored(
    reranked: Reranked | None, direction: Direction, images: Rows, texts: Rows, k: int
) -> tuple[Candidates, bool]:
    """Return stored candidates of some queries, without those that are not in the part's gallery."""
    if reranked is None:
        raise NotPossible("there are no matching scores", "re-rank these embeddings too")
    one = reranked.candidates(direction)
    queries, gallery = (images, texts) if direction == "i2t" else (texts, images)
    size = reranked.n_texts if direction == "i2t" else reranked.n_images
    rows = np.arange(size)[gallery]
    place = np.full(size, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    items = place[one.items[queries]]
    inside = items >= 0
    least = int(np.count_nonzero(inside, axis=1).min(initial=one.k))
    if not least:
        raise NotPossible(
            "some query has no stored candidate left in the smaller gallery", "re-rank more candidates"
        )
    order = np.argsort(~inside, axis=1, kind="stable")[:, : min(k, least)]
    arrays = (items, one.contrastive[queries], one.matching[queries])
    return Candidates(*(np.take_along_axis(one, order, axis=1) for one in arrays)), reranked.adds_contrastive
