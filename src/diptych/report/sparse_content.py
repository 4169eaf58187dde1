"""What the page of a sparse head says, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diptych.core.errors import DataError, NumericalError
from diptych.report.content import Headline
from diptych.report.terms import Match, TermCard


@dataclass(frozen=True)
class ComparedRow:
    """One measure of dense and sparse rows, as printed.

    Attributes:
        measure: with its direction, ``"t2i R@1"``.
        dense, sparse: the values.
        kept: the sparse value in per cent of the dense one.
        p: of the difference, corrected.
    """

    measure: str
    dense: str
    sparse: str
    kept: str = ""
    p: str = ""


@dataclass(frozen=True)
class TradeoffPoint:
    """What one head costs and what it finds.

    Attributes:
        label: what sets it apart, ``"η = 1e-3, c"``.
        flops: mean number of common terms of a caption and a picture, more than 0 to be drawn.
        values: measure → value in per cent.
        this: whether it is the head that the page is about.
        line: points of the same name are joined by a line.
    """

    label: str
    flops: float
    values: Mapping[str, float]
    this: bool = False
    line: str = ""

    def __post_init__(self) -> None:
        for name, value in (("FLOPs", self.flops), *self.values.items()):
            if not math.isfinite(value):
                raise NumericalError(f"{self.label}: {name} is {value}", "leave out what is not a number")


@dataclass(frozen=True)
class SparseReport:
    """All that the page of a sparse head shows; what is empty is left out.

    Attributes:
        title: the first line.
        protocol_line: what the numbers depend on; printed with them.
        subtitle: one line below the title.
        headlines: a few figures shown large.
        compared: dense and sparse rows, measure by measure.
        figures: name → value of everything else that was measured.
        tradeoff: heads by cost and effectiveness, this one among them.
        dense: measure → value of the dense rows in per cent: what the trade-off is drawn against.
        overlap: per query, the share of the dense list that the sparse one has, in [0, 1].
        k: how long these lists are.
        pictures: pictures with their heaviest terms.
        captions: captions with theirs, own terms marked.
        matches: what a few scores are made of.
        notes: what a reader should know, one sentence each.
        commands: how to make it again.
        fingerprints: of dense encoder, head, vocabulary, data.
    """

    title: str
    protocol_line: str
    subtitle: str = ""
    headlines: Sequence[Headline] = ()
    compared: Sequence[ComparedRow] = ()
    figures: Sequence[tuple[str, str]] = ()
    tradeoff: Sequence[TradeoffPoint] = ()
    dense: Mapping[str, float] = field(default_factory=dict)
    overlap: Sequence[float] = ()
    k: int = 10
    pictures: Sequence[TermCard] = ()
    captions: Sequence[TermCard] = ()
    matches: Sequence[Match] = ()
    notes: Sequence[str] = ()
    commands: Sequence[str] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.protocol_line:
            raise DataError(
                f"report {self.title!r} has no protocol line", "say dataset, split, sizes, head and expansion"
            )
        if any(not 0 <= share <= 1 for share in self.overlap):
            raise DataError("an overlap of two lists is outside [0, 1]", "give shares, not counts")
