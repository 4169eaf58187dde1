"""What a ranker that knows nothing gets when it ranks only k items of the gallery.

It draws k items, every k equally likely, and puts them in a random order; the others are unranked. How
many of a query's positives it draws follows the hypergeometric distribution; given that number, they lie
anywhere among the k.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diptych.evaluation.ties import TieGroups

__all__ = ["drawn_positives", "truncated_chance"]


def drawn_positives(relevant: int, gallery: int, ranked: int) -> np.ndarray:
    """Probabilities of 0, 1, …, min(relevant, ranked) positives among ``ranked`` items drawn of a gallery.

    C(R, h) C(N - R, k - h) / C(N, k), each from its neighbour's, so that no binomial has to be written out.
    """
    h = np.arange(min(relevant, ranked) + 1)
    possible = ranked - h <= gallery - relevant
    others = gallery - relevant - ranked + h
    ratio = (relevant - h + 1.0) * (ranked - h + 1.0) / (np.maximum(h, 1) * np.maximum(others, 1.0))
    ratio[0] = 1.0
    # The least possible number stands first among the possible; its weight is any number.
    first = int(np.argmax(possible))
    steps = np.where(possible & (h > first), np.log(np.maximum(ratio, 1e-300)), 0.0)
    logs = np.where(possible, np.cumsum(steps), -np.inf)
    weights = np.exp(logs - logs.max())
    chances: np.ndarray = weights / weights.sum()
    return chances


def truncated_chance(
    values: Callable[[TieGroups], np.ndarray], kinds: np.ndarray, gallery: int, ranked: int
) -> np.ndarray:
    """The expectation of a measure per kind of query, when only ``ranked`` random items are ranked.

    Args:
        values: from tie groups to one value per query.
        kinds: (n,) positives of each kind of query.
        gallery: size of the gallery.
        ranked: how many items are ranked, at most ``gallery``.
    """
    chances = [drawn_positives(int(kind), gallery, ranked) for kind in kinds]
    kind = np.repeat(np.arange(len(kinds)), [len(part) for part in chances])
    drawn = np.concatenate([np.arange(len(part)) for part in chances])
    query = np.flatnonzero(drawn > 0)
    nothing = np.zeros(len(query), dtype=np.int64)
    cases = TieGroups(
        query=query,
        before=nothing,
        found=nothing,
        negatives=np.maximum(ranked - drawn[query], 0),
        positives=drawn[query],
        relevant=kinds[kind],
        gallery=gallery,
        complete=True,
    )
    expected: np.ndarray = np.bincount(
        kind, weights=np.concatenate(chances) * values(cases), minlength=len(kinds)
    )
    return expected
