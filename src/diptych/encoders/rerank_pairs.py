"""The pairs of the candidates of both directions, each once, by image and text; re-ranking of arrays in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from diptych.core.errors import MismatchError, UsageError
from diptych.encoders.matching import MatchingEncoder, PairInputs, finite_scores
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.ground_truth import Direction
from diptych.metrics.topk import top_k

Chosen = Mapping[Direction, tuple[np.ndarray, np.ndarray]]
"""Of each direction, (queries, k) rows of the gallery and their contrastive scores."""


def pair_keys(chosen: Chosen) -> np.ndarray:
    """(p,) int64, ascending: image · texts + text of every pair."""
    return np.unique(np.concatenate([_keys_of(chosen, name).reshape(-1) for name in chosen]))


def _keys_of(chosen: Chosen, direction: Direction) -> np.ndarray:
    items, n_texts = np.asarray(chosen[direction][0], dtype=np.int64), len(chosen["t2i"][0])
    queries = np.arange(len(items))[:, None]
    return queries * n_texts + items if direction == "i2t" else items * n_texts + queries


def matched(
    head: MatchingEncoder,
    images: PairInputs,
    rows: np.ndarray,
    texts: PairInputs,
    read: np.ndarray,
    batch: int,
) -> Iterator[np.ndarray]:
    """Yield the head's scores of image ``rows[i]``, which ascend, with text ``read[i]``, a batch at a time."""
    for begin in range(0, len(rows), batch):
        mine, here = rows[begin : begin + batch], read[begin : begin + batch]
        low, high = int(mine[0]), int(mine[-1]) + 1  # sorted: a slice, which copies nothing
        scores = head.match_rows(
            {name: values[low:high] for name, values in images.items()},
            mine - low,
            {name: np.asarray(values[here]) for name, values in texts.items()},
        )
        if scores.shape != mine.shape:
            raise MismatchError(
                f"the matching head gave scores of shape {scores.shape} for {len(mine)} pairs",
                "match has to give one number per pair",
            )
        yield finite_scores(scores)


def reranked(
    chosen: Chosen, keys: np.ndarray, scores: np.ndarray, adds_contrastive: bool, about: Mapping[str, object]
) -> Reranked:
    """Return the candidates with the scores of their pairs."""
    sides = {
        name: Candidates(items, contrastive, scores[np.searchsorted(keys, _keys_of(chosen, name))])
        for name, (items, contrastive) in chosen.items()
    }
    return Reranked(sides["i2t"], sides["t2i"], adds_contrastive, about)


def rerank_prepared(
    encoder: MatchingEncoder,
    image_rows: np.ndarray,
    text_rows: np.ndarray,
    images: PairInputs,
    texts: PairInputs,
    k: int,
    *,
    batch: int = 64,
) -> Reranked:
    """Score the ``k`` best texts of every image and the ``k`` best images of every text with the head."""
    if batch < 1:
        raise UsageError(f"batch is {batch}, it must be at least 1")
    for what, rows, inputs in (("images", image_rows, images), ("texts", text_rows, texts)):
        counts = sorted({len(values) for values in inputs.values()})
        if counts != [len(rows)]:
            raise MismatchError(
                f"{len(rows):,} rows of {what}, and inputs of {', '.join(map(str, counts)) or 'nothing'}",
                "the head needs the inputs of the same items, in the same order",
            )
    found: Chosen = {"i2t": top_k(image_rows, text_rows, k), "t2i": top_k(text_rows, image_rows, k)}
    chosen: Chosen = {name: (items, scores.astype(np.float32)) for name, (items, scores) in found.items()}
    keys = pair_keys(chosen)
    rows, read = np.divmod(keys, len(text_rows))
    scores = np.concatenate(list(matched(encoder, images, rows, texts, read, batch)))
    return reranked(chosen, keys, scores, encoder.adds_contrastive, {})
