"""What is given, in the forms in which people have it: who belongs to whom, and matching scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.metrics.candidates import UNSCORED, Candidates, Reranked
from diptych.metrics.ground_truth import DIRECTIONS, GroundTruth

_FORMS = (
    "a GroundTruth, the image row of each text, a boolean matrix (images, texts), a mapping from image rows to "
    "text rows, or how many texts each image has"
)


def as_ground_truth(given: object, shape: tuple[int, ...]) -> tuple[GroundTruth, str]:
    """Who belongs to whom, and what was assumed for it; empty where nothing was."""
    if len(shape) != 2:
        raise DataError(
            f"scores of shape {shape} are no matrix", "give (n_images, n_texts): a row for each image"
        )
    n_images, n_texts = shape
    if isinstance(given, GroundTruth):
        return given, ""
    if given is None or isinstance(given, (int, np.integer)):
        return _of_each(given, n_images, n_texts)
    if isinstance(given, Mapping):
        pairs = [
            (int(image), int(text))
            for image, texts in given.items()
            for text in (texts if isinstance(texts, (Sequence, np.ndarray)) else [texts])
        ]
        images, texts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return GroundTruth.from_pairs(images, texts, n_images, n_texts), ""
    array = np.asarray(given)
    if array.dtype == np.bool_ and array.ndim == 2:
        if array.shape != shape:
            raise DataError(f"ground truth of shape {array.shape} for scores of shape {shape}", _FORMS)
        image_rows, text_rows = np.nonzero(array)
        return GroundTruth.from_pairs(image_rows, text_rows, n_images, n_texts), ""
    if array.ndim == 1 and array.dtype.kind in "iu":
        if len(array) != n_texts:
            raise DataError(
                f"ground truth of {len(array):,} texts for scores of {n_images:,} images and {n_texts:,} texts",
                "rows of the scores are images: transpose them"
                if len(array) == n_images
                else "name the image of every text",
            )
        return GroundTruth.from_caption_image(array, n_images), ""
    raise UsageError(f"ground truth of type {type(given).__name__} is not understood", f"give {_FORMS}")


def _of_each(given: int | np.integer | None, n_images: int, n_texts: int) -> tuple[GroundTruth, str]:
    each, rest = divmod(n_texts, n_images) if n_images else (0, n_texts)
    if rest or not each or (given is not None and given != each):
        wanted = "" if given is None else f", {given} of each"
        raise UsageError(
            f"{n_texts:,} texts of {n_images:,} images{wanted}: who belongs to whom does not follow",
            "rows of the scores are images: transpose them" if n_texts < n_images else f"give {_FORMS}",
        )
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(n_images), each), n_images)
    return truth, "" if given is not None else f"{each} texts of each image, next to each other (assumed)"


def already_cut(scores: np.ndarray) -> tuple[str, ...]:
    """What has to be said of scores that hold the mark of what was not scored."""
    share = float(np.mean(scores == UNSCORED)) if scores.size else 0.0
    if not share:
        return ()
    return (
        f"{100 * share:.1f} % of the scores are {UNSCORED:g}, which published evaluations write where nothing was "
        "scored: they are cut already, and R@K beyond the candidates is what ties give; with the whole contrastive "
        "scores, and these as matching={'i2t': …, 't2i': …}, the number of candidates can be told",
    )


def as_matching(
    given: object, scores: np.ndarray, adds_contrastive: bool
) -> tuple[np.ndarray | None, Reranked | None]:
    """Matching scores of everything, or of candidates; see ``explore_scores``."""
    if given is None:
        return None, None
    if isinstance(given, Reranked):
        return None, given
    if isinstance(given, Mapping) or (isinstance(given, (tuple, list)) and len(given) == 2):
        sides = dict(given) if isinstance(given, Mapping) else dict(zip(DIRECTIONS, given, strict=True))
        if set(sides) != set(DIRECTIONS):
            raise UsageError(f"matching scores of {', '.join(map(str, sides))}", "give i2t and t2i")
        i2t, t2i = (np.asarray(sides[name]) for name in DIRECTIONS)
        n_images, n_texts = scores.shape
        for name, one, shape in (("i2t", i2t, (n_images, n_texts)), ("t2i", t2i, (n_texts, n_images))):
            if one.shape != shape:
                raise DataError(
                    f"matching scores {name} of shape {one.shape}",
                    f"{shape} is expected: a row for each query",
                )
        if not _unscored(i2t).any() and np.array_equal(i2t, t2i.T):
            return i2t, None
        both = (_candidates(i2t, scores, "i2t"), _candidates(t2i, scores.T, "t2i"))
        return None, Reranked(*both, adds_contrastive=adds_contrastive)
    matrix = np.asarray(given)
    if matrix.ndim == 2 and _unscored(matrix).any():
        raise UsageError(
            f"{int(_unscored(matrix).sum()):,} matching scores are missing (-100, NaN or infinite)",
            "what was scored differs by direction: give {'i2t': (n_images, n_texts), 't2i': (n_texts, n_images)}",
        )
    return matrix, None


def _unscored(matrix: np.ndarray) -> np.ndarray:
    missing: np.ndarray = (matrix == UNSCORED) | ~np.isfinite(matrix)
    return missing


def _candidates(matching: np.ndarray, scores: np.ndarray, what: str) -> Candidates:
    """The scored items of every query, best contrastive score first."""
    there = ~_unscored(matching)
    counts = np.count_nonzero(there, axis=1)
    k = int(counts.max(initial=0))
    if not k or counts.min() != k:
        row = int(counts.argmin())
        raise DataError(
            f"matching scores {what}: query {row} has {int(counts[row])} scored items, others {k}",
            "score as many of each",
        )
    items = np.nonzero(there)[1].reshape(-1, k)
    first = np.take_along_axis(scores, items, axis=1)
    order = np.argsort(-first, axis=1, kind="stable")
    items = np.take_along_axis(items, order, axis=1)
    return Candidates(
        items.astype(np.int64),
        np.take_along_axis(first, order, axis=1).astype(np.float32),
        np.take_along_axis(matching, items, axis=1).astype(np.float32),
    )
