"""Studies × verdicts: one page over many studies, and what each says as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from diptych.core.table import Cell, Table
from diptych.report.document import Page, Section
from diptych.studies.compare import JUDGED, Comparison
from diptych.studies.formulas import Status
from diptych.studies.tables import MARKS, PLANTED, comparison_shown

STATUSES: tuple[Status, ...] = ("holds", "fails", "undecided", "not tested")


def matrix_table(compared: Sequence[tuple[Comparison, Path | None]], failed: Mapping[str, str]) -> Table:
    """Return a line per study: its verdicts, what they are of, and its page; ``failed``: study → why."""
    rows = []
    for comparison, page in compared:
        study, entries, counts = comparison.study, comparison.results.entries, comparison.counts()
        statuses = [judgement.status for _, judgement, _ in comparison.claims]
        minutes = sum({entry.run: entry.cpu_seconds for entry in entries}.values()) / 60
        rows.append(
            [
                Cell(study.name, link="" if page is None else page.as_posix()),
                Cell(study.topic, words=True),
                Cell(comparison.results.setting or "–"),
                *(Cell(str(counts.get(one, 0)) if comparison.reproduces else "–") for one in JUDGED),
                *(Cell(str(statuses.count(one))) for one in STATUSES),
                Cell(f"{minutes:.1f}"),
            ]
        )
    blank = [Cell("–")] * (len(JUDGED) + len(STATUSES) + 1)
    rows += [
        [Cell(name), Cell(f"failed: {why}", words=True), Cell("–"), *blank] for name, why in failed.items()
    ]
    columns = ("study", "what it asks", "setting", *JUDGED, *STATUSES, "CPU minutes")
    groups = [("", 3), ("cells", len(JUDGED)), ("claims", len(STATUSES)), ("", 1)]
    marks = ", ".join(f"{MARKS[one]} {one}" for one in (*JUDGED, *STATUSES))
    after = (
        f"Cells have verdicts where the paper's own evaluation was repeated. In each study's table: {marks}."
    )
    return Table("Studies and their verdicts", columns, rows, groups, after)


def matrix_page(
    compared: Sequence[tuple[Comparison, Path | None]], failed: Mapping[str, str], commands: Sequence[str]
) -> Page:
    """Return the page of many studies; ``commands`` are what repeats them."""
    generated = any(comparison.is_generated for comparison, _ in compared)
    table = matrix_table(compared, failed)
    return Page(
        title="All studies",
        summary=f"{len(compared)} studies, their printed cells and their claims.",
        sections=[Section("Verdicts", [table], PLANTED if generated else "")],
        commands=commands,
    )


def content_of(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON: its label, tables and lines, as they are printed."""
    shown = comparison_shown(comparison)
    return {
        "study": comparison.study.name,
        "label": comparison.label,
        "reproduces": comparison.reproduces,
        "tables": [one.content() for one in shown if isinstance(one, Table)],
        "lines": [one for one in shown[1:] if isinstance(one, str)],
    }
