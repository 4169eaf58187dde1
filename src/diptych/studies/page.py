"""Print and write studies: lines and tables, their page and JSON, and one page over many studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from diptych.core.table import Cell, Table
from diptych.report.document import Block, Headline, Page, Section
from diptych.studies.compare import JUDGED, Comparison
from diptych.studies.figures import comparison_charts
from diptych.studies.formulas import Status
from diptych.studies.study import Study
from diptych.studies.tables import MARKS, claims_tables, compared_tables, findings_table, measured_rows

PLANTED = (
    "On generated data claims say nothing about the world: what holds here was planted by the generator, and what is "
    "counted is whether the code finds it."
)

STATUSES: tuple[Status, ...] = get_args(Status)

# Studies with the addresses of their pages.
Compared = Sequence[tuple[Comparison, Path | None]]


def comparison_shown(comparison: Comparison) -> list[Table | str]:
    """Return a comparison as it is printed: its tables, then what the numbers depend on, verdicts and claims."""
    measured, lines = measured_rows(comparison), []
    for name, row in measured:
        facts = [] if comparison.study.of == "log" else [f"seeds {', '.join(map(str, row.seeds))}"]
        facts += [f"{row.cpu_seconds / 60:.1f} CPU minutes"] if row.cpu_seconds else []
        lines.append(f"{name}: {'; '.join([*facts, *row.commands])}")
    lines += dict.fromkeys(f"protocol: {row.protocol}" for _, row in measured)
    lines += comparison.further.remarks
    if comparison.reproduces:
        counts = (f"{count} {verdict}" for verdict, count in comparison.counts().items())
        lines.append(f"cells: {', '.join(counts)}")
    lines += [PLANTED] if comparison.is_generated and comparison.claims else []
    further = [table for table in comparison.further.tables if not table.folded]  # a page has them all
    tables = [*compared_tables(comparison, only_measured=True), *further]
    claims = claims_tables(comparison.claims, comparison.is_generated)
    return [comparison.label, *tables, *lines, *claims]


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


def study_page(comparison: Comparison, command: str = "") -> Page:
    study, further = comparison.study, comparison.further
    blocks: list[Block] = [*compared_tables(comparison)]
    if study.of == "collections" and not study.several:  # the others have figures of their own
        blocks += comparison_charts(comparison.blocks[0], study.columns)
    on_both = " and on the paper's own" if any(printed for *_, printed in comparison.claims) else ""
    judged = f"What the paper's text says, judged on the numbers measured here{on_both}. "
    claims = claims_tables(comparison.claims, comparison.is_generated)
    measured, rows = measured_rows(comparison), []
    for name, row in measured:
        trained, best = row.entries[0].epochs
        epochs = f"{trained} (best {best})" if trained else "–"
        facts = (", ".join(map(str, row.seeds)), epochs, f"{row.cpu_seconds / 60:.1f}")
        rows.append([Cell(name, words=True), *map(Cell, facts), Cell(row.protocol, words=True)])
    depends = Table("Rows", ("row", "seeds", "epochs", "CPU minutes", "protocol"), rows)
    sections = [
        Section("Published and measured", blocks, comparison.label, further.remarks),
        Section(
            "Claims",
            [*claims, findings_table(comparison)] if claims else [],
            judged + PLANTED * comparison.is_generated,
        ),
        Section("Further tables", further.tables),
        Section(further.title, further.charts, further.note),
        Section("Rows", [depends] if rows else []),
    ]
    page = study.published[0].page
    commands = [command or f"diptych study run {study.name}"]
    commands += [line for _, row in measured for line in row.commands]
    return Page(
        title=study.name,
        summary=study.asks,
        headlines=[
            *_headline("cells reproduced", "reproduced", comparison.counts()),
            *_headline("claims that hold", "holds", {} if comparison.is_generated else comparison.statuses()),
        ],
        sections=[section for section in sections if section.blocks],
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
        off = "does not add up"
        notes += [f"{where}, row {row}, {column} {off}: {note}" for row, column, note in table.inconsistent]
    return [*notes, *study.paper.notes]


def _headline(label: str, first: str, counts: Mapping[Any, int]) -> list[Headline]:
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if name != first)
    return [Headline(label, f"{counts.get(first, 0)} of {sum(counts.values())}", others)] if counts else []


def matrix_table(compared: Compared, failed: Mapping[str, str]) -> Table:
    """Return a line per study: its verdicts, what they are of, and its page; ``failed``: study → why."""
    columns = ("study", "what it asks", "setting", *JUDGED, *STATUSES, "CPU minutes")
    rows = []
    for comparison, page in compared:
        study, results = comparison.study, comparison.results
        verdicts, statuses = comparison.counts(), comparison.statuses()
        minutes = sum({entry.run: entry.cpu_seconds for entry in results.entries}.values()) / 60
        counts = [str(verdicts.get(one, 0)) if verdicts else "–" for one in JUDGED]
        counts += [str(statuses[one]) for one in STATUSES]
        head = Cell(study.name, link="" if page is None else page.as_posix())
        texts = (results.setting or "–", *counts, f"{minutes:.1f}")
        rows.append([head, Cell(study.topic, words=True), *map(Cell, texts)])
    for name, why in failed.items():
        rows.append([Cell(name), Cell(f"failed: {why}", words=True), *[Cell("–")] * (len(columns) - 2)])
    groups = [("", 3), ("cells", len(JUDGED)), ("claims", len(STATUSES)), ("", 1)]
    marks = ", ".join(f"{mark} {one}" for one, mark in MARKS.items())
    after = "Cells have verdicts where the paper's own evaluation was repeated. In each study's table: "
    return Table("Studies and their verdicts", columns, rows, groups, f"{after}{marks}.")


def matrix_page(compared: Compared, failed: Mapping[str, str], commands: Sequence[str]) -> Page:
    generated = any(comparison.is_generated for comparison, _ in compared)
    return Page(
        title="All studies",
        summary=f"{len(compared)} studies, their printed cells and their claims.",
        sections=[Section("Verdicts", [matrix_table(compared, failed)], PLANTED if generated else "")],
        commands=commands,
    )
