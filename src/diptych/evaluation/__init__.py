"""Floor 1, evaluation: ranks, measures, ground truth, protocols, intervals, TREC files."""

from __future__ import annotations

from diptych.evaluation.bootstrap import Bootstrap
from diptych.evaluation.evaluate import evaluate, evaluate_scores
from diptych.evaluation.ground_truth import DIRECTIONS, Direction, GroundTruth, Positives
from diptych.evaluation.measuring import DEFAULT_MEASURES, MEASURES, Measure, Sum, measure
from diptych.evaluation.partitioning import PARTITIONS, Partition, partition
from diptych.evaluation.ranks import Ranks, ranks_from_rows, ranks_from_scores
from diptych.evaluation.result import BOTH, Protocol, Result, Score, TableRow
from diptych.evaluation.ties import TIE_RULES, TieGroups, tie_groups
from diptych.evaluation.topk import top_k
from diptych.evaluation.trec import read_qrels, read_run, write_qrels, write_run, write_trec

__all__ = [
    "BOTH",
    "DEFAULT_MEASURES",
    "DIRECTIONS",
    "MEASURES",
    "PARTITIONS",
    "TIE_RULES",
    "Bootstrap",
    "Direction",
    "GroundTruth",
    "Measure",
    "Partition",
    "Positives",
    "Protocol",
    "Ranks",
    "Result",
    "Score",
    "Sum",
    "TableRow",
    "TieGroups",
    "evaluate",
    "evaluate_scores",
    "measure",
    "partition",
    "ranks_from_rows",
    "ranks_from_scores",
    "read_qrels",
    "read_run",
    "tie_groups",
    "top_k",
    "write_qrels",
    "write_run",
    "write_trec",
]
