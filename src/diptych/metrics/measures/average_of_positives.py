"""mAP-positives@k: average precision at a cut-off, over all positives of the query.

A query with twelve positives, all of the first five of them right, has 5/12: no order of the gallery gives it more, as
trec_eval's ``map_cut`` has it. mAP@k divides by the most that could be found, min(k, positives), and gives it 1.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.measures.average_precision import precision_sum_at
from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups


def _average_of_positives(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    values: np.ndarray = precision_sum_at(groups, cutoff) / np.maximum(groups.relevant, 1)
    return values


AVERAGE_OF_POSITIVES = MEASURES.add(
    Measure(
        name="mAP-positives@k",
        description="as mAP@k, but divided by all positives of the query, however many more than k there are",
        citation="trec_eval's map_cut; Buckley and Voorhees, SIGIR 2000",
        positives="all",
        per_query=_average_of_positives,
    )
)
