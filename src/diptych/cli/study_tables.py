"""How studies look on a terminal: the printed table, ours beside it, and the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from diptych.cli.console import console, print_table, say

if TYPE_CHECKING:
    from diptych.studies import Claim, Comparison, Figure, Judgement, Study
    from diptych.studies.compare import Block, ComparedCell, ComparedRow

__all__ = ["say_claims", "say_comparison", "say_published"]


WIDE = 120
"""Characters per line that a table of ten columns with spreads and labels takes."""


def say_published(study: Study) -> None:
    """The table as it is printed."""
    table = study.published[0]
    wide = _wide()
    decimals = {column.name: column.decimals for column in study.columns}
    headers = _headers(study)
    for on in table.evaluated_on:
        rows, legend = [], []
        for row in table.rows:
            if row.on.key != on.key:
                continue
            cells = []
            for column in study.columns:
                cell = row.cells.get(column.name)
                spread = None if cell is None or not wide else cell.printed_spread
                printed = (
                    None if cell is None else cell.bound + _number(cell.value, spread, decimals[column.name])
                )
                cells.append(printed or "–")
            rows.append((row.row, row.label, *cells) if wide else (row.row, *cells))
            legend.append(f"{row.row}  {row.label}")
        title = f"{table.paper.key} {table.name}: {table.title}"
        first = ("row", "") if wide else ("row",)
        print_table(title, (*first, *headers), rows, numbers=(*headers, "row"), caption=on.describe())
        for line in () if wide else legend:
            say(line)


def say_comparison(comparison: Comparison) -> None:
    """Printed and measured lines per row, and a verdict line where there are verdicts."""
    study = comparison.study
    headers, wide = _headers(study), _wide()
    say("")
    say(comparison.label)
    for block in comparison.blocks:
        rows: list[tuple[str, ...]] = []
        for row in block.rows:
            rows += _lines(row, study, comparison.reproduces, wide)
        caption = f"{'printed' if study.printed_keys() else 'measured on'}: {block.on.describe()}"
        if block.differences:
            caption += f"; ours: {'; '.join(block.differences)}"
        caption += "; mean"
        caption += " ± sample standard deviation over seeds" if wide else f"s; spreads from {WIDE} columns on"
        if wide and study.published[0].spread == "variance":
            caption += " (printed: variance)"
        print_table(study.name, ("row", "", *headers), rows, numbers=headers, caption=caption)
        say_protocols(block)
    for remark in comparison.remarks:
        say(remark)
    counts = comparison.counts()
    if comparison.reproduces and counts:
        say("cells: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def say_protocols(block: Block) -> None:
    """What the numbers depend on, and the command that gives each row's, once per row."""
    for row in block.rows:
        if row.seeds:
            minutes = row.cpu_seconds / 60
            seeds = ", ".join(str(seed) for seed in row.seeds)
            say(f"{row.row.name}: seeds {seeds}; {minutes:.1f} processor minutes; {'; '.join(row.commands)}")
    protocol = next((row.protocol for row in block.rows if row.protocol), "")
    if protocol:
        say(f"protocol of the first: {protocol}")


def say_claims(claims: Sequence[tuple[Claim, Judgement | None, Mapping[str, Judgement]]]) -> None:
    """Each claim with what our numbers say, where there are any, and what the paper's own do."""
    from diptych.studies.page import MARKS

    if not claims:
        return
    keys = list(claims[0][2])
    ours = claims[0][1] is not None
    rows = []
    for claim, here, printed in claims:
        row = [claim.name, claim.text]
        if here is not None:
            row += [f"{MARKS[here.status]} {here.status}", here.figure]
        row += [_in_paper(printed[key].status) for key in keys]
        if not ours:
            failed = [f"{key}: {printed[key].figure}" for key in keys if printed[key].status == "fails"]
            row.append("; ".join(failed))
        rows.append(row)
    here_columns = ("here", "the figure that decides") if ours else ()
    in_paper = tuple(f"in the paper, {key}" for key in keys)
    last = () if ours else ("why it fails",)
    print_table("claims", ("claim", "text", *here_columns, *in_paper, *last), rows)


def _in_paper(status: str) -> str:
    from diptych.studies.page import MARKS

    return "not printed" if status == "not run" else f"{MARKS[status]} {status}"


def _headers(study: Study) -> tuple[str, ...]:
    names = (column.short or column.name for column in study.columns)
    return tuple(name.replace(" ", "\n", 1) for name in names)


def _wide() -> bool:
    """Whether spreads and labels fit on a line beside the numbers."""
    return console().width >= WIDE


def _number(mean: float, sd: float | None, decimals: int) -> str:
    return f"{mean:.{decimals}f}" + ("" if sd is None else f"±{sd:.{max(decimals, 1)}f}")


def _figure(figure: Figure | None, decimals: int, wide: bool) -> str:
    return "–" if figure is None else _number(figure.mean, figure.sd if wide else None, decimals)


def _lines(row: ComparedRow, study: Study, reproduces: bool, wide: bool) -> list[tuple[str, ...]]:
    from diptych.studies.page import MARKS

    decimals = [column.decimals for column in study.columns]
    cells: list[tuple[ComparedCell, int]] = list(zip(row.cells, decimals, strict=True))
    lines: list[tuple[str, ...]] = []
    if row.printed is not None:
        printed = [
            "–"
            if cell.published is None
            else cell.published.bound
            + _number(cell.published.value, cell.published.printed_spread if wide else None, digits)
            for cell, digits in cells
        ]
        lines.append((row.name, "printed", *printed))
    name = "" if lines else row.name
    if not row.seeds:
        return [*lines, (name, row.why, *([""] * len(cells)))]
    lines.append((name, "measured", *(_figure(cell.measured, digits, wide) for cell, digits in cells)))
    if any(cell.right is not None for cell in row.cells):
        lines.append(("", "rightly counted", *(_figure(cell.right, digits, wide) for cell, digits in cells)))
    if reproduces:
        lines.append(("", "verdict", *(MARKS[cell.verdict] for cell in row.cells)))
    return lines
