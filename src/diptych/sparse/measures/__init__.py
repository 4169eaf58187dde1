"""What sparse rows cost and what they say: co-activation, semantic deviation, faithfulness."""

from __future__ import annotations

from diptych.sparse.measures.coactivation import PairedTest, empty_share, flops, nonzeros, paired_tests
from diptych.sparse.measures.deviation import (
    Deviation,
    contained,
    exact_at,
    leading_terms,
    measure_deviation,
    semantic_at,
)
from diptych.sparse.measures.faithfulness import (
    Faithfulness,
    faithfulness,
    overlap_at,
    pearson,
    rank_agreement,
)
from diptych.sparse.measures.static import CaptionWords, StaticEmbedding

__all__ = [
    "CaptionWords",
    "Deviation",
    "Faithfulness",
    "PairedTest",
    "StaticEmbedding",
    "contained",
    "empty_share",
    "exact_at",
    "faithfulness",
    "flops",
    "leading_terms",
    "measure_deviation",
    "nonzeros",
    "overlap_at",
    "paired_tests",
    "pearson",
    "rank_agreement",
    "semantic_at",
]
