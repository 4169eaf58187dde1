"""A study's page: measured beside printed, claims, further tables and figures, rows and commands."""

from __future__ import annotations

from diptych.report.document import Headline, Page, Section
from diptych.studies.compare import Comparison
from diptych.studies.figures import comparison_chart
from diptych.studies.study import Study
from diptych.studies.tables import (
    PLANTED,
    claims_tables,
    compared_tables,
    findings_table,
    measured_rows,
    protocols_table,
)


def study_page(comparison: Comparison, command: str = "") -> Page:
    """Return a study's page; ``command`` is what repeats it."""
    study, further = comparison.study, comparison.further
    alone = study.several or study.of != "collections"  # they have figures of their own
    chart = None if alone else comparison_chart(comparison.blocks[0], study.columns)
    sections = [
        Section(
            "Published and measured",
            [*compared_tables(comparison), *([chart] if chart else [])],
            comparison.label,
            notes=further.remarks,
        )
    ]
    if comparison.claims:
        judged = "What the paper's text says, judged on the numbers measured here"
        judged += " and on the paper's own." if comparison.claims[0][2] else "."
        tables = [*claims_tables(comparison.claims), findings_table(comparison)]
        sections.append(Section("Claims", tables, f"{judged} {PLANTED if comparison.is_generated else ''}"))
    if further.tables:
        sections.append(Section("Further tables", further.tables))
    if further.charts:
        sections.append(Section(further.title, further.charts, further.note))
    rows = measured_rows(comparison)
    if rows:
        sections.append(Section("Rows", [protocols_table(comparison)]))
    page = study.published[0].page
    commands = [
        command or f"diptych study run {study.name}",
        *(line for _, row in rows for line in row.commands),
    ]
    return Page(
        title=study.name,
        summary=study.asks,
        headlines=_headlines(comparison),
        sections=sections,
        protocol={"paper": f"{study.paper.authors}, {study.paper.title}, {study.paper.venue}"}
        | ({"page": str(page)} if page else {}),
        notes=notes_of(study),
        commands=list(dict.fromkeys(commands)),
    )


def notes_of(study: Study) -> list[str]:
    """Return what a reader of a study should know, of the study and of its paper."""
    published = study.settings.get("published")
    deviations = () if published is None else published.deviations
    notes = [*study.notes, *(f"setting published is not what the paper says: {one}" for one in deviations)]
    for table in study.published:
        where = f"{table.paper.key} {table.name}"
        notes += [f"{where}: {note}" for note in table.notes]
        notes += [
            f"{where}, row {row}, {column} does not add up: {note}"
            for row, column, note in table.inconsistent
        ]
    return [*notes, *study.paper.notes]


def _headlines(comparison: Comparison) -> list[Headline]:
    headlines, counts = [], comparison.counts()
    if comparison.reproduces and counts:
        others = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "reproduced")
        share = f"{counts.get('reproduced', 0)} of {sum(counts.values())}"
        headlines.append(Headline("cells reproduced", share, others))
    if comparison.claims and not comparison.is_generated:
        found = [judgement.status for _, judgement, _ in comparison.claims]
        open_ones = dict.fromkeys(one for one in found if one != "holds")
        note = ", ".join(f"{found.count(one)} {one}" for one in open_ones)
        headlines.append(Headline("claims that hold", f"{found.count('holds')} of {len(found)}", note))
    return headlines
