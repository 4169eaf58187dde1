"""R@k: is the best positive among the first k?"""

from __future__ import annotations

import numpy as np

from diptych.metrics.chances import found_within
from diptych.metrics.measuring import MEASURES, Measure, Sum
from diptych.metrics.ties import TieGroups


def _found(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    values = np.zeros(groups.n_queries)
    best = groups.best
    values[groups.query[best]] = found_within(
        groups.before[best], groups.negatives[best], groups.positives[best], cutoff
    )
    return values


RECALL = MEASURES.add(
    Measure(
        name="R@k",
        description="share of queries with at least one positive among the first k (any-of-k; "
        "elsewhere called success or hit rate at k)",
        citation="Hodosh, Young and Hockenmaier, JAIR 2013; Karpathy and Fei-Fei, CVPR 2015",
        positives="best",
        per_query=_found,
    )
)

RSUM = MEASURES.add(
    Sum(
        name="rsum",
        description="R@1 + R@5 + R@10 of both directions, in per cent: 600 at most",
        citation="Faghri et al., VSE++, BMVC 2018 (model selection in the published code)",
        parts=("R@1", "R@5", "R@10"),
    )
)
