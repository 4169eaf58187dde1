"""counting: what R@K is of a query with several positives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from diptych.evaluation.variants.axes.captions import place_within_image
from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Counting, Relevance, Settings, Step
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.ties import TieGroups


def _hits(groups: TieGroups, cutoff: int) -> np.ndarray:
    """(n_queries,) expected positives among the first ``cutoff``."""
    places = np.clip(cutoff - groups.before, 0, groups.size)
    expected = places * groups.positives / groups.size
    hits: np.ndarray = np.bincount(groups.query, weights=expected, minlength=groups.n_queries)
    return hits


def _of_all(groups: TieGroups, cutoff: int) -> np.ndarray:
    shares: np.ndarray = _hits(groups, cutoff) / np.maximum(groups.relevant, 1)
    return shares


def _of_possible(groups: TieGroups, cutoff: int) -> np.ndarray:
    shares: np.ndarray = _hits(groups, cutoff) / np.clip(groups.relevant, 1, cutoff)
    return shares


def _first_of_image(truth: GroundTruth) -> GroundTruth:
    """Of an image's captions the first alone is relevant to it; captions ask for their image as before."""
    positives = truth.i2t
    own = truth.text_image[positives.rows] == positives.queries
    first = own & (place_within_image(truth)[positives.rows] == 0)
    return GroundTruth.from_directions(
        (positives.queries[first], positives.rows[first]),
        (truth.t2i.rows, truth.t2i.queries),
        truth.n_images,
        truth.n_texts,
        text_image=truth.text_image,
        asked={name: np.flatnonzero(mask) for name, mask in truth.asked.items()},
    )


_OF_ALL: Step[Counting] = Step("share of all", _of_all)
_OF_POSSIBLE: Step[Counting] = Step("share of possible", _of_possible)
_FIRST: Step[Relevance] = Step("first caption", _first_of_image)


def _several_stay(settings: Settings) -> bool:
    """Whether images keep more than one caption; all texts or the first five, as far as can be seen here."""
    return settings.keep is None or settings.keep.name == "first five"


def _choices(inputs: Inputs) -> Sequence[Choice]:
    any_of_k = Choice(
        "any of k",
        "a query with one positive found is a hit",
        lambda settings: replace(settings, counting=None),
    )
    several = any(
        source.truth.positives(name).counts.max(initial=0) > 1
        for source in inputs.sources.values()
        for name in ("i2t", "t2i")
    )
    if not several:
        return [any_of_k]
    return [
        any_of_k,
        Choice(
            "share of all",
            "R@K is the share of a query's positives that are found",
            lambda settings: replace(settings, counting=_OF_ALL),
            _several_stay,
        ),
        Choice(
            "share of possible",
            "R@K is positives found over min(K, positives)",
            lambda settings: replace(settings, counting=_OF_POSSIBLE),
            _several_stay,
        ),
        Choice(
            "first caption",
            "of an image's captions the first alone counts, all others stay in the gallery",
            lambda settings: replace(settings, relevance=_FIRST),
            _several_stay,
        ),
    ]


COUNTING = AXES.add(
    Axis(
        name="counting",
        description="what R@K counts where a query has several positives: any of them, their share, the first",
        choices=_choices,
    )
)
