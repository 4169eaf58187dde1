"""Floor 4, the report: one self-contained HTML page of a run, its figures, and contact sheets."""

from __future__ import annotations

from diptych.report.contact_sheet import draw_contact_sheet, write_contact_sheet
from diptych.report.content import (
    Curves,
    Headline,
    ReportContent,
    Score,
    TableRow,
)
from diptych.report.figures import learning_rate_figure, loss_figure, recall_figure, validation_figure
from diptych.report.from_run import content_of_run
from diptych.report.html import render_report, write_report
from diptych.report.retrievals import Query, Retrieval, Retrieved

__all__ = [
    "Curves",
    "Headline",
    "Query",
    "ReportContent",
    "Retrieval",
    "Retrieved",
    "Score",
    "TableRow",
    "content_of_run",
    "draw_contact_sheet",
    "learning_rate_figure",
    "loss_figure",
    "recall_figure",
    "render_report",
    "validation_figure",
    "write_contact_sheet",
    "write_report",
]
