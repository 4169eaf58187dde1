"""Gains of a whole test set: from what ranks, a relevance model and grades to those of one gallery."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from diptych.core.errors import UsageError
from diptych.evaluation.partitioning import Fold
from diptych.metrics.gain_measure import Gain, Gained, GainMeasure
from diptych.metrics.gaining import gained
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.positives import DIRECTIONS, Direction
from diptych.metrics.relevance import Grades, Relevance
from diptych.metrics.sources import ScoreSource

OWN_GAINS = "the cosine by the evaluated model"
"""How the protocol says that no other model says how relevant an item is."""

_WARNING = "its scale counts, so models are not compared by it"


class GainGalleries:
    """Gains of every gallery.

    Args:
        own_of: from a gallery and what ranks it to the evaluated model's similarities; None where it has none.
    """

    def __init__(
        self,
        truth: GroundTruth,
        source_of: Callable[[Fold], ScoreSource],
        own_of: Callable[[Fold, ScoreSource], ScoreSource] | None,
        *,
        no_own: str = "",
        relevance: Relevance | None = None,
        grades: Grades | None = None,
        block: int,
    ) -> None:
        self._truth, self._block = truth, block
        self._source_of, self._own_of, self._no_own = source_of, own_of, no_own
        self._relevance, self._grades = relevance, grades

    def check(self, measures: Sequence[GainMeasure]) -> None:
        """Refuse what cannot be computed, before anything is."""
        of_similarity = [member for member in measures if member.gain.of == "similarity"]
        if not of_similarity:
            return
        if self._relevance is not None:
            self._relevance.source(self._truth.n_images, self._truth.n_texts)
        elif self._own_of is None:
            names = " and ".join(member.name for member in of_similarity)
            raise UsageError(
                f"{names} by the evaluated model need cosines, and {self._no_own}",
                "name a relevance model (--relevance), or leave them out",
            )

    def said(self, member: GainMeasure) -> str:
        """What the gains are and by what, for the protocol."""
        if member.gain.of == "similarity":
            if self._relevance is None:
                return f"1 for a match, else {OWN_GAINS}, {member.gain.says} ({_WARNING})"
            return f"1 for a match, else the cosine by {self._relevance.name}, {member.gain.says}"
        if self._grades is None:
            return f"{member.gain.says}, 1 for a match"
        counts = {
            int(np.sum(self._grades.ungraded(self._truth.positives(name), name)[self._asking(name)]))
            for name in DIRECTIONS
        }
        alone = f", {max(counts):,} matches without one have {self._grades.highest:g}" if max(counts) else ""
        return f"{member.gain.says} of {self._grades.what}{alone}"

    def _asking(self, direction: Direction) -> np.ndarray:
        """Which pairs of the ground truth belong to a query that is asked."""
        positives = self._truth.positives(direction)
        asked = np.zeros(positives.n_queries, dtype=bool)
        asked[self._truth.queries(direction)] = True
        pairs: np.ndarray = asked[positives.queries]
        return pairs

    def of(
        self, fold: Fold, measures: Sequence[GainMeasure], ties: str
    ) -> dict[Direction, dict[Gain, Gained]]:
        """Gains of one gallery, per direction; errors as of :meth:`check`."""
        source = self._source_of(fold)
        truth = fold.ground_truth
        similar: ScoreSource | None = None
        if any(member.gain.of == "similarity" for member in measures):
            if self._relevance is not None:
                part = self._relevance.part(fold.images, fold.texts)
                similar = part.source(truth.n_images, truth.n_texts)
            elif self._own_of is not None:
                similar = self._own_of(fold, source)
        grades = self._grades
        if grades is not None:
            rows = np.arange(self._truth.n_images)[fold.images], np.arange(self._truth.n_texts)[fold.texts]
            grades = grades.part(*rows, self._truth.n_images, self._truth.n_texts)
        return {
            name: gained(
                source,
                similar,
                truth.positives(name),
                name,
                [member.gain for member in measures],
                max(member.cutoff or truth.positives(name).gallery for member in measures),
                ties=ties,
                grades=grades,
                best=any(member.needs_best for member in measures),
                block=self._block,
            )
            for name in DIRECTIONS
        }


def check_no_gains(measures: Sequence[object]) -> None:
    """Refuse measures of gains where only candidates were ranked."""
    for member in measures:
        if isinstance(member, GainMeasure):
            raise UsageError(
                f"{member.name} looks at the first places of the whole gallery, and candidates alone are ranked",
                "measure it without re-ranking",
            )
