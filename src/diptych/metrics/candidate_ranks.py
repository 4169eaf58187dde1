"""Where positives stand when only some candidates of each query were scored by the final score.

A positive among the candidates is ranked by its final score among them. What becomes of the others is a
rule, and the rule is part of the number:

=========== ===================================================================================
miss        they are unranked: found by no cut-off, of no reciprocal rank. A query whose positives
            are all unranked ranks after the gallery's last, as one without a positive does.
            The default: nothing is said about what was not scored.
contrastive they follow all candidates, in the order of the first stage: what a cascade does.
published   every cell that was not scored holds -100, and whatever ties there is ordered by the tie
            rule: what the published evaluations of ALBEF, BLIP and X-VLM do with
            ``argsort()[::-1]``, which puts later gallery rows first.
=========== ===================================================================================

Source: Li et al., ALBEF, NeurIPS 2021 (``Retrieval.evaluation`` and ``itm_eval`` of the published code).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import UnknownNameError
from diptych.metrics.candidates import Candidates
from diptych.metrics.first_stage import FirstStage
from diptych.metrics.positives import Positives
from diptych.metrics.ranks import Ranks
from diptych.metrics.reranked import UNSCORED

UNRANKED_RULES = ("miss", "contrastive", "published")

_NUMBERS = 1 << 21  # candidates looked at at once


def check_unranked(rule: str) -> None:
    """Refuse a rule that does not exist."""
    if rule not in UNRANKED_RULES:
        raise UnknownNameError("rule for unranked candidates", rule, UNRANKED_RULES)


@dataclass(frozen=True, eq=False)
class _Entries:
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
        self._keys = positives.queries * max(positives.gallery, 1) + positives.rows  # ascending
        n, step = len(self._items), max(1, _NUMBERS // candidates.k)
        parts = [self._inside(begin, min(begin + step, n)) for begin in range(0, n, step)]
        self._query, self._row, self._score = (np.concatenate(part) for part in zip(*parts, strict=True))
        inside = self._query * max(positives.gallery, 1) + self._row
        self._outside = np.setdiff1d(np.arange(len(self._keys)), np.searchsorted(self._keys, inside))

    @property
    def has_ranked(self) -> np.ndarray:
        """(n_queries,) booleans: a positive is among the candidates."""
        found: np.ndarray = np.bincount(self._query, minlength=len(self._items)) > 0
        return found

    def ranks(self, unranked: str, every: bool, first: FirstStage | None = None) -> Ranks:
        """The direction's ranks under a rule.

        ``scores`` of the result only says which positives tie, for scores of two stages do not compare.
        """
        inside = self._counted(self._query, self._row, self._score, self._final)
        outside = None
        if unranked == "contrastive":
            assert first is not None
            outside = self._after_candidates(first)
        elif unranked == "published":
            rest = self._positives.gallery - self._positives.counts - self._items.shape[1]
            rest += np.bincount(self._query, minlength=len(rest))  # negatives that are no candidates
            inside = self._with_unscored(inside, rest)
            rows = self._outside
            outside = self._with_unscored(
                self._counted(
                    self._positives.queries[rows],
                    self._positives.rows[rows],
                    np.full(len(rows), UNSCORED, dtype=np.float32),
                    self._final,
                ),
                rest,
            )
        return self._assembled(inside, outside, unranked, every)

    def _is_positive(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        keys = queries[:, None] * self._positives.gallery + items
        if not len(self._keys):
            return np.zeros(keys.shape, dtype=bool)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found: np.ndarray = self._keys[place] == keys
        return found

    def _inside(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Query, gallery row and final score of the positives among the candidates of some queries."""
        items = np.asarray(self._items[begin:end])
        local, column = np.nonzero(self._is_positive(np.arange(begin, end), items))
        return begin + local, items[local, column], self._final(slice(begin, end), items)[local, column]

    def _final(self, queries: np.ndarray | slice, items: np.ndarray) -> np.ndarray:
        matching = np.asarray(self._candidates.matching[queries])
        if not self._adds:
            return matching
        summed: np.ndarray = matching + self._candidates.contrastive[queries]
        return summed

    def _counted(
        self,
        query: np.ndarray,
        row: np.ndarray,
        score: np.ndarray,
        scores_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> _Entries:
        """Entries with the candidates that are negatives and score more, the same, the same and later."""
        counts = np.zeros((3, len(query)), dtype=np.int64)
        step = max(1, _NUMBERS // self._items.shape[1])
        for begin in range(0, len(query), step):
            here = slice(begin, begin + step)
            items = np.asarray(self._items[query[here]])
            negative = ~self._is_positive(query[here], items)
            scores, own = scores_of(query[here], items), score[here, None]
            tied = negative & (scores == own)
            masks = (negative & (scores > own), tied, tied & (items > row[here, None]))
            counts[:, here] = [np.count_nonzero(mask, axis=1) for mask in masks]
        return _Entries(query, row, score, *counts)

    def _with_unscored(self, entries: _Entries, rest: np.ndarray) -> _Entries:
        """The same with -100 in every cell that was not scored; ``rest`` is how many negatives that are."""
        others = rest[entries.query]
        above = entries.above + others * (entries.score < UNSCORED)
        same = entries.score == UNSCORED
        later = entries.later.copy()
        later[same] += self._unscored_after(entries.query[same], entries.row[same])
        return _Entries(entries.query, entries.row, entries.score, above, entries.tied + others * same, later)

    def _unscored_after(self, query: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Negatives after ``row`` in the gallery that are no candidates of ``query``."""
        everything = self._positives.gallery - 1 - row
        place = np.searchsorted(self._keys, query * self._positives.gallery + row, side="right")
        positives = self._positives.start[query + 1] - place
        # Candidates all tie here, so "the same and later" counts those after the row.
        flat = self._counted(query, row, np.zeros(len(query)), lambda _, items: np.zeros(items.shape))
        left: np.ndarray = everything - positives - flat.later
        return left

    def _after_candidates(self, first: FirstStage) -> _Entries:
        """Positives that are no candidates, in the order of the first stage after all candidates."""
        ranks = first.ranks
        key = ranks.queries * max(self._positives.gallery, 1) + first.rows
        keep = np.flatnonzero(np.isin(key, self._keys[self._outside]))
        query, row = ranks.queries[keep], first.rows[keep]

        def contrastive(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
            pairs = first.score(np.repeat(queries, items.shape[1]), items.reshape(-1))
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

    def _assembled(self, inside: _Entries, outside: _Entries | None, unranked: str, every: bool) -> Ranks:
        parts = [inside] if outside is None else [inside, outside]
        query, row, score, above, tied, later = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("query", "row", "score", "above", "tied", "later")
        )
        second = np.arange(len(query)) >= len(inside.query)
        if unranked == "published":  # one matrix: what was not scored stands where -100 stands
            second = np.zeros(len(query), dtype=bool)
        order = np.lexsort((-row, -score, second, query))
        query, score, second = query[order], score[order], second[order]
        new = np.ones(len(query), dtype=bool)
        new[1:] = (query[1:] != query[:-1]) | (score[1:] != score[:-1]) | (second[1:] != second[:-1])
        group = np.cumsum(new) - 1
        first = np.ones(len(query), dtype=bool)
        first[1:] = query[1:] != query[:-1]
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
