"""Ties: what stands where when scores are equal, by a named rule.

========== ==================================================================================
expected   every order of the tied is equally likely, and a measure is its exact expectation
           over them (McSherry and Najork, ECIR 2008). The default: it favours nobody, it does
           not depend on the order of the files, and a model that gives every pair the same
           score gets exactly chance level.
pessimistic  the tied negatives come first: the least the model can claim.
optimistic   the tied positives come first: what counting with a strict ">" does. A collapsed
           model scores 100 %, so it is there for comparison only.
compat     later gallery rows first: what VSE++'s published ``argsort()[::-1]`` does whenever its
           sort keeps equal elements in order.
========== ==================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.core.errors import UnknownNameError
from diptych.metrics.ranks import Ranks

TieRule = Literal["expected", "pessimistic", "optimistic", "compat"]
TIE_RULES: tuple[TieRule, ...] = get_args(TieRule)


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Sets of neighbours in a ranking whose order is open, each with at least one positive.

    A rule that decides every order gives groups of one positive and no negative.

    Attributes:
        query: (g,) the query of each group; ascending, best group first within a query.
        before: items of the gallery that certainly come before the group.
        found: how many of those are positives.
        negatives: negatives in the group.
        positives: positives in the group, at least 1.
        relevant: (n_queries,) all positives of each query.
        gallery: size of the gallery.
        complete: every positive is in a group; otherwise only the best group of each query is there.
    """

    query: np.ndarray
    before: np.ndarray
    found: np.ndarray
    negatives: np.ndarray
    positives: np.ndarray
    relevant: np.ndarray
    gallery: int
    complete: bool

    @property
    def size(self) -> np.ndarray:
        """(g,) items in each group."""
        size: np.ndarray = self.negatives + self.positives
        return size

    @property
    def n_queries(self) -> int:
        """How many queries, those without a positive included."""
        return len(self.relevant)

    @property
    def best(self) -> np.ndarray:
        """The first group of each query that has one."""
        first = np.ones(len(self.query), dtype=bool)
        first[1:] = self.query[1:] != self.query[:-1]
        return np.flatnonzero(first)

    def hits(self, cutoff: np.ndarray) -> np.ndarray:
        """(n_queries,) positives expected among the first ``cutoff[query]`` of each query."""
        inside = np.clip(cutoff[self.query] - self.before, 0, self.size)
        hits = self.positives * inside / self.size
        expected: np.ndarray = np.bincount(self.query, weights=hits, minlength=self.n_queries)
        return expected


def check_rule(rule: str) -> None:
    """Refuse a tie rule that does not exist."""
    if rule not in TIE_RULES:
        raise UnknownNameError("tie rule", rule, TIE_RULES)


def tie_groups(ranks: Ranks, rule: str) -> TieGroups:
    """Return the ranking under the tie rule of that name."""
    check_rule(rule)
    query = ranks.queries
    place = np.arange(len(query)) - ranks.start[:-1][query]  # positives of the query listed before this
    above = ranks.above
    negatives, positives = np.zeros_like(above), np.ones_like(above)
    keep = np.arange(len(query))
    if rule == "expected":
        keep = np.flatnonzero(
            np.r_[True, (query[1:] != query[:-1]) | (ranks.scores[1:] != ranks.scores[:-1])][: len(query)]
        )
        negatives, positives = ranks.tied, ranks.group
    elif rule == "pessimistic":
        above = above + ranks.tied
    elif rule == "compat":
        above = above + ranks.later
    return TieGroups(
        query=query[keep],
        before=(above + place)[keep],
        found=place[keep],
        negatives=negatives[keep],
        positives=positives[keep],
        relevant=ranks.positives,
        gallery=ranks.gallery,
        complete=ranks.complete,
    )


def tied_throughout(relevant: np.ndarray, gallery: int) -> TieGroups:
    """Return the ranking of a model that cannot tell anything apart, from (n_queries,) positives of each."""
    query = np.flatnonzero(relevant > 0)
    nothing = np.zeros(len(query), dtype=np.int64)
    positives = relevant[query]
    return TieGroups(query, nothing, nothing, gallery - positives, positives, relevant, gallery, True)


# What happens to the first positive of a tie group when every order is equally likely. A group of
# ``negatives`` and ``positives`` items starts after ``before`` others; the place of its first positive
# follows the negative hypergeometric distribution.


def found_within(
    before: np.ndarray, negatives: np.ndarray, positives: np.ndarray, cutoff: int | np.ndarray
) -> np.ndarray:
    """Return the probability that each group's first positive is among the first ``cutoff`` of the gallery.

    1 - C(negatives, x) / C(negatives + positives, x) for the x = cutoff - before places that are open;
    exactly 0 or 1 where no order is open.
    """
    total = negatives + positives
    places = np.clip(np.asarray(cutoff) - before, 0, total)
    missed = np.ones(len(places))
    # The same product has `places` factors or, read the other way, `positives` factors.
    other, steps = np.maximum(places, positives), np.minimum(places, positives)
    for step in range(int(steps.max(initial=0))):
        factor = (total - other - step) / np.maximum(total - step, 1)
        missed = np.where(step < steps, missed * np.maximum(factor, 0.0), missed)
    return 1.0 - missed


def expected_reciprocal(
    before: np.ndarray, negatives: np.ndarray, positives: np.ndarray, cutoff: int | None = None
) -> np.ndarray:
    """Return the expected 1/rank of each group's first positive, 0 beyond ``cutoff``.

    Equal groups are computed once; the time is bounded by the largest group or the cut-off.
    """
    groups, which = np.unique(np.stack([before, negatives, positives]), axis=1, return_inverse=True)
    before, negatives, positives = groups
    total = np.zeros(groups.shape[1])
    chance = positives / (negatives + positives)  # that the first positive takes the step-th open place
    most = int(negatives.max(initial=0))
    for step in range(most + 1 if cutoff is None else min(most + 1, cutoff)):
        rank = before + 1 + step
        total += np.where((cutoff is None) | (rank <= (cutoff or 0)), chance / rank, 0.0)
        chance = chance * (negatives - step) / np.maximum(negatives + positives - step - 1, 1)
    values: np.ndarray = total[which.reshape(-1)]
    return values
