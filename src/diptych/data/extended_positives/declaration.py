"""What a format of extended positives declares, what its file says, and the registry of formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from diptych.core.registry import Registry

Pair = tuple[str, str]
"""The ids of an image and of a caption."""


@dataclass(frozen=True, eq=False)
class Listed:
    """What a file says, in its own ids.

    Attributes:
        what: the format and its options in a few words, for the protocol.
        i2t: pairs whose caption is relevant to the image that asks.
        t2i: pairs whose image is relevant to the caption that asks.
        images: images that ask.
        captions: captions that ask.
        judged: all pairs that were looked at, relevant or not; a collection's own pair that was not
            stays relevant. None: every pair of a query that asks was looked at.
        grades: how relevant people found the pairs that they rated, 0 or more, relevant or not; None where
            the format has no grades.
    """

    what: str
    i2t: frozenset[Pair]
    t2i: frozenset[Pair]
    images: frozenset[str]
    captions: frozenset[str]
    judged: frozenset[Pair] | None = None
    grades: Mapping[Pair, float] | None = None


@dataclass(frozen=True)
class PositivesReader:
    """How one format of extended positives is read.

    Attributes:
        name: what ``--positives NAME:PATH`` calls it.
        description: one line for help texts.
        citation: where the positives come from.
        read: path and keyword options to what the file says.
        options: the keyword options and what each means.
    """

    name: str
    description: str
    citation: str
    read: Callable[..., Listed]
    options: dict[str, str]


EXTENDED_POSITIVES: Registry[PositivesReader] = Registry(
    "format of extended positives", "diptych.data.extended_positives"
)
