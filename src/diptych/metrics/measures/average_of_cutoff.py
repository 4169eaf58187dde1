"""mAP-cutoff@k: average precision at a cut-off, over the cut-off.

A query with one positive, at rank 1, has 1/k: no order of the gallery gives it more. mAP@k divides by the most that
could be found, min(k, positives), and gives it 1.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.measures.average_precision import precision_sum_at
from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups


def _average_of_cutoff(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    values: np.ndarray = precision_sum_at(groups, cutoff) / cutoff
    return values


AVERAGE_OF_CUTOFF = MEASURES.add(
    Measure(
        name="mAP-cutoff@k",
        description="as mAP@k, but divided by k, however few positives the query has",
        citation="a reading of mAP@k that published code takes; ties: McSherry and Najork, ECIR 2008",
        positives="all",
        per_query=_average_of_cutoff,
        compat=True,
    )
)
