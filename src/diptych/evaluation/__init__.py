"""Floor 1, evaluation: ranks, measures, ground truth, protocols, intervals, TREC files."""

from __future__ import annotations

from diptych.evaluation.bootstrap import Bootstrap
from diptych.evaluation.candidate_ranks import UNRANKED_RULES
from diptych.evaluation.candidates import Candidates
from diptych.evaluation.comparison import Comparison, Difference
from diptych.evaluation.evaluate import evaluate, evaluate_scores, evaluate_sparse
from diptych.evaluation.evaluate_reranked import evaluate_reranked
from diptych.evaluation.gain_measure import Gain, GainMeasure
from diptych.evaluation.ground_truth import GroundTruth
from diptych.evaluation.measuring import DEFAULT_MEASURES, MEASURES, Measure, Sum, measure
from diptych.evaluation.one_way import measure_queries
from diptych.evaluation.partitioning import PARTITIONS, Partition, partition
from diptych.evaluation.positives import DIRECTIONS, Direction, Positives
from diptych.evaluation.protocol import Protocol, Reranking
from diptych.evaluation.ranks import Ranks, ranks_from_rows, ranks_from_scores
from diptych.evaluation.relevance import Grades, Relevance
from diptych.evaluation.reranked import UNSCORED, Reranked
from diptych.evaluation.result import BOTH, Result, Score, TableRow
from diptych.evaluation.seeds import Spread, spread_over_seeds
from diptych.evaluation.significance import compare
from diptych.evaluation.similarities import SIMILARITIES, Similarity, similarity
from diptych.evaluation.ties import TIE_RULES, TieGroups, tie_groups
from diptych.evaluation.topk import top_k
from diptych.evaluation.trec import read_qrels, read_run, write_qrels, write_run, write_trec
from diptych.evaluation.variants import explore_rows, explore_scores

__all__ = [
    "BOTH",
    "DEFAULT_MEASURES",
    "DIRECTIONS",
    "MEASURES",
    "PARTITIONS",
    "SIMILARITIES",
    "TIE_RULES",
    "UNRANKED_RULES",
    "UNSCORED",
    "Bootstrap",
    "Candidates",
    "Comparison",
    "Difference",
    "Direction",
    "Gain",
    "GainMeasure",
    "Grades",
    "GroundTruth",
    "Measure",
    "Partition",
    "Positives",
    "Protocol",
    "Ranks",
    "Relevance",
    "Reranked",
    "Reranking",
    "Result",
    "Score",
    "Similarity",
    "Spread",
    "Sum",
    "TableRow",
    "TieGroups",
    "compare",
    "evaluate",
    "evaluate_reranked",
    "evaluate_scores",
    "evaluate_sparse",
    "explore_rows",
    "explore_scores",
    "measure",
    "measure_queries",
    "partition",
    "ranks_from_rows",
    "ranks_from_scores",
    "read_qrels",
    "read_run",
    "similarity",
    "spread_over_seeds",
    "tie_groups",
    "top_k",
    "write_qrels",
    "write_run",
    "write_trec",
]
