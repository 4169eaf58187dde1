"""Evaluate a second stage: candidates that a matching head scored, with what became of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.evaluation.galleries import measure_galleries
from diptych.evaluation.partitioning import Fold, Partition, partition
from diptych.evaluation.protocol import Reranking
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.candidate_ranks import CandidateRanks, check_unranked
from diptych.metrics.first_stage import FirstStage, first_stages
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.measuring import DEFAULT_MEASURES, AnyMeasure
from diptych.metrics.positives import DIRECTIONS, Direction
from diptych.metrics.ranks import DEFAULT_BLOCK, Ranks, check_sizes, ranks_from_source
from diptych.metrics.reranked import Reranked
from diptych.metrics.similarities import similarity as similarity_of
from diptych.metrics.sources import ScoreSource
from diptych.metrics.ties import check_rule


def evaluate_reranked(
    reranked: Reranked,
    ground_truth: GroundTruth,
    measures: Iterable[str | AnyMeasure] = DEFAULT_MEASURES,
    *,
    k: int | None = None,
    unranked: str = "miss",
    images: np.ndarray | None = None,
    texts: np.ndarray | None = None,
    similarity: str = "cosine",
    protocol: str = "full",
    ties: str | None = None,
    bootstrap: Bootstrap | None = None,
    image_ids: Sequence[str] | None = None,
    text_ids: Sequence[str] | None = None,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Result:
    """Measure retrieval in both directions by the final score of the candidates.

    With ``unranked="miss"`` a positive that is no candidate has no rank: no R@K finds it whatever K is, it
    has no reciprocal rank and adds nothing to an average precision, and a query whose positives are all
    unranked has the rank after the gallery's last in ``medr`` and ``meanr``. Chance is then that of a ranker
    which draws k items at random, orders them at random and ranks no others; under the other two rules
    every item has a place and chance is that of the whole gallery.

    Args:
        images: (n, d) float32 rows of the first stage; ``"contrastive"`` needs them.
        texts: (m, d) float32 rows of the first stage.
    """
    check_unranked(unranked)
    ties = ties or ("compat" if unranked == "published" else "expected")
    check_rule(ties)
    chosen = check_one_gallery(protocol)
    _check_belongs(reranked, ground_truth)
    cut = reranked if k is None else reranked.first(k)
    cut.check()
    source: ScoreSource | None = None
    if unranked == "contrastive":
        if images is None or texts is None:
            raise UsageError(
                "unranked 'contrastive' continues with the first stage's order, and its rows were not given",
                "give images= and texts=, or choose unranked='miss'",
            )
        check_sizes(images, texts, ground_truth)
        source = similarity_of(similarity).source(images, texts, image_ids, text_ids)
    held = {
        name: CandidateRanks(cut.candidates(name), cut.adds_contrastive, ground_truth.positives(name))
        for name in DIRECTIONS
    }

    def rank(fold: Fold, every: bool) -> dict[Direction, Ranks]:
        first: dict[Direction, FirstStage] = {}
        if source is not None:
            order = ranks_from_source(source, ground_truth, every=True, block=block, threads=threads)
            first = first_stages(source, ground_truth, order)
        return {name: held[name].ranks(unranked, every, first.get(name)) for name in DIRECTIONS}

    return measure_galleries(
        rank,
        ground_truth,
        measures,
        chosen,
        ties,
        bootstrap,
        about,
        similarity,
        _reranking(cut, ground_truth, unranked, held),
    )


def check_one_gallery(protocol: str) -> Partition:
    """The protocol called ``protocol``, when it has one gallery."""
    chosen = partition(protocol)
    if chosen.count > 1:
        raise UsageError(
            f"protocol {protocol!r} has {chosen.count} galleries, and candidates were chosen from one: the "
            "whole test set",
            "use the protocol 'full' or 'coco-5k', or re-rank and evaluate each fold as a collection of its own",
        )
    return chosen


def _check_belongs(reranked: Reranked, truth: GroundTruth) -> None:
    have, want = (reranked.n_images, reranked.n_texts), (truth.n_images, truth.n_texts)
    if have != want:
        raise DataError(
            f"candidates of {have[0]:,} images and {have[1]:,} texts for a ground truth of {want[0]:,} images "
            f"and {want[1]:,} texts",
            "evaluate the split that was re-ranked",
        )


def _reranking(
    reranked: Reranked, truth: GroundTruth, unranked: str, held: Mapping[Direction, CandidateRanks]
) -> Reranking:
    def missed(name: Direction) -> int:
        asked = truth.queries(name)
        return int(np.sum((truth.positives(name).counts > 0)[asked] & ~held[name].has_ranked[asked]))

    return Reranking(
        k_test={name: reranked.candidates(name).k for name in DIRECTIONS},
        gallery={name: truth.positives(name).gallery for name in DIRECTIONS},
        score="matching + contrastive" if reranked.adds_contrastive else "matching",
        unranked=unranked,
        queries={name: len(truth.queries(name)) for name in DIRECTIONS},
        without_ranked_positive={name: missed(name) for name in DIRECTIONS},
    )
