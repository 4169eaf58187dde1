"""Exploring from plain arrays in one call: scores, who belongs to whom, and what was printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from diptych.evaluation.printed.given import as_target
from diptych.evaluation.variants.axis import Axis, Inputs
from diptych.evaluation.variants.exploration import Exploration
from diptych.evaluation.variants.explore import TOLERANCE, explore
from diptych.evaluation.variants.given import already_cut, as_ground_truth, as_matching
from diptych.evaluation.variants.scored import MatrixScores, RowScores, Scored
from diptych.metrics.candidates import Reranked

GIVEN = "given"
"""What the test set is called."""


def explore_scores(
    scores: np.ndarray,
    ground_truth: object,
    target: object,
    *,
    matching: object = None,
    adds_contrastive: bool = False,
    also: Mapping[str, Scored] | None = None,
    tolerance: float = TOLERANCE,
    axes: Iterable[str | Axis] | None = None,
    changes: int = 4,
    threads: int | None = None,
    image_ids: Sequence[str] | None = None,
    label: str = "",
) -> Exploration:
    """Say which choice of protocol would explain printed numbers, from score matrices.

    For example, are the recalls of a two-stage model those of few re-ranked candidates?

    >>> found = explore_scores(contrastive, caption_image, {"i2t R@1": 64.6, "i2t R@5": 84.5, "i2t R@10": 84.5},
    ...                        matching=matching)  # doctest: +SKIP
    >>> print(found)  # doctest: +SKIP
    Under the default protocol 1 of 3 printed cells are within 5 %, ...
    k_test = 2 explains it: only the 2 best candidates of each query are re-ranked, ...

    ``found.explanations`` has what explains it, the best first; ``found.explanations[0].line()`` is
    ``"k_test = 2"``. Empty where nothing does.

    Args:
        scores: (n_images, n_texts) scores that rank everything: contrastive ones, or the only ones there are.
        ground_truth: a :class:`GroundTruth`; or (n_texts,) the image row of each text; or (n_images, n_texts)
            booleans; or a mapping from image rows to text rows; or how many texts each image has, where they
            stand next to each other; None where that number follows from the shape.
        target: what was printed, shares in per cent: ``{"i2t R@1": 64.6, ...}``, ``{"i2t": [64.6, 84.48, 84.5]}``,
            ``["i2t R@1=64.6", ...]`` or a Target; see :func:`diptych.evaluation.printed.as_target`.
        matching: scores of a second stage that reads picture and text together: a matrix of the same shape;
            or one of each direction, ``{"i2t": (n_images, n_texts), "t2i": (n_texts, n_images)}``, in which
            -100 marks what was not scored; or :class:`Reranked`. None where there is one stage.
        adds_contrastive: whether the final score is matching + contrastive score (BLIP).
        also: further test sets of the same model by label, to find that another split was scored.
        tolerance: relative distance per cell that counts as explained.
        axes: what to vary, by name; everything by default (:data:`AXES`).
        changes: up to how many changes of protocol are combined.
        threads: workers; all available cores by default.
        image_ids: one per image, so that random captions are those of ``Collection.random_captions``.
        label: where the target was printed.

    Raises:
        UsageError: a target, ground truth or matching scores in a form that is not understood.
        DataError: sizes that disagree.
        NumericalError: a score that is not finite.
        UnknownNameError: a cell of a measure, or an axis, that does not exist.
    """
    wanted = as_target(target, label=label)
    matrix = np.asarray(scores)
    truth, assumed = as_ground_truth(ground_truth, matrix.shape)
    whole, reranked = as_matching(matching, matrix, adds_contrastive)
    about: dict[str, Any] = {"ground truth": assumed} if assumed else {}
    source = MatrixScores(
        matrix,
        truth,
        matching=whole,
        reranked=reranked,
        adds_contrastive=adds_contrastive,
        about=about,
        image_ids=image_ids,
    )
    inputs = Inputs({GIVEN: source, **(also or {})}, wanted, already_cut(matrix))
    return explore(inputs, tolerance=tolerance, axes=axes, **_depth(changes), threads=threads)


def explore_rows(
    images: np.ndarray,
    texts: np.ndarray,
    ground_truth: object,
    target: object,
    *,
    similarity: str = "cosine",
    reranked: Reranked | None = None,
    also: Mapping[str, Scored] | None = None,
    tolerance: float = TOLERANCE,
    axes: Iterable[str | Axis] | None = None,
    changes: int = 4,
    threads: int | None = None,
    image_ids: Sequence[str] | None = None,
    label: str = "",
) -> Exploration:
    """The same from embeddings: (n_images, d) and (n_texts, d) float32 rows, unit rows if cosine is meant.

    Args:
        images: one row per image.
        texts: one row per text.
        ground_truth, target, also, tolerance, axes, changes, threads, image_ids, label: as of :func:`explore_scores`.
        similarity: by what rows are compared.
        reranked: matching scores of each query's best candidates.

    Raises:
        UsageError, DataError, NumericalError, UnknownNameError: as :func:`explore_scores`.
    """
    wanted = as_target(target, label=label)
    truth, assumed = as_ground_truth(ground_truth, (len(images), len(texts)))
    about: dict[str, Any] = {"ground truth": assumed} if assumed else {}
    source = RowScores(
        images, texts, truth, similarity=similarity, reranked=reranked, about=about, image_ids=image_ids
    )
    inputs = Inputs({GIVEN: source, **(also or {})}, wanted)
    return explore(inputs, tolerance=tolerance, axes=axes, **_depth(changes), threads=threads)


def _depth(changes: int) -> dict[str, int]:
    return {"exhaustive": max(1, min(2, changes)), "changes": changes}
