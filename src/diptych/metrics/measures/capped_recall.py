"""R-cap@k: the positives found among the first k, over as many as could be.

Where every query has one positive this is R@k. For images with five captions R-cap@1 is the hit rate and
R-cap@5 the share of the five captions that are found: what thesis Table 5.2 prints as image-to-text R@5 and
R@10, beside an R@1 that it shares with everyone.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.measures.precision import expected_hits
from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups


def _capped(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    hits = expected_hits(groups, np.full(groups.n_queries, cutoff))
    values: np.ndarray = hits / np.maximum(np.minimum(groups.relevant, cutoff), 1)
    return values


CAPPED_RECALL = MEASURES.add(
    Measure(
        name="R-cap@k",
        description="positives among the first k over min(k, positives of the query): what the thesis's "
        "Table 5.2 prints as recall",
        citation="Thakur et al., BEIR, NeurIPS 2021 (capped recall); published code of thesis chapter 5",
        positives="all",
        per_query=_capped,
        compat=True,
    )
)
