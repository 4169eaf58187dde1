"""What a format of judgements declares, what its file says, and the registry of formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diptych.core.registry import Registry


@dataclass(frozen=True, eq=False)
class Judged:
    """What a file says, in its own ids.

    Attributes:
        what: the format in a few words, for protocols.
        pairs: (image, caption) ids of each judged pair, in the file's order.
        ratings: one per pair, the more the better; the mean where several people rated.
        lowest: the rating of a pair that has nothing to do with each other, where the scale begins.
        highest: where it ends.
    """

    what: str
    pairs: list[tuple[str, str]]
    ratings: list[float]
    lowest: float
    highest: float


@dataclass(frozen=True)
class JudgementReader:
    """How one format of judgements is read.

    Attributes:
        name: what ``--judgements NAME:FILE`` calls it.
        description: one line for help texts.
        citation: where the judgements come from.
        read: from a path to what the file says.
    """

    name: str
    description: str
    citation: str
    read: Callable[[Path], Judged]


JUDGEMENTS: Registry[JudgementReader] = Registry("format of judgements", "diptych.data.judgements")
