"""One direction alone: values per query of some queries against a gallery.

What is changed and measured again are often a few queries of one direction (perturbed captions, say), and
the gallery stays: the other direction need not be computed for that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.metrics.gain_measure import GainMeasure
from diptych.metrics.gaining import gained
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.measuring import Measure, resolve
from diptych.metrics.positives import Direction, Positives
from diptych.metrics.ranks import DEFAULT_BLOCK, ranks_from_source
from diptych.metrics.relevance import Grades, Relevance, own_similarity
from diptych.metrics.similarities import similarity as similarity_of
from diptych.metrics.sources import ScoreSource
from diptych.metrics.ties import check_rule, tie_groups


def measure_queries(
    queries: np.ndarray,
    gallery: np.ndarray,
    positives: Positives,
    measures: Sequence[str],
    *,
    relevance: tuple[np.ndarray, np.ndarray] | None = None,
    similarity: str = "cosine",
    query_side: Direction,
    ties: str = "expected",
    grades: Grades | None = None,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
) -> dict[str, np.ndarray]:
    """Values per query, the same that :func:`~diptych.evaluation.evaluate.evaluate` has for them.

    Args:
        queries: (n, d) float32 rows.
        gallery: (m, d) float32 rows.

    Returns:
        Per measure, (n,) float64, in the order of ``measures``.
    """
    plain, sums = resolve(measures)
    if sums:
        raise UsageError(
            f"{sums[0].name} is a sum over both directions", f"ask for {', '.join(sums[0].parts)}"
        )
    check_rule(ties)
    how = similarity_of(similarity)
    _check(queries, gallery, positives)
    turned = query_side == "t2i"
    n, m = len(queries), len(gallery)
    images, texts = (gallery, queries) if turned else (queries, gallery)
    source = how.source(images, texts, None, None)
    if not n:
        return {member.name: np.empty(0) for member in plain}
    ranked = [member for member in plain if isinstance(member, Measure)]
    gaining = [member for member in plain if isinstance(member, GainMeasure)]
    values: dict[str, np.ndarray] = {}
    if ranked:
        pairs = (positives.rows, positives.queries) if turned else (positives.queries, positives.rows)
        truth = GroundTruth.from_pairs(*pairs, len(images), len(texts))
        every = any(member.positives == "all" for member in ranked)
        ranks = ranks_from_source(
            source, truth, every=every, block=block, threads=threads, directions=[query_side]
        )
        groups = tie_groups(ranks[query_side], ties)
        values |= {member.name: member.values(groups) for member in ranked}
    if gaining:
        similar: ScoreSource | None = None
        if any(member.gain.of == "similarity" for member in gaining):
            if relevance is None:
                similar = own_similarity(source, images, texts, similarity)
            else:
                mine, theirs = relevance
                given = Relevance(theirs, mine) if turned else Relevance(mine, theirs)
                similar = given.source(len(images), len(texts))
        found = gained(
            source,
            similar,
            positives,
            query_side,
            [member.gain for member in gaining],
            max(member.cutoff or m for member in gaining),
            ties=ties,
            grades=grades,
            best=any(member.needs_best for member in gaining),
            mean=False,
            block=block,
        )
        values |= {member.name: member.values(found[member.gain]) for member in gaining}
    return {member.name: values[member.name] for member in plain}


def _check(queries: np.ndarray, gallery: np.ndarray, positives: Positives) -> None:
    if (len(queries), len(gallery)) != (positives.n_queries, positives.gallery):
        raise DataError(
            f"{len(queries):,} queries and {len(gallery):,} gallery rows for positives of "
            f"{positives.n_queries:,} queries in a gallery of {positives.gallery:,}",
            "of some queries alone, give positives.taken(rows)",
        )
    if not len(gallery):
        raise DataError(f"{len(queries):,} queries and an empty gallery: there is nothing to rank")
