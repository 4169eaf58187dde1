"""Bags of weighted terms as plain data: what sheets and pages of sparse rows draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from diptych.core.errors import DataError, NumericalError
from diptych.report.pictures import PictureSource


@dataclass(frozen=True)
class WeightedTerm:
    """One term of a row.

    Attributes:
        term: as people read it.
        weight: at least 0.
        own: whether the caption contains it; None where there is no caption to contain it.
    """

    term: str
    weight: float
    own: bool | None = None

    def __post_init__(self) -> None:
        _check_weight(self.term, self.weight)


@dataclass(frozen=True)
class TermCard:
    """A picture or a caption with its heaviest terms.

    Attributes:
        name: its id.
        terms: heaviest first.
        caption: the sentence, or a few words for the picture.
        picture: the picture; None for a caption.
    """

    name: str
    terms: Sequence[WeightedTerm]
    caption: str = ""
    picture: PictureSource | None = None

    @property
    def heaviest(self) -> float:
        """The largest weight, 0 without a term."""
        return max((one.weight for one in self.terms), default=0.0)


@dataclass(frozen=True)
class MatchTerm:
    """One term that a query and an item have in common.

    Attributes:
        term: as people read it.
        query: its weight in the query's row.
        item: its weight in the item's row.
        contribution: what it adds to the score.
    """

    term: str
    query: float
    item: float
    contribution: float

    def __post_init__(self) -> None:
        for weight in (self.query, self.item, self.contribution):
            _check_weight(self.term, weight)


@dataclass(frozen=True)
class Match:
    """A query, an item, and what their score is made of; each side is a caption or a picture.

    Attributes:
        query: with its own heaviest terms, or none.
        item: likewise.
        terms: all common terms, most first; their contributions add up to ``score``.
        score: of the pair.
    """

    query: TermCard
    item: TermCard
    terms: Sequence[MatchTerm]
    score: float

    def __post_init__(self) -> None:
        total = math.fsum(one.contribution for one in self.terms)
        if not math.isclose(total, self.score, rel_tol=1e-4, abs_tol=1e-6):
            raise DataError(
                f"{self.query.name!r} and {self.item.name!r}: contributions add up to {total:.6g}, the score is "
                f"{self.score:.6g}",
                "give all common terms, those that are not shown as well",
            )


def _check_weight(term: str, weight: float) -> None:
    if not (math.isfinite(weight) and weight >= 0):
        raise NumericalError(f"the weight of {term!r} is {weight}", "weights are finite and at least 0")
