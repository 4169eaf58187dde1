"""An encoder, or its embeddings, on a collection: results, comparisons, protocols, stress."""

from diptych.evaluation.comparison import Comparison, Difference
from diptych.evaluation.evaluate import evaluate, evaluate_scores, evaluate_sparse
from diptych.evaluation.evaluate_reranked import evaluate_reranked
from diptych.evaluation.one_way import measure_queries
from diptych.evaluation.partitioning import PARTITIONS, Partition, partition
from diptych.evaluation.protocol import Protocol, Reranking
from diptych.evaluation.result import BOTH, Result, Score, TableRow
from diptych.evaluation.seeds import Spread, spread_over_seeds
from diptych.evaluation.significance import compare
from diptych.evaluation.variants import explore_rows, explore_scores

__all__ = [
    "BOTH",
    "PARTITIONS",
    "Comparison",
    "Difference",
    "Partition",
    "Protocol",
    "Reranking",
    "Result",
    "Score",
    "Spread",
    "TableRow",
    "compare",
    "evaluate",
    "evaluate_reranked",
    "evaluate_scores",
    "evaluate_sparse",
    "explore_rows",
    "explore_scores",
    "measure_queries",
    "partition",
    "spread_over_seeds",
]
