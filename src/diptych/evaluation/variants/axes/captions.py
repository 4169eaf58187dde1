"""captions: which captions of each image are there, as queries and as gallery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from diptych.core.draws import draw_uniform
from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Keep, Settings, Step
from diptych.metrics.ground_truth import GroundTruth

RANDOM_SEEDS = (0, 1, 2)
"""Seeds of the random captions: several, so that one that fits by luck can be told."""

_FIVE = 5


def place_within_image(truth: GroundTruth) -> np.ndarray:
    """(n_texts,) which caption of its image each text is, from 0; -1 for one of no image."""
    home = truth.text_image
    order = np.argsort(home, kind="stable")
    sorted_home = home[order]
    first = np.searchsorted(sorted_home, sorted_home)
    place = np.empty(len(home), dtype=np.int64)
    place[order] = np.arange(len(home)) - first
    place[home < 0] = -1
    return place


def _first(truth: GroundTruth, keys: np.ndarray, count: int) -> np.ndarray:
    place = place_within_image(truth)
    return np.flatnonzero((place >= 0) & (place < count))


def _random(truth: GroundTruth, keys: np.ndarray, seed: int) -> np.ndarray:
    """The draw of ``Collection.random_captions``: of each image the caption with the least number."""
    place = place_within_image(truth)
    draws = draw_uniform(seed, keys[truth.text_image], place)
    order = np.lexsort((draws, truth.text_image))
    home = truth.text_image[order]
    first = np.append(True, home[1:] != home[:-1])[: len(home)] & (home >= 0)
    return np.sort(order[first])


def _keep(name: str, words: str, of: Keep) -> Choice:
    step = Step(name, of)

    def apply(settings: Settings) -> Settings:
        return replace(settings, keep=step)

    return Choice(name, words, apply)


def _choices(inputs: Inputs) -> Sequence[Choice]:
    most = max(
        int(np.bincount(truth.text_image[truth.text_image >= 0], minlength=1).max())
        for truth in (source.truth for source in inputs.sources.values())
    )
    found = [Choice("all", "every caption of an image", lambda settings: replace(settings, keep=None))]
    if most > _FIVE:
        found.append(
            _keep("first five", "the first five captions of each image", partial(_first, count=_FIVE))
        )
    if most > 1:
        found.append(_keep("first", "the first caption of each image alone", partial(_first, count=1)))
        found += [
            _keep(
                f"random, seed {seed}",
                "one caption of each image, drawn at random",
                partial(_random, seed=seed),
            )
            for seed in RANDOM_SEEDS
        ]
    return found


CAPTIONS = AXES.add(
    Axis(
        name="captions",
        description="which captions of each image are queries and gallery: all, the first, one at random",
        choices=_choices,
    )
)
