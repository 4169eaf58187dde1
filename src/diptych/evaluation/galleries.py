"""Galleries: each is ranked and measured, then averaged; what every way into evaluation shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.evaluation.gain_galleries import GainGalleries, check_no_gains
from diptych.evaluation.partitioning import Fold, Partition
from diptych.evaluation.protocol import Reranking, protocol_of
from diptych.evaluation.result import BOTH, Result, Score
from diptych.metrics.bootstrap import Bootstrap, interval, resample
from diptych.metrics.gain_measure import Gain, Gained, GainMeasure
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.measures.rank import best_ranks
from diptych.metrics.measuring import AnyMeasure, Measure, Sum, resolve
from diptych.metrics.positives import DIRECTIONS, Direction
from diptych.metrics.ranks import Ranks
from diptych.metrics.ties import check_rule, tie_groups

Ranker = Callable[[Fold, bool], dict[Direction, Ranks]]
"""From a gallery, and whether every positive is wanted, to ranks per direction."""

_Key = tuple[Direction, str]


@dataclass(frozen=True, eq=False)
class _Found:
    """What one gallery gives, per direction and measure."""

    fold: Fold
    per_query: dict[_Key, np.ndarray]
    best: dict[Direction, np.ndarray]
    values: dict[_Key, float]
    chances: dict[_Key, float]
    samples: dict[_Key, np.ndarray]


def _evaluate_fold(
    fold: Fold,
    number: int,
    ranked: dict[Direction, Ranks],
    gains: Mapping[Direction, Mapping[Gain, Gained]],
    plain: list[Measure | GainMeasure],
    ties: str,
    how: Bootstrap,
    deepest: Mapping[Direction, int],
) -> _Found:
    groups = {name: tie_groups(ranked[name], ties) for name in DIRECTIONS}
    asked = {name: fold.ground_truth.queries(name) for name in DIRECTIONS}
    cells = [(name, member) for name in DIRECTIONS for member in plain]
    per_query: dict[_Key, np.ndarray] = {}
    chances: dict[_Key, float] = {}
    for name, member in cells:
        if isinstance(member, GainMeasure):
            worth = gains[name][member.gain]
            per_query[name, member.name] = member.values(worth)
            chances[name, member.name] = member.aggregate.of(member.chances(worth)[asked[name]])
        else:
            per_query[name, member.name] = member.values(groups[name])
            chances[name, member.name] = member.chance(
                ranked[name].positives[asked[name]], ranked[name].gallery, deepest.get(name)
            )
    aggregates = {(name, member.name): member.aggregate for name, member in cells}
    return _Found(
        fold=fold,
        per_query=per_query,
        best={name: best_ranks(groups[name]) for name in DIRECTIONS},
        values={key: aggregates[key].of(values[asked[key[0]]]) for key, values in per_query.items()},
        chances=chances,
        samples=resample(how, number, fold.ground_truth, per_query, aggregates) if how.samples else {},
    )


def measure_galleries(
    rank: Ranker,
    truth: GroundTruth,
    asked: Iterable[str | AnyMeasure],
    chosen: Partition,
    ties: str,
    bootstrap: Bootstrap | None,
    about: Mapping[str, Any] | None,
    similarity: str = "cosine",
    reranking: Reranking | None = None,
    gains: GainGalleries | None = None,
) -> Result:
    """Rank and measure every gallery of a partition.

    Args:
        reranking: the second stage, for the protocol. Where it leaves items unranked, chance levels are
            those of a ranker that draws as many items at random and ranks no others.
        gains: what items are worth; None where only candidates are ranked.
    """
    plain, sums = resolve(asked)
    how = bootstrap or Bootstrap(samples=0)
    every = any(member.positives == "all" for member in plain if isinstance(member, Measure))
    check_rule(ties)  # before the work, not after it
    gaining = [member for member in plain if isinstance(member, GainMeasure)]
    if gains is None:
        check_no_gains(gaining)
    else:
        gains.check(gaining)
    deepest: dict[Direction, int] = {}
    if reranking is not None and reranking.unranked == "miss":
        deepest = {name: reranking.k_test[name] for name in DIRECTIONS}

    def worth(fold: Fold) -> dict[Direction, dict[Gain, Gained]]:
        return gains.of(fold, gaining, ties) if gains is not None and gaining else {}

    found = [
        _evaluate_fold(fold, number, rank(fold, every), worth(fold), plain, ties, how, deepest)
        for number, fold in enumerate(chosen.folds(truth))
    ]
    said = {} if gains is None else {member.name: gains.said(member) for member in gaining}
    return Result(
        protocol_of(truth, chosen, ties, plain, how, about, similarity, reranking, said),
        _scores(found, plain, sums, how),
        {
            name: {
                member.name: _whole(truth, name, found, [one.per_query[name, member.name] for one in found])
                for member in plain
            }
            for name in DIRECTIONS
        },
        {name: _whole(truth, name, found, [one.best[name] for one in found]) for name in DIRECTIONS},
        truth.text_image,
    )


def _whole(truth: GroundTruth, name: Direction, found: list[_Found], parts: list[np.ndarray]) -> np.ndarray:
    """Values per query of all folds, in the order of the whole test set; NaN where it is not asked."""
    values = np.empty(truth.n_images if name == "i2t" else truth.n_texts)
    for one, part in zip(found, parts, strict=True):
        values[one.fold.images if name == "i2t" else one.fold.texts] = part
    if name in truth.asked:
        values[~truth.asked[name]] = np.nan
    return values


def _scores(
    found: list[_Found], plain: list[Measure | GainMeasure], sums: list[Sum], how: Bootstrap
) -> dict[str, dict[str, Score]]:
    """Means over the galleries, and sums over both directions."""
    keys: list[_Key] = [(name, member.name) for name in DIRECTIONS for member in plain]
    values = {key: float(np.mean([one.values[key] for one in found])) for key in keys}
    chances = {key: float(np.mean([one.chances[key] for one in found])) for key in keys}
    samples = {key: np.mean([one.samples[key] for one in found], axis=0) for key in keys if how.samples}
    scores: dict[str, dict[str, Score]] = {name: {} for name in (*DIRECTIONS, BOTH)}
    for key in keys:
        ends = interval(samples[key], how.confidence) if how.samples else None
        scores[key[0]][key[1]] = Score(values[key], chances[key], *(ends or (None, None)))
    for member in sums:
        parts: list[_Key] = [(name, part) for name in DIRECTIONS for part in member.parts]
        ends = None
        if how.samples:
            ends = interval(100 * np.sum([samples[key] for key in parts], axis=0), how.confidence)
        scores[BOTH][member.name] = Score(
            100 * sum(values[key] for key in parts),
            100 * sum(chances[key] for key in parts),
            *(ends or (None, None)),
        )
    return scores
