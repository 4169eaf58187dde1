"""Ranks when only some candidates of each query were scored by the final score.

A positive among the candidates is ranked by its final score among them. What becomes of the others is a
rule, and the rule is part of the number:

=========== ===================================================================================
miss        they are unranked: found by no cut-off, of no reciprocal rank. A query whose positives
            are all unranked ranks after the gallery's last, as one without a positive does.
            The default: nothing is assumed about what was not scored.
contrastive they follow all candidates, in the order of the first stage: what a cascade does.
published   every cell that was not scored holds -100, and whatever ties there is ordered by the tie
            rule: what the published evaluations of ALBEF, BLIP and X-VLM do with
            ``argsort()[::-1]``, which puts later gallery rows first.
=========== ===================================================================================

Source: Li et al., ALBEF, NeurIPS 2021 (``Retrieval.evaluation`` and ``itm_eval`` of the published code).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.evaluation.result import Reranking
from diptych.metrics import (
    DIRECTIONS,
    UNSCORED,
    Candidates,
    Direction,
    GainMeasure,
    GroundTruth,
    Positives,
    Reranked,
)
from diptych.metrics.ranks import Ranks, check_sizes, ranks_of
from diptych.metrics.sources import DirectedScores, ScoreSource
from diptych.metrics.tiles import Counter
from diptych.metrics.topk import BLOCK

UNRANKED_RULES = ("miss", "contrastive", "published")

_NUMBERS = 1 << 21  # candidates looked at at once


def check_candidates(reranked: Reranked, truth: GroundTruth) -> None:
    have, want = (f"{one.n_images:,} images and {one.n_texts:,} texts" for one in (reranked, truth))
    if have != want:
        text = f"candidates of {have} for a ground truth of {want}"
        raise DataError(text, "give the candidates of the same split")
    reranked.check()


def check_no_gains(measures: Sequence[object]) -> None:
    for member in measures:
        if isinstance(member, GainMeasure):
            text = f"{member.name} looks at the first places of the whole gallery, and only candidates are ranked"
            raise UsageError(text, "measure it without re-ranking")


class RerankedScores:
    """The second stage in an evaluation: candidates held against a ground truth, under a rule for the rest.

    Under ``miss`` chance is that of a ranker which draws k items at random, orders them at random and ranks no
    others; under the other two rules every item has a place and chance is that of the whole gallery.
    """

    def __init__(
        self,
        reranked: Reranked,
        truth: GroundTruth,
        *,
        k: int | None = None,  # as if so many candidates of each query had been re-ranked; all by default
        unranked: str = "miss",
        first: ScoreSource | None = None,  # scores of the first stage; ``"contrastive"`` needs them
    ) -> None:
        if unranked not in UNRANKED_RULES:
            raise UnknownNameError("rule for unranked candidates", unranked, UNRANKED_RULES)
        if unranked == "contrastive" and first is None:
            text = "unranked 'contrastive' needs the first stage's order, and its rows were not given"
            raise UsageError(text, "give the first stage's scores, or choose unranked='miss'")
        if first is not None:
            check_sizes(first, truth)
        cut = reranked if k is None else reranked.first(k)
        check_candidates(cut, truth)
        self._truth, self._unranked, self._first = truth, unranked, first
        self._held = {
            name: CandidateRanks(cut.candidates(name), cut.adds_contrastive, truth.positives(name))
            for name in DIRECTIONS
        }
        self.similarity: str = "" if first is None else first.similarity
        self.usual_ties = "compat" if unranked == "published" else "expected"
        queries_of = {name: truth.queries(name) for name in DIRECTIONS}
        missed = {
            name: (truth.positives(name).counts > 0)[queries] & ~self._held[name].has_ranked[queries]
            for name, queries in queries_of.items()
        }
        self.protocol: Reranking | None = Reranking(
            k_test={name: cut.candidates(name).k for name in DIRECTIONS},
            gallery={name: truth.positives(name).gallery for name in DIRECTIONS},
            score="matching + contrastive" if cut.adds_contrastive else "matching",
            unranked=unranked,
            queries={name: len(queries) for name, queries in queries_of.items()},
            without_ranked_positive={name: int(np.sum(lost)) for name, lost in missed.items()},
        )

    def ranks(self, every: bool, block: int = BLOCK, threads: int | None = None) -> dict[Direction, Ranks]:
        first: Mapping[Direction, FirstStage] = {}
        if self._unranked == "contrastive":
            assert self._first is not None
            ranks = ranks_of(self._first, self._truth, every=True, block=block, threads=threads)
            first = first_stages(self._first, self._truth, ranks)
        return {name: one.ranks(self._unranked, every, first.get(name)) for name, one in self._held.items()}


@dataclass(frozen=True, eq=False)
class FirstStage:
    """One direction of the first stage: what follows the candidates under the rule ``contrastive``."""

    ranks: Ranks  # of every positive in the whole gallery
    rows: np.ndarray  # the gallery row of every entry of ``ranks``
    scores: DirectedScores  # exact scores of queries and gallery


def first_stages(
    source: ScoreSource, truth: GroundTruth, ranks: Mapping[Direction, Ranks]
) -> dict[Direction, FirstStage]:
    found: dict[Direction, FirstStage] = {}
    for name in DIRECTIONS:
        positives, scores = truth.positives(name), DirectedScores(source, name)
        counter = Counter(positives, scores.exact(positives.queries, positives.rows), every=True)
        found[name] = FirstStage(ranks[name], counter.rows, scores)
    return found


class _Entries(NamedTuple):
    """Positives with a place: what stands above each and what ties with it."""

    query: np.ndarray
    row: np.ndarray
    score: np.ndarray
    above: np.ndarray
    tied: np.ndarray
    later: np.ndarray


class CandidateRanks:
    """The candidates of one direction, held against its ground truth."""

    def __init__(self, candidates: Candidates, adds_contrastive: bool, positives: Positives) -> None:
        self._candidates, self._adds, self._positives = candidates, adds_contrastive, positives
        self._items = candidates.items
        n, step = len(self._items), max(1, _NUMBERS // candidates.k)
        parts = [self._inside(begin, min(begin + step, n)) for begin in range(0, n, step)]
        self._query, self._row, self._score = (np.concatenate(part) for part in zip(*parts, strict=True))
        inside = np.searchsorted(positives.keys, positives.keys_of(self._query, self._row))
        self._outside = np.setdiff1d(np.arange(len(positives.keys)), inside)

    @property
    def has_ranked(self) -> np.ndarray:
        return np.asarray(np.bincount(self._query, minlength=len(self._items)) > 0)

    def ranks(self, unranked: str, every: bool, first: FirstStage | None = None) -> Ranks:
        """Return the ranks under a rule; their ``scores`` only say which positives tie."""
        positives = self._positives
        parts = [self._counted(self._query, self._row, self._score, self._final)]
        if unranked == "contrastive":
            assert first is not None
            parts.append(self._after_candidates(first))
        elif unranked == "published":
            query, row = positives.queries[self._outside], positives.rows[self._outside]
            score = np.full(len(query), UNSCORED, dtype=np.float32)
            parts.append(self._counted(query, row, score, self._final))
            rest = positives.gallery - positives.counts - self._items.shape[1]
            rest += np.bincount(self._query, minlength=len(rest))  # negatives that are no candidates
            parts = [self._with_unscored(part, rest) for part in parts]
        return self._assembled(parts, unranked, every)

    def _inside(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        items = np.asarray(self._items[begin:end])
        local, column = np.nonzero(self._positives.holds(np.arange(begin, end)[:, None], items))
        return begin + local, items[local, column], self._final(slice(begin, end), items)[local, column]

    def _final(self, queries: np.ndarray | slice, items: np.ndarray) -> np.ndarray:
        matching = np.asarray(self._candidates.matching[queries])
        if not self._adds:
            return matching
        return np.asarray(matching + self._candidates.contrastive[queries])

    def _counted(
        self,
        query: np.ndarray,
        row: np.ndarray,
        score: np.ndarray,
        scores_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> _Entries:
        """Return entries with the candidates that are negatives and score more, the same, the same and later."""
        counts = np.zeros((3, len(query)), dtype=np.int64)
        step = max(1, _NUMBERS // self._items.shape[1])
        for begin in range(0, len(query), step):
            here = slice(begin, begin + step)
            items = np.asarray(self._items[query[here]])
            negative = ~self._positives.holds(query[here, None], items)
            scores, own = scores_of(query[here], items), score[here, None]
            tied = negative & (scores == own)
            masks = (negative & (scores > own), tied, tied & (items > row[here, None]))
            counts[:, here] = [np.count_nonzero(mask, axis=1) for mask in masks]
        return _Entries(query, row, score, *counts)

    def _with_unscored(self, entries: _Entries, rest: np.ndarray) -> _Entries:
        """Put -100 into every cell that was not scored; ``rest`` is how many negatives that are."""
        others = rest[entries.query]
        above = entries.above + others * (entries.score < UNSCORED)
        same = entries.score == UNSCORED
        later = entries.later.copy()
        later[same] += self._unscored_after(entries.query[same], entries.row[same])
        return entries._replace(above=above, tied=entries.tied + others * same, later=later)

    def _unscored_after(self, query: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Count the negatives after ``row`` in the gallery that are no candidates of ``query``."""
        positives = self._positives
        place = np.searchsorted(positives.keys, positives.keys_of(query, row), side="right")
        # Candidates all tie here, so "the same and later" counts those after the row.
        flat = self._counted(query, row, np.zeros(len(query)), lambda _, items: np.zeros(items.shape))
        return np.asarray(positives.gallery - 1 - row - (positives.start[query + 1] - place) - flat.later)

    def _after_candidates(self, first: FirstStage) -> _Entries:
        """Return positives that are no candidates, in the order of the first stage after all candidates."""
        ranks, positives = first.ranks, self._positives
        keys = positives.keys_of(ranks.queries, first.rows)
        keep = np.flatnonzero(np.isin(keys, positives.keys[self._outside]))
        query, row = ranks.queries[keep], first.rows[keep]

        def contrastive(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
            pairs = first.scores.exact(np.repeat(queries, items.shape[1]), items.reshape(-1))
            return pairs.reshape(items.shape)

        candidates = self._counted(query, row, ranks.scores[keep], contrastive)
        negatives = self._items.shape[1] - np.bincount(self._query, minlength=len(self._items))[query]
        return _Entries(
            query,
            row,
            ranks.scores[keep],
            ranks.above[keep] - candidates.above + negatives,
            ranks.tied[keep] - candidates.tied,
            ranks.later[keep] - candidates.later,
        )

    def _assembled(self, parts: Sequence[_Entries], unranked: str, every: bool) -> Ranks:
        query, row, score, above, tied, later = map(np.concatenate, zip(*parts, strict=True))
        second = np.arange(len(query)) >= len(parts[0].query)
        if unranked == "published":  # one matrix: what was not scored stands where -100 stands
            second[:] = False
        order = np.lexsort((-row, -score, second, query))
        query, score, second = query[order], score[order], second[order]
        first, new = np.ones((2, len(query)), dtype=bool)
        first[1:] = query[1:] != query[:-1]
        new[1:] = first[1:] | (score[1:] != score[:-1]) | (second[1:] != second[:-1])
        group = np.cumsum(new) - 1
        keep = np.arange(len(query)) if every else np.flatnonzero(first)
        return Ranks(
            gallery=self._positives.gallery,
            positives=self._positives.counts,
            start=np.concatenate([[0], np.cumsum(np.bincount(query[keep], minlength=len(self._items)))]),
            above=above[order][keep],
            tied=tied[order][keep],
            later=later[order][keep],
            group=np.bincount(group)[group][keep] if len(group) else group,
            scores=-group[keep].astype(np.float64),
            complete=every,
        )
