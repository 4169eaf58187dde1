"""A study's report: one HTML page with the printed and the measured table, claims and commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.core.files import write_bytes
from diptych.studies.compare import Comparison
from diptych.studies.study import Study

MARKS = {
    "reproduced": "✓",
    "close": "≈",
    "not reproduced": "✗",
    "other data": "",
    "other training": "",
    "unchecked start": "",
    "not run": "·",
    "not printed": "",
    "holds": "✓",
    "fails": "✗",
}
"""One sign per verdict and status; the word stands beside it or is spoken."""


def write_study_report(comparison: Comparison, path: Path | str, command: str = "") -> Path:
    """Write a study's page as one self-contained HTML file, whole or not at all."""
    write_bytes(path, render_study(comparison, command).encode("utf-8", "replace"))
    return Path(path)


def render_study(comparison: Comparison, command: str = "") -> str:
    """A study's page as text; ``command`` is what repeats it."""
    from markupsafe import Markup

    from diptych.report.page import DARK, LIGHT, templates
    from diptych.studies.figures import comparison_figure

    study = comparison.study
    columns = [column.name for column in study.columns]
    on_log = [column.name for column in study.columns if column.logarithmic]
    alone = study.several or study.of_logs or study.of_catalogues  # they have figures of their own
    drawn = None if alone else comparison_figure(comparison.blocks[0], columns, on_log=on_log)
    panels: list[str] = []
    if study.figure is not None:
        labels = {row.name: row.label for row in study.rows}
        panels = study.figure.draw(comparison.results.evidence(), labels)
    return (
        templates("diptych.studies")
        .get_template("study.html.j2")
        .render(
            study=study,
            comparison=comparison,
            light=LIGHT,
            dark=DARK,
            marks=MARKS,
            decimals={column.name: column.decimals for column in study.columns},
            headlines=_headlines(comparison),
            figure=Markup(drawn) if drawn else "",
            panels=[Markup(panel) for panel in panels],
            keys=list(comparison.claims[0][2]) if comparison.claims else [],
            notes=notes_of(study),
            remarks=comparison.remarks,
            prints=bool(study.printed_keys()),
            detailed=_detailed(comparison),
            command=command or f"diptych study run {study.name}",
        )
    )


def notes_of(study: Study) -> list[str]:
    """What a reader of a study should know, of the study and of its paper."""
    notes = [*study.notes]
    for table in study.published:
        where = f"{table.paper.key} {table.name}"
        notes += [f"{where}: {note}" for note in table.notes]
        notes += [
            f"{where}, row {row}, {column} does not add up: {note}"
            for row, column, note in table.inconsistent
        ]
    return [*notes, *study.paper.notes]


def _detailed(comparison: Comparison) -> list[tuple[str, Any]]:
    """Names and rows that were measured: once each, once per collection of several, of a log or a catalogue once per
    command."""
    if comparison.study.of_logs or comparison.study.of_catalogues:
        each: dict[tuple[str, ...], Any] = {}
        for row in comparison.blocks[0].rows:
            if row.seeds:
                each.setdefault((*row.commands, row.protocol), row)
        return [(row.name if len(each) > 1 else "all rows", row) for row in each.values()]
    if not comparison.study.several:
        return [(row.name, row) for row in comparison.blocks[0].rows if row.seeds]
    once: dict[tuple[str, str], tuple[str, Any]] = {}
    for block in comparison.blocks:
        for row in block.rows:
            if row.seeds:
                once.setdefault(
                    (block.on.dataset, row.row.name), (f"{row.row.label} on {block.on.dataset}", row)
                )
    return list(once.values())


def _headlines(comparison: Comparison) -> list[Any]:
    from diptych.report.page import Headline

    headlines = []
    counts = comparison.counts()
    if comparison.reproduces and counts:
        total = sum(counts.values())
        others = ", ".join(
            f"{count} {verdict}" for verdict, count in counts.items() if verdict != "reproduced"
        )
        headlines.append(Headline("cells reproduced", f"{counts.get('reproduced', 0)} of {total}", others))
    judged = [judgement.status for _, judgement, _ in comparison.claims if judgement.status != "not run"]
    if judged:
        waiting = len(comparison.claims) - len(judged)
        note = f"{waiting} could not be judged" if waiting else ""
        headlines.append(Headline("claims that hold", f"{judged.count('holds')} of {len(judged)}", note))
    return headlines
