"""Floor 4, the report: one self-contained HTML page of a run, its figures, and contact sheets."""

from __future__ import annotations

from diptych.report.content import (
    Curves,
    Query,
    ReportContent,
    Retrieval,
    Retrieved,
    content_of_run,
)
from diptych.report.html import (
    learning_rate_figure,
    loss_figure,
    recall_figure,
    render_report,
    validation_figure,
    write_report,
)
from diptych.report.page import Headline
from diptych.report.sheets import draw_contact_sheet, write_contact_sheet
from diptych.report.sparse_page import (
    SparseReport,
    TradeoffPoint,
    render_sparse_report,
    write_sparse_report,
)
from diptych.report.terms import (
    Match,
    MatchTerm,
    TermCard,
    WeightedTerm,
    draw_match_sheet,
    draw_terms_sheet,
    write_match_sheet,
    write_terms_sheet,
)

__all__ = [
    "Curves",
    "Headline",
    "Match",
    "MatchTerm",
    "Query",
    "ReportContent",
    "Retrieval",
    "Retrieved",
    "SparseReport",
    "TermCard",
    "TradeoffPoint",
    "WeightedTerm",
    "content_of_run",
    "draw_contact_sheet",
    "draw_match_sheet",
    "draw_terms_sheet",
    "learning_rate_figure",
    "loss_figure",
    "recall_figure",
    "render_report",
    "render_sparse_report",
    "validation_figure",
    "write_contact_sheet",
    "write_match_sheet",
    "write_report",
    "write_sparse_report",
    "write_terms_sheet",
]
