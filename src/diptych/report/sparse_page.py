"""A sparse head as a page: dense and sparse side by side, cost, terms of pictures and captions, matches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import track
from diptych.core.errors import DataError, NumericalError
from diptych.core.files import write_bytes
from diptych.core.table import Table
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.html import CAPTION_LIMIT, THUMBNAIL_SIDE
from diptych.report.page import DARK, LIGHT, Headline, shorten, templates
from diptych.report.pictures import Thumbnails
from diptych.report.terms import Match, TermCard


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
        compared: dense and sparse rows, measure by measure, as printed: kept in per cent, p corrected.
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
    compared: Table | None = None
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


_MARKERS = "os^Dv"


def tradeoff_figure(points: Sequence[TradeoffPoint], dense: Mapping[str, float], measure: str) -> str:
    """One measure against FLOPs on a logarithmic axis, the dense rows' value as a dashed line, as ``<svg>``.

    Points of one line are joined; the page's own head is marked (thesis, Figure 3.2a).
    """
    drawn = [point for point in points if point.flops > 0 and measure in point.values]
    if not drawn:
        raise DataError(
            f"no head has FLOPs and a {measure}, so there is no trade-off", "leave the figure out"
        )
    lines = list(dict.fromkeys(point.line for point in drawn))
    parts = [f"{point.label}: {point.flops:.1f} FLOPs, {point.values[measure]:.1f}" for point in drawn]
    with draw(f"tradeoff-{_name(measure)}", size=(5.2, 3.3)) as drawing:
        axes = drawing.axes
        for number, line in enumerate(lines):
            here = sorted((point for point in drawn if point.line == line), key=lambda point: point.flops)
            axes.plot(
                [point.flops for point in here],
                [point.values[measure] for point in here],
                color=(BLUE, ORANGE)[number % 2],
                linestyle=("-", "-", ":", ":", "--")[number % 5],
                marker=_MARKERS[number % len(_MARKERS)],
                linewidth=1.5,
                label=line or None,
            )
        for point in drawn:  # below and to the right: lines rise from left to right
            axes.annotate(
                point.label,
                (point.flops, point.values[measure]),
                (6, -12),
                textcoords="offset points",
                fontsize=8.5,
            )
        own = [point for point in drawn if point.this]
        if own:
            axes.plot(
                [point.flops for point in own],
                [point.values[measure] for point in own],
                linestyle="none",
                marker="o",
                markersize=12,
                markerfacecolor="none",
                markeredgecolor=INK,
                label="this head",
            )
        if measure in dense:
            value = dense[measure]
            axes.axhline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1.2, label=f"dense: {value:.1f}")
            parts.append(f"dense rows {value:.1f}")
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.margins(x=0.15, y=0.15)
        _plain_ticks(axes, [point.flops for point in drawn])
        axes.set(
            title=f"{measure} and cost", xlabel="FLOPs (common terms of a pair)", ylabel=f"{measure} (%)"
        )
        if axes.get_legend_handles_labels()[0]:
            drawing.figure.legend(loc="outside lower left", ncols=3)
        drawing.summary = f"{measure} in per cent against FLOPs: {'; '.join(parts)}."
    return drawing.svg


def overlap_figure(overlap: Sequence[float], k: int) -> str:
    """How many queries find how many of the k best dense items again, as ``<svg>`` (thesis, Figure 3.2b)."""
    if not len(overlap):
        raise DataError("no query has an overlap, so there is no histogram", "leave the figure out")
    shares = np.asarray(overlap, dtype=np.float64)
    counts = np.bincount(np.rint(shares * k).astype(np.int64), minlength=k + 1)
    per_cent = 100 * counts / len(shares)
    mean = float(k * shares.mean())
    with draw("overlap", size=(5.2, 3.3)) as drawing:
        axes = drawing.axes
        axes.bar(range(k + 1), per_cent, 0.8, color=BLUE, alpha=0.9)
        axes.axvline(mean, color=INK, linestyle=(0, (4, 3)), linewidth=1.2, label=f"mean: {mean:.1f} of {k}")
        axes.set(
            title=f"Of the {k} best by dense rows, found again",
            xlabel=f"items in both lists of {k}",
            ylabel="queries (%)",
        )
        axes.set_xlim(-0.6, k + 0.6)
        if k <= 20:
            axes.set_xticks(range(k + 1))
        drawing.figure.legend(loc="outside lower left")
        parts = [f"{number}: {share:.1f} %" for number, share in enumerate(per_cent)]
        drawing.summary = (
            f"Queries by how many of {k} items both lists have: {', '.join(parts)}; mean {mean:.1f}."
        )
    return drawing.svg


def _name(measure: str) -> str:
    """What may stand in an id."""
    return "".join(letter if letter.isalnum() else "-" for letter in measure.lower())


def _plain_ticks(axes: object, flops: Sequence[float]) -> None:
    """Ticks at 1, 2, 5, 10 …, written as numbers and not as powers."""
    low, high = min(flops) / 2, max(flops) * 2
    ticks = [base * 10.0**power for power in range(-4, 7) for base in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    axes.set_xticks(inside, [f"{tick:,.10g}" for tick in inside])  # type: ignore[attr-defined]


_SHOWN = 12  # terms of a match


def write_sparse_report(
    content: SparseReport, path: Path | str, *, thumbnail_side: int = THUMBNAIL_SIDE
) -> Path:
    """Write ``content`` as one self-contained HTML file, whole or not at all."""
    page = render_sparse_report(content, thumbnail_side=thumbnail_side)
    write_bytes(path, page.encode("utf-8", "replace"))
    return Path(path)


def render_sparse_report(content: SparseReport, *, thumbnail_side: int = THUMBNAIL_SIDE) -> str:
    """``content`` as the text of one HTML page.

    Pictures that cannot be read are shown as labelled placeholders and counted in the notes.
    """
    from markupsafe import Markup

    thumbnails = Thumbnails(thumbnail_side)
    pictures = [_card(card, thumbnails) for card in track(content.pictures, "pictures", unit="pictures")]
    captions = [_card(card, thumbnails) for card in content.captions]
    matches = [_match(match, thumbnails) for match in track(content.matches, "matches", unit="matches")]
    measures = dict.fromkeys(name for point in content.tradeoff for name in point.values)
    figures = [
        tradeoff_figure(content.tradeoff, content.dense, name) for name in _drawable(content, measures)
    ]
    if len(content.overlap):
        figures.append(overlap_figure(content.overlap, content.k))
    note = thumbnails.note()
    return (
        templates()
        .get_template("sparse.html.j2")
        .render(
            content=content,
            drawings=[Markup(figure) for figure in figures],
            pictures=pictures,
            captions=captions,
            matches=matches,
            marked=any(one.own is not None for card in content.captions for one in card.terms),
            notes=[*content.notes, note] if note else list(content.notes),
            light=LIGHT,
            dark=DARK,
        )
    )


def _drawable(content: SparseReport, measures: dict[str, None]) -> list[str]:
    """Measures that two heads or more, or a head and the dense rows, can be compared by."""
    return [
        name
        for name in measures
        if (points := sum(point.flops > 0 and name in point.values for point in content.tradeoff))
        and points + (name in content.dense) > 1
    ]


def _card(card: TermCard, thumbnails: Thumbnails) -> dict[str, Any]:
    return {
        **_side(card, thumbnails),
        "bars": [
            {
                "label": shorten(one.term, 80),
                "width": _width(one.weight, card.heaviest),
                "number": f"{one.weight:.2f}",
                "own": one.own,
            }
            for one in card.terms
        ],
    }


def _side(card: TermCard, thumbnails: Thumbnails) -> dict[str, Any]:
    shown = None
    if card.picture is not None:
        shown = {"thumbnail": thumbnails.make(card.picture, card.name)}
    return {
        "name": shorten(card.name, CAPTION_LIMIT),
        "caption": shorten(card.caption, CAPTION_LIMIT),
        "picture": shown,
    }


def _match(match: Match, thumbnails: Thumbnails) -> dict[str, Any]:
    longest = max((one.contribution for one in match.terms), default=0.0)
    rest: Sequence[Any] = match.terms[_SHOWN:]
    return {
        "query": _side(match.query, thumbnails),
        "item": _side(match.item, thumbnails),
        "score": f"{match.score:.3f}",
        "bars": [
            {
                "label": shorten(one.term, 80),
                "width": _width(one.contribution, longest),
                "number": f"{one.contribution:.2f} = {one.query:.2f} × {one.item:.2f}",
                "own": None,
            }
            for one in match.terms[:_SHOWN]
        ],
        "rest": len(rest),
        "rest_sum": f"{sum(one.contribution for one in rest):.2f}",
    }


def _width(value: float, longest: float) -> str:
    """A bar's width in per cent."""
    return f"{100 * value / longest:.1f}" if longest > 0 else "0"
