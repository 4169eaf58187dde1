"""An encoder, or its embeddings, on a collection: results, comparisons, protocols, stress."""

from diptych.evaluation.comparison import Comparison, Difference, Spread
from diptych.evaluation.evaluate import evaluate
from diptych.evaluation.reranking import UNRANKED_RULES, RerankedScores
from diptych.evaluation.result import (
    BOTH,
    PARTITIONS,
    Partition,
    Protocol,
    Reranking,
    Result,
    Score,
    partition,
)
from diptych.evaluation.significance import compare
from diptych.evaluation.variants.explore import explore_rows, explore_scores

__all__ = [
    "BOTH",
    "PARTITIONS",
    "UNRANKED_RULES",
    "Comparison",
    "Difference",
    "Partition",
    "Protocol",
    "RerankedScores",
    "Reranking",
    "Result",
    "Score",
    "Spread",
    "compare",
    "evaluate",
    "explore_rows",
    "explore_scores",
    "partition",
]
