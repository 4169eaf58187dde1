"""Ranks, measures, intervals and paired tests: arrays in, numbers out."""

from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.candidates import UNSCORED, Candidates, Reranked
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth, Positives
from diptych.metrics.measuring import DEFAULT_MEASURES, MEASURES, Gain, GainMeasure, Measure, Sum, measure
from diptych.metrics.paired import PairedTest, paired
from diptych.metrics.ranks import TIE_RULES, Ranks, TieGroups, ranks_of, tie_groups
from diptych.metrics.relevance import Grades, Relevance
from diptych.metrics.sources import (
    SIMILARITIES,
    GivenScores,
    RowProducts,
    ScoreSource,
    Similarity,
    similarity,
)
from diptych.metrics.topk import top_k
from diptych.metrics.trec import read_qrels, read_run, write_qrels, write_run, write_trec

__all__ = [
    "DEFAULT_MEASURES",
    "DIRECTIONS",
    "MEASURES",
    "SIMILARITIES",
    "TIE_RULES",
    "UNSCORED",
    "Bootstrap",
    "Candidates",
    "Direction",
    "Gain",
    "GainMeasure",
    "GivenScores",
    "Grades",
    "GroundTruth",
    "Measure",
    "PairedTest",
    "Positives",
    "Ranks",
    "Relevance",
    "Reranked",
    "RowProducts",
    "ScoreSource",
    "Similarity",
    "Sum",
    "TieGroups",
    "measure",
    "paired",
    "ranks_of",
    "read_qrels",
    "read_run",
    "similarity",
    "tie_groups",
    "top_k",
    "write_qrels",
    "write_run",
    "write_trec",
]
