"""Ranks, measures, intervals and paired tests: arrays in, numbers out."""

from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.candidate_ranks import UNRANKED_RULES
from diptych.metrics.candidates import Candidates
from diptych.metrics.gain_measure import Gain, GainMeasure
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.measuring import DEFAULT_MEASURES, MEASURES, Measure, Sum, measure
from diptych.metrics.positives import DIRECTIONS, Direction, Positives
from diptych.metrics.ranks import Ranks, ranks_from_rows, ranks_from_scores
from diptych.metrics.relevance import Grades, Relevance
from diptych.metrics.reranked import UNSCORED, Reranked
from diptych.metrics.similarities import SIMILARITIES, Similarity, similarity
from diptych.metrics.ties import TIE_RULES, TieGroups, tie_groups
from diptych.metrics.topk import top_k
from diptych.metrics.trec import read_qrels, read_run, write_qrels, write_run, write_trec

__all__ = [
    "DEFAULT_MEASURES",
    "DIRECTIONS",
    "MEASURES",
    "SIMILARITIES",
    "TIE_RULES",
    "UNRANKED_RULES",
    "UNSCORED",
    "Bootstrap",
    "Candidates",
    "Direction",
    "Gain",
    "GainMeasure",
    "Grades",
    "GroundTruth",
    "Measure",
    "Positives",
    "Ranks",
    "Relevance",
    "Reranked",
    "Similarity",
    "Sum",
    "TieGroups",
    "measure",
    "ranks_from_rows",
    "ranks_from_scores",
    "read_qrels",
    "read_run",
    "similarity",
    "tie_groups",
    "top_k",
    "write_qrels",
    "write_run",
    "write_trec",
]
