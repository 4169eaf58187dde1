"""The report: one HTML file that holds everything it shows and fetches nothing.

Captions, names and recipes are other people's text: the template escapes all of it, and the page
forbids scripts and foreign addresses to itself besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diptych.core.context import track
from diptych.core.files import write_bytes
from diptych.report.content import Curves, ReportContent
from diptych.report.palette import DARK, LIGHT, judgement
from diptych.report.pictures import PictureSource, Thumbnail, Thumbnails
from diptych.report.retrievals import Retrieval, Retrieved
from diptych.report.templating import templates
from diptych.report.words import shorten

CAPTION_LIMIT = 400
"""Characters of a caption that a page shows; a longer one is cut and its length stated."""

THUMBNAIL_SIDE = 320
"""Longest side of a picture on the page, in pixels."""

_MARKS = {"right": "✓", "wrong": "✗", "unknown": "·"}


def write_report(content: ReportContent, path: Path | str, *, thumbnail_side: int = THUMBNAIL_SIDE) -> Path:
    """Write ``content`` as one self-contained HTML file, whole or not at all."""
    page = render_report(content, thumbnail_side=thumbnail_side)
    # a lone surrogate in a file name or caption cannot be UTF-8: it becomes "?"
    write_bytes(path, page.encode("utf-8", "replace"))
    return Path(path)


def render_report(content: ReportContent, *, thumbnail_side: int = THUMBNAIL_SIDE) -> str:
    """``content`` as the text of one HTML page.

    Pictures that cannot be read are shown as labelled placeholders and counted in the notes.
    """
    thumbnails = Thumbnails(thumbnail_side)
    groups = [
        _group(f"{name} {direction}", retrievals, thumbnails)
        for name, all_of_them in (("Best", content.best_retrievals), ("Worst", content.worst_retrievals))
        for direction, wanted in (("text → image", True), ("image → text", False))
        if (retrievals := [one for one in all_of_them if one.is_text_to_image == wanted])
    ]
    picture_note = thumbnails.note()
    return (
        templates()
        .get_template("run.html.j2")
        .render(
            content=content,
            light=LIGHT,
            dark=DARK,
            described=[row for row in content.table if row.description],
            has_intervals=any(
                score is not None and score.low is not None
                for row in content.table
                for score in (row.image_to_text, row.text_to_image, row.both)
            ),
            recall_figure=_recall_figure(content),
            curve_figures=_curve_figures(content.curves),
            groups=groups,
            notes=[*content.notes, picture_note] if picture_note else list(content.notes),
        )
    )


def _recall_figure(content: ReportContent) -> Any:
    from markupsafe import Markup

    from diptych.report.figures import recall_figure

    rows = [row for row in content.table if row.measure in content.charted and row.both is None]
    return Markup(recall_figure(rows)) if rows else ""


def _curve_figures(curves: Curves | None) -> list[Any]:
    from markupsafe import Markup

    from diptych.report.figures import learning_rate_figure, loss_figure, validation_figure

    if curves is None:
        return []
    drawn = []
    if len(curves.loss):
        drawn.append(loss_figure(curves))
    if len(curves.validation_rsum):
        drawn.append(validation_figure(curves))
    if len(curves.learning_rate):
        drawn.append(learning_rate_figure(curves))
    return [Markup(figure) for figure in drawn]


def _group(title: str, retrievals: Sequence[Retrieval], thumbnails: Thumbnails) -> dict[str, Any]:
    shown = [_retrieval(one, thumbnails) for one in track(retrievals, title, unit="queries")]
    return {"title": title, "retrievals": shown, "is_text_to_image": retrievals[0].is_text_to_image}


def _retrieval(one: Retrieval, thumbnails: Thumbnails) -> dict[str, Any]:
    query = one.query
    return {
        "name": shorten(query.name, CAPTION_LIMIT),
        "caption": None if query.caption is None else shorten(query.caption, CAPTION_LIMIT),
        "picture": None if query.picture is None else _picture(query.picture, query.name, thumbnails),
        "right_rank": one.right_rank,
        "items": [_item(item, place, thumbnails) for place, item in enumerate(one.retrieved, 1)],
        "expected": None if one.expected is None else _item(one.expected, one.right_rank, thumbnails),
    }


def _item(item: Retrieved, place: int | None, thumbnails: Thumbnails) -> dict[str, Any]:
    state = judgement(item.is_right)
    return {
        "name": shorten(item.name, CAPTION_LIMIT),
        "rank": item.rank if item.rank is not None else place,
        "score": f"{item.score:.3f}",
        "state": state,
        "mark": _MARKS[state],
        "caption": shorten(item.caption, CAPTION_LIMIT),
        "picture": None if item.picture is None else _picture(item.picture, item.name, thumbnails),
    }


def _picture(source: PictureSource, name: str, thumbnails: Thumbnails) -> dict[str, Thumbnail | None]:
    """What the template draws: a thumbnail, or ``None`` inside for a placeholder."""
    return {"thumbnail": thumbnails.make(source, name)}
