"""Exploring from plain arrays in one call: scores, which texts belong to which images, and what was printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.evaluation.printed.target import as_target
from diptych.evaluation.variants.axes import Axis
from diptych.evaluation.variants.exploration import TOLERANCE, Exploration
from diptych.evaluation.variants.explore import explore
from diptych.evaluation.variants.recompute import Scored
from diptych.metrics import DIRECTIONS, UNSCORED, Candidates, GroundTruth, Reranked
from diptych.metrics.sources import similarity as similarity_of

GIVEN = "given"  # what the test set is called


def explore_scores(
    scores: np.ndarray,
    ground_truth: object,
    target: object,
    *,
    matching: object = None,
    adds_contrastive: bool = False,  # whether the final score is matching + contrastive score (BLIP)
    also: Mapping[str, Scored] | None = None,  # by label, further test sets of the model: another split
    tolerance: float = TOLERANCE,  # relative distance per cell that counts as explained
    axes: Iterable[str | Axis] | None = None,  # what to vary; everything by default
    changes: int = 4,  # up to how many changes of protocol are combined
    threads: int | None = None,
    image_ids: Sequence[str] | None = None,  # for random captions as of ``Collection.random_captions``
    label: str = "",  # where the target was printed
) -> Exploration:
    """Say which choice of protocol would explain printed numbers, from score matrices.

    For example, are the recalls of a two-stage model those of few re-ranked candidates?

    >>> found = explore_scores(contrastive, caption_image, {"i2t R@1": 64.6, "i2t R@5": 84.5, "i2t R@10": 84.5},
    ...                        matching=matching)  # doctest: +SKIP
    >>> print(found)  # doctest: +SKIP
    Under the default protocol 1 of 3 printed cells are within 5 %, ...
    k_test = 2 explains it: only the 2 best candidates of each query are re-ranked, ...

    ``found.explanations`` has what explains it, the best first; empty where nothing does.

    Args:
        scores: (n_images, n_texts) scores that rank everything: contrastive ones, or the only ones there are.
        ground_truth: a :class:`GroundTruth`; or (n_texts,) the image row of each text; or (n_images, n_texts)
            booleans; or a mapping from image rows to text rows; or how many texts each image has, where they
            stand next to each other; None where that number follows from the shape.
        target: what was printed, shares in per cent; see :func:`diptych.evaluation.printed.as_target`.
        matching: scores of a second stage that reads image and text together: a matrix of the same shape;
            or one of each direction, ``{"i2t": (n_images, n_texts), "t2i": (n_texts, n_images)}``, in which
            -100 marks what was not scored; or :class:`Reranked`. None where there is one stage.
    """
    printed, matrix = as_target(target, label=label), np.asarray(scores)
    truth, metadata = as_ground_truth(ground_truth, matrix.shape)
    whole, reranked = as_matching(matching, matrix, adds_contrastive)
    source = Scored(matrix, truth, whole, reranked, adds_contrastive, metadata, image_ids)
    share, warnings = float(np.mean(matrix == UNSCORED)) if matrix.size else 0.0, []
    if share:
        warnings.append(
            f"{100 * share:.1f} % of the scores are {UNSCORED:g}, which published evaluations write where nothing was "
            "scored: they are cut already, and R@K beyond the candidates is what ties give; with the whole contrastive "
            "scores, and these as matching={'i2t': …, 't2i': …}, the number of candidates is known"
        )
    how: dict[str, Any] = {"tolerance": tolerance, "axes": axes, "changes": changes, "threads": threads}
    return explore({GIVEN: source, **(also or {})}, printed, warnings=warnings, **how)


def explore_rows(
    images: np.ndarray,
    texts: np.ndarray,
    ground_truth: object,
    target: object,
    *,
    similarity: str = "cosine",
    reranked: Reranked | None = None,
    also: Mapping[str, Scored] | None = None,
    image_ids: Sequence[str] | None = None,
    label: str = "",
    **how: Any,
) -> Exploration:
    """Say which choice of protocol would explain printed numbers, from (n_images, d) and (n_texts, d) embeddings.

    They are float32, of unit length where cosine is meant. ``reranked`` are matching scores of each query's best
    candidates; all others as of :func:`explore_scores`.
    """
    truth, metadata = as_ground_truth(ground_truth, (len(images), len(texts)))
    scores = similarity_of(similarity).source(images, texts)
    source = Scored(scores, truth, reranked=reranked, about=metadata, image_ids=image_ids)
    return explore({GIVEN: source, **(also or {})}, as_target(target, label=label), **how)


_FORMS = (
    "a GroundTruth, the image row of each text, a boolean matrix (images, texts), a mapping from image rows to "
    "text rows, or how many texts each image has"
)


def as_ground_truth(given: object, shape: tuple[int, ...]) -> tuple[GroundTruth, dict[str, str]]:
    """Return which texts belong to which images, and what was assumed for it."""
    if len(shape) != 2:
        text = f"scores of shape {shape} are no matrix"
        raise DataError(text, "give (n_images, n_texts): a row for each image")
    n_images, n_texts = shape
    if isinstance(given, GroundTruth):
        return given, {}
    if given is None or isinstance(given, (int, np.integer)):
        each, rest = divmod(n_texts, n_images) if n_images else (0, n_texts)
        if rest or not each or (given is not None and given != each):
            number = "" if given is None else f", {given} of each"
            raise UsageError(
                f"{n_texts:,} texts of {n_images:,} images{number}: which belong together does not follow",
                "rows of the scores are images: transpose them" if n_texts < n_images else f"give {_FORMS}",
            )
        truth = GroundTruth.from_caption_image(np.repeat(np.arange(n_images), each), n_images)
        assumed = f"{each} texts of each image, next to each other (assumed)"
        return truth, {"ground truth": assumed} if given is None else {}
    if isinstance(given, Mapping):
        pairs = [(int(image), int(text)) for image, texts in given.items() for text in np.atleast_1d(texts)]
        images, texts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return GroundTruth.from_pairs(images, texts, n_images, n_texts), {}
    array = np.asarray(given)
    if array.dtype == np.bool_ and array.ndim == 2:
        if array.shape != shape:
            raise DataError(f"ground truth of shape {array.shape} for scores of shape {shape}", _FORMS)
        image_rows, text_rows = np.nonzero(array)
        return GroundTruth.from_pairs(image_rows, text_rows, n_images, n_texts), {}
    if array.ndim == 1 and array.dtype.kind in "iu":
        if len(array) != n_texts:
            turned = len(array) == n_images
            raise DataError(
                f"ground truth of {len(array):,} texts for scores of {n_images:,} images and {n_texts:,} texts",
                "rows of the scores are images: transpose them" if turned else "name the image of every text",
            )
        return GroundTruth.from_caption_image(array, n_images), {}
    raise UsageError(f"ground truth of type {type(given).__name__} is not understood", f"give {_FORMS}")


def as_matching(
    given: object, scores: np.ndarray, adds_contrastive: bool
) -> tuple[np.ndarray | None, Reranked | None]:
    """Return matching scores of everything, or of candidates; see :func:`explore_scores`."""
    if given is None or isinstance(given, Reranked):
        return None, given
    if isinstance(given, Mapping) or (isinstance(given, (tuple, list)) and len(given) == 2):
        sides = dict(given) if isinstance(given, Mapping) else dict(zip(DIRECTIONS, given, strict=True))
        if set(sides) != set(DIRECTIONS):
            raise UsageError(f"matching scores of {', '.join(map(str, sides))}", "give i2t and t2i")
        i2t, t2i = (np.asarray(sides[name]) for name in DIRECTIONS)
        for name, one, shape in (("i2t", i2t, scores.shape), ("t2i", t2i, scores.shape[::-1])):
            if one.shape != shape:
                text = f"matching scores {name} of shape {one.shape}"
                raise DataError(text, f"{shape} is expected: a row for each query")
        if not _unscored(i2t).any() and np.array_equal(i2t, t2i.T):
            return i2t, None
        both = (_candidates(i2t, scores, "i2t"), _candidates(t2i, scores.T, "t2i"))
        return None, Reranked(*both, adds_contrastive=adds_contrastive)
    matrix = np.asarray(given)
    if matrix.ndim == 2 and (missing := int(_unscored(matrix).sum())):
        raise UsageError(
            f"{missing:,} matching scores are missing (-100, NaN or infinite)",
            "what was scored differs by direction: give {'i2t': (n_images, n_texts), 't2i': (n_texts, n_images)}",
        )
    return matrix, None


def _unscored(matrix: np.ndarray) -> np.ndarray:
    return np.asarray((matrix == UNSCORED) | ~np.isfinite(matrix))


def _candidates(matching: np.ndarray, scores: np.ndarray, what: str) -> Candidates:
    """Return the scored items of every query, best contrastive score first."""
    scored = ~_unscored(matching)
    counts = np.count_nonzero(scored, axis=1)
    k, row = int(counts.max(initial=0)), int(counts.argmin())
    if not k or counts[row] != k:
        text = f"matching scores {what}: query {row} has {int(counts[row])} scored items, others {k}"
        raise DataError(text, "score as many of each")
    items = np.nonzero(scored)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(scores, items, axis=1), axis=1, kind="stable")
    items = np.take_along_axis(items, order, axis=1).astype(np.int64)
    return Candidates(
        items, *(np.take_along_axis(of, items, axis=1).astype("f4") for of in (scores, matching))
    )
