"""A sparse head as a page: dense and sparse side by side, cost, terms of pictures and captions, matches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diptych.core.files import write_bytes
from diptych.core.progress import track
from diptych.report.html import CAPTION_LIMIT, THUMBNAIL_SIDE
from diptych.report.palette import DARK, LIGHT
from diptych.report.pictures import Thumbnails
from diptych.report.sparse_content import SparseReport
from diptych.report.sparse_figures import overlap_figure, tradeoff_figure
from diptych.report.templating import templates
from diptych.report.terms import Match, TermCard
from diptych.report.words import shorten

__all__ = ["render_sparse_report", "write_sparse_report"]

_SHOWN = 12  # terms of a match


def write_sparse_report(
    content: SparseReport, path: Path | str, *, thumbnail_side: int = THUMBNAIL_SIDE
) -> Path:
    """Write ``content`` as one self-contained HTML file, whole or not at all.

    Raises:
        StorageError: the file cannot be written; an older one is untouched.
    """
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
