"""The first stage's order of everything: what follows the candidates under the rule ``contrastive``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.positives import DIRECTIONS, Direction
from diptych.metrics.ranks import Ranks
from diptych.metrics.sources import ScoreSource
from diptych.metrics.tallies import Tally


@dataclass(frozen=True, eq=False)
class FirstStage:
    """One direction of the first stage, for the rule ``contrastive``.

    Attributes:
        ranks: of every positive in the whole gallery.
        rows: the gallery row of every entry of ``ranks``.
        score: from queries and gallery rows to exact scores, float64.
    """

    ranks: Ranks
    rows: np.ndarray
    score: Callable[[np.ndarray, np.ndarray], np.ndarray]


def first_stages(
    source: ScoreSource, truth: GroundTruth, ranks: Mapping[Direction, Ranks]
) -> dict[Direction, FirstStage]:
    """Both directions."""
    found: dict[Direction, FirstStage] = {}
    for name in DIRECTIONS:
        positives, is_image = truth.positives(name), name == "i2t"

        def score(queries: np.ndarray, items: np.ndarray, is_image: bool = is_image) -> np.ndarray:
            return source.positives(queries, items) if is_image else source.positives(items, queries)

        tally = Tally(positives, score(positives.queries, positives.rows), every=True)
        found[name] = FirstStage(ranks[name], tally.rows, score)
    return found
