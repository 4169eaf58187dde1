"""nDCG@k: graded relevance, by people's ratings where there are any.

The gain of an item is its grade (CxC's ratings from 0 to 5 with ``--positives cxc:FOLDER``), 0 for an item
that nobody graded, and the highest grade for a labelled match that nobody graded. Without grades a match has
grade 1. Others take ``2^grade - 1`` instead, which rewards the highest grades more.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.discounted import normalised_gain
from diptych.metrics.gain_measure import Gain, GainMeasure
from diptych.metrics.measuring import MEASURES


def _linear(grade: np.ndarray) -> np.ndarray:
    return grade


def _exponential(grade: np.ndarray) -> np.ndarray:
    gains: np.ndarray = np.exp2(grade) - 1.0
    return gains


LINEAR = Gain("grade", _linear, "the grade")
EXPONENTIAL = Gain("grade", _exponential, "2^grade - 1")


def _normalised(gains: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    assert best is not None
    return normalised_gain(gains, best)


NDCG = MEASURES.add(
    GainMeasure(
        name="nDCG@k",
        description="discounted gain of the first k over the greatest there is, the gain being the grade (1 for "
        "a match without --positives that have grades); 0 where nothing has a grade",
        citation="Järvelin and Kekäläinen, ACM TOIS 2002",
        gain=LINEAR,
        per_query=_normalised,
        needs_best=True,
    )
)

NDCG_EXPONENTIAL = MEASURES.add(
    GainMeasure(
        name="nDCG-exponential@k",
        description="as nDCG@k with 2^grade - 1 as the gain, which tells the highest grades apart",
        citation="Burges et al., ICML 2005",
        gain=EXPONENTIAL,
        per_query=_normalised,
        needs_best=True,
    )
)
