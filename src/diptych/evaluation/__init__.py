"""An encoder, or its embeddings, on a collection: results, comparisons, protocols, stress."""

from diptych.evaluation.comparison import Comparison
from diptych.evaluation.evaluate import evaluate
from diptych.evaluation.reranking import RerankedScores
from diptych.evaluation.result import Result, partition
from diptych.evaluation.significance import compare
from diptych.evaluation.variants.explore import explore_rows, explore_scores

__all__ = [
    "Comparison",
    "RerankedScores",
    "Result",
    "compare",
    "evaluate",
    "explore_rows",
    "explore_scores",
    "partition",
]
