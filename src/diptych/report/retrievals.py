"""Queries with what they retrieved, as plain data: what contact sheets and reports draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from diptych.core.errors import DataError, NumericalError
from diptych.report.pictures import PictureSource


@dataclass(frozen=True)
class Query:
    """What was asked: a caption or a picture, one of the two.

    Attributes:
        name: the id in its collection.
        caption: the sentence, when text asks for images.
        picture: the picture, when an image asks for texts.
    """

    name: str
    caption: str | None = None
    picture: PictureSource | None = None

    def __post_init__(self) -> None:
        if (self.caption is None) == (self.picture is None):
            raise DataError(f"query {self.name!r} must be a caption or a picture, one of the two")


@dataclass(frozen=True)
class Retrieved:
    """One item of a ranking.

    Attributes:
        name: the id in its collection.
        score: similarity to the query.
        is_right: whether it answers the query; ``None`` when nobody has said.
        caption: the retrieved sentence, or a few words for the retrieved picture.
        picture: the retrieved picture, or ``None`` when a sentence was retrieved.
        rank: its place, counted from 1; ``None``: its place in the list it is given in.
    """

    name: str
    score: float
    is_right: bool | None = None
    caption: str = ""
    picture: PictureSource | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise NumericalError(
                f"the score of {self.name!r} is {self.score}", "search with finite embeddings"
            )


@dataclass(frozen=True)
class Retrieval:
    """A query with the head of its ranking.

    Attributes:
        query: what was asked.
        retrieved: the first items, best first.
        right_rank: place of the first right item in the whole gallery, from 1.
        expected: the right item, shown apart when it is not among ``retrieved``.
    """

    query: Query
    retrieved: Sequence[Retrieved]
    right_rank: int | None = None
    expected: Retrieved | None = None

    def __post_init__(self) -> None:
        items = [*self.retrieved, *([] if self.expected is None else [self.expected])]
        pictures = sum(item.picture is not None for item in items)
        if pictures not in (0, len(items)):
            raise DataError(
                f"query {self.query.name!r}: {pictures} of {len(items)} retrieved items have a picture",
                "retrieve pictures or captions, not both at once",
            )

    @property
    def is_text_to_image(self) -> bool:
        """Whether a caption asks for pictures."""
        return self.query.caption is not None
