"""Evaluate: embeddings and a ground truth in, measures with chance, intervals and protocol out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.evaluation.bootstrap import Bootstrap, interval, resample
from diptych.evaluation.ground_truth import DIRECTIONS, Direction, GroundTruth
from diptych.evaluation.measures.rank import best_ranks
from diptych.evaluation.measuring import DEFAULT_MEASURES, Measure, Sum, resolve
from diptych.evaluation.partitioning import Fold, Partition, partition
from diptych.evaluation.products import check_rows
from diptych.evaluation.protocol import protocol_of
from diptych.evaluation.ranks import (
    DEFAULT_BLOCK,
    Ranks,
    check_sizes,
    ranks_from_rows,
    ranks_from_scores,
)
from diptych.evaluation.result import BOTH, Result, Score
from diptych.evaluation.similarities import similarity as similarity_of
from diptych.evaluation.sources import GivenScores
from diptych.evaluation.ties import check_rule, tie_groups

__all__ = ["evaluate", "evaluate_scores"]

_Ranker = Callable[[Fold, bool], dict[Direction, Ranks]]
_Key = tuple[Direction, str]


def evaluate(
    images: np.ndarray,
    texts: np.ndarray,
    ground_truth: GroundTruth,
    measures: Iterable[str | Measure | Sum] = DEFAULT_MEASURES,
    *,
    similarity: str = "cosine",
    protocol: str = "full",
    ties: str = "expected",
    bootstrap: Bootstrap | None = None,
    image_ids: Sequence[str] | None = None,
    text_ids: Sequence[str] | None = None,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Result:
    """Measure retrieval in both directions by the scores of image and text rows.

    Args:
        images: (n, d) float32 rows, possibly memory-mapped; unit length if cosine is meant.
        texts: (m, d) float32 rows.
        ground_truth: which texts are relevant to which images.
        measures: names such as ``"R@5"`` (any cut-off), or measures.
        similarity: ``"cosine"``, the inner product, or ``"order"``, that of order embeddings; see
            :mod:`diptych.evaluation.similarities`.
        protocol: how the test set is cut into galleries; see :mod:`diptych.evaluation.partitioning`.
        ties: the tie rule; see :mod:`diptych.evaluation.ties`.
        bootstrap: how confidence intervals are made; none by default.
        image_ids: for messages.
        text_ids: for messages.
        block: scores held at once by one worker.
        threads: workers; all available cores by default.
        about: dataset, split, fingerprints, seed, ...: JSON-able, printed with the numbers.

    Raises:
        DataError: sizes that disagree, an empty side, a test set that is not the protocol's.
        NumericalError: a row that is not finite, named.
        UnknownNameError: a measure, similarity, protocol or tie rule that does not exist.
    """
    similarity_of(similarity)  # before the work, not after it
    check_sizes(images, texts, ground_truth)
    chosen = partition(protocol)
    if chosen.count > 1:  # so that a message names the row in the whole test set
        check_rows(np.asarray(images), "image", image_ids)
        check_rows(np.asarray(texts), "text", text_ids)
    whole = chosen.count == 1

    def rank(fold: Fold, every: bool) -> dict[Direction, Ranks]:
        return ranks_from_rows(
            images[fold.images],
            texts[fold.texts],
            fold.ground_truth,
            every=every,
            similarity=similarity,
            image_ids=image_ids if whole else None,
            text_ids=text_ids if whole else None,
            block=block,
            threads=threads,
        )

    return _evaluate(rank, ground_truth, measures, chosen, ties, bootstrap, about, similarity)


def evaluate_scores(
    scores: np.ndarray,
    ground_truth: GroundTruth,
    measures: Iterable[str | Measure | Sum] = DEFAULT_MEASURES,
    *,
    protocol: str = "full",
    ties: str = "expected",
    bootstrap: Bootstrap | None = None,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Result:
    """The same by a given score matrix (n_images, n_texts): re-ranking, ensembles, other models."""
    GivenScores(scores, ground_truth)  # raises, naming the place in the whole matrix

    def rank(fold: Fold, every: bool) -> dict[Direction, Ranks]:
        part = np.asarray(scores)[fold.images][:, fold.texts]
        return ranks_from_scores(part, fold.ground_truth, every=every, block=block, threads=threads)

    return _evaluate(rank, ground_truth, measures, partition(protocol), ties, bootstrap, about)


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
    fold: Fold, number: int, ranked: dict[Direction, Ranks], plain: list[Measure], ties: str, how: Bootstrap
) -> _Found:
    groups = {name: tie_groups(ranked[name], ties) for name in DIRECTIONS}
    asked = {name: fold.ground_truth.queries(name) for name in DIRECTIONS}
    cells: list[tuple[Direction, Measure]] = [(name, member) for name in DIRECTIONS for member in plain]
    per_query = {(name, member.name): member.values(groups[name]) for name, member in cells}
    aggregates = {(name, member.name): member.aggregate for name, member in cells}
    return _Found(
        fold=fold,
        per_query=per_query,
        best={name: best_ranks(groups[name]) for name in DIRECTIONS},
        values={key: aggregates[key].of(values[asked[key[0]]]) for key, values in per_query.items()},
        chances={
            (name, member.name): member.chance(ranked[name].positives[asked[name]], ranked[name].gallery)
            for name, member in cells
        },
        samples=resample(how, number, fold.ground_truth, per_query, aggregates) if how.samples else {},
    )


def _evaluate(
    rank: _Ranker,
    truth: GroundTruth,
    asked: Iterable[str | Measure | Sum],
    chosen: Partition,
    ties: str,
    bootstrap: Bootstrap | None,
    about: Mapping[str, Any] | None,
    similarity: str = "cosine",
) -> Result:
    plain, sums = resolve(asked)
    how = bootstrap or Bootstrap(samples=0)
    every = any(member.positives == "all" for member in plain)
    check_rule(ties)  # before the work, not after it
    found = [
        _evaluate_fold(fold, number, rank(fold, every), plain, ties, how)
        for number, fold in enumerate(chosen.folds(truth))
    ]
    return Result(
        protocol_of(truth, chosen, ties, plain, how, about, similarity),
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
    found: list[_Found], plain: list[Measure], sums: list[Sum], how: Bootstrap
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
