"""GainMeasure: a declared number about what stands at the first places, its chance level included.

A :class:`~diptych.metrics.measuring.Measure` sees where the positives stand; a gain measure sees what
every item of the first places is worth, positives or not. Adding one is one new file in
:mod:`diptych.metrics.measures` as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from diptych.metrics.declared_measure import DeclaredMeasure


@dataclass(frozen=True)
class Gain:
    """What an item is worth to a query.

    Attributes:
        of: ``"similarity"``: 1 for a labelled match, else the transformed similarity of the two;
            ``"grade"``: the transformed grade of the pair, 0 for one that nobody graded.
        transform: elementwise, never descending; of a grade 0 it gives 0.
        says: what it does, for the protocol.
    """

    of: Literal["similarity", "grade"]
    transform: Callable[[np.ndarray], np.ndarray] = field(repr=False)
    says: str


@dataclass(frozen=True, eq=False)
class Gained:
    """Gains of one direction's queries.

    Attributes:
        first: (n, places) the gain at each of the first places, expected where ties leave it open.
        best: (n, places) the greatest gains of the gallery, descending; None unless wanted.
        mean: (n,) the mean gain of the gallery; None unless wanted.
    """

    first: np.ndarray
    best: np.ndarray | None = None
    mean: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class GainMeasure(DeclaredMeasure):
    """One measure of gains, or a family ``NAME@k`` until its cut-off is given.

    Attributes:
        gain: what an item is worth.
        per_query: from (n, k) gains at the first places and the (n, k) best gains to one float64 per query;
            linear in the former, so that expectations over tied orders, and chance, are exact.
        needs_best: whether the best gains are looked at; computing them takes one more list per query.
    """

    gain: Gain
    per_query: Callable[[np.ndarray, np.ndarray | None], np.ndarray] = field(repr=False)
    needs_best: bool = False
    positives: Literal["best", "all"] = "all"
    kind: Literal["share", "rank", "gain"] = "gain"

    def values(self, gained: Gained) -> np.ndarray:
        """(n_queries,) float64; a gallery of fewer than k items has fewer places."""
        best = None if gained.best is None else gained.best[:, : self.cutoff]
        return self.per_query(gained.first[:, : self.cutoff], best)

    def chances(self, gained: Gained) -> np.ndarray:
        """(n_queries,) the expectation of each query when every order of the gallery is equally likely."""
        assert gained.mean is not None
        places = gained.first[:, : self.cutoff].shape
        best = None if gained.best is None else gained.best[:, : self.cutoff]
        return self.per_query(np.broadcast_to(gained.mean[:, None], places), best)
