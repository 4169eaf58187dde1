"""How studies look on a terminal: the printed table, ours beside it, and the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from diptych.cli.console import console, print_table, say

if TYPE_CHECKING:
    from diptych.core.table import Table
    from diptych.studies import Claim, Comparison, Figure, Judgement, Study
    from diptych.studies.compare import Block, ComparedCell, ComparedRow
    from diptych.studies.published import EvaluatedOn

WIDE = 120
"""Characters per line that a table of ten columns with spreads and labels takes."""

_MILLION = 1_000_000  # from here on digits are grouped: a log has that many
_GAP = 3  # between columns
_LABEL = 12  # characters that a row's name has at least
_MANY = 6  # columns of a table of words; one of more has numbers, which are not broken
_SEVERAL = 2  # evaluations of the paper beyond which claims have one column for all


def say_published(study: Study) -> None:
    """The table as it is printed."""
    table = study.published[0]
    wide = _wide()
    decimals = {column.name: column.decimals for column in study.columns}
    headers = _headers(study)
    for key, evaluated in _together(study).items():
        rows, legend = [], []
        for row in table.rows:
            if row.on not in evaluated:
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
            legend += [f"{row.row}  {row.label}"] if row.label else []
        title = f"{table.paper.key} {table.name}: {table.title}"
        first = ("row", "") if wide else ("row",)
        labels = {on.key: [row.label or row.row for row in table.rows if row.on == on] for on in evaluated}
        each = [f"{', '.join(labels[on.key])}: " if len(evaluated) > 1 else "" for on in evaluated]
        caption = "; ".join(label + on.describe() for label, on in zip(each, evaluated, strict=True))
        caption = f"by {key[1]}: {caption}" if key[1] else caption
        if not any(row.cells for row in table.rows if row.on in evaluated):
            say(f"{title}: no number is printed ({caption})")
            continue
        _print_numbers(title, first, headers, rows, caption, "row")
        for line in () if wide else legend:
            say(line)


def _together(study: Study) -> dict[tuple[str, str], list[EvaluatedOn]]:
    """What stands in one table: a printed evaluation, or of several collections all of one by one person."""
    found: dict[tuple[str, str], list[EvaluatedOn]] = {}
    for on in study.published[0].evaluated_on:
        found.setdefault((on.dataset if study.several else on.key, on.by), []).append(on)
    return found


def say_comparison(comparison: Comparison) -> None:
    """Printed and measured lines per row, and a verdict line where there are verdicts."""
    study = comparison.study
    headers, wide = _headers(study), _wide()
    say("")
    say(comparison.label)
    for block in _shown(comparison):
        rows: list[tuple[str, ...]] = []
        for row in block.rows:
            rows += _lines(row, study, comparison.reproduces, wide)
        caption = f"{'printed' if block.is_printed else 'measured on'}: {block.describe()}"
        if block.differences:
            caption += f"; ours: {'; '.join(block.differences)}"
        if not study.of_logs:
            caption += "; mean"
            caption += (
                " ± sample standard deviation over seeds" if wide else f"s; spreads from {WIDE} columns on"
            )
        if wide and study.published[0].spread == "variance":
            caption += " (printed: variance)"
        _print_numbers(study.name, ("row", ""), headers, rows, caption)
        if study.of_logs or study.of_catalogues:
            say_commands(block)
        else:
            say_protocols(block, each=study.several)
    for further in comparison.tables:
        say_further(further)
    for remark in comparison.remarks:
        say(remark)
    counts = comparison.counts()
    if comparison.reproduces and counts:
        say("cells: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def _shown(comparison: Comparison) -> list[Block]:
    """Of several collections, those that were measured: the report shows what is printed of the others."""
    if not comparison.study.several:
        return list(comparison.blocks)
    return [block for block in comparison.blocks if any(row.seeds for row in block.rows)]


def say_further(further: Table) -> None:
    """A table beside the published one."""
    columns = tuple(further.columns)
    if len(columns) <= _MANY:
        print_table(further.caption, columns, further.texts, caption=further.after)
    else:
        _print_numbers(further.caption, columns[:2], columns[2:], further.texts, further.after)


def say_protocols(block: Block, each: bool = False) -> None:
    """What the numbers depend on, of the first row or of each, and the command that gives each row's."""
    for row in block.rows:
        if row.seeds:
            minutes = row.cpu_seconds / 60
            seeds = ", ".join(str(seed) for seed in row.seeds)
            parts = [
                f"seeds {seeds}",
                *([f"{minutes:.1f} processor minutes"] if minutes else []),
                *row.commands,
            ]
            say(f"{row.row.name}: {'; '.join(parts)}")
    protocols = [(row.row.name, row.protocol) for row in block.rows if row.protocol]
    for name, protocol in protocols if each else protocols[:1]:
        say(f"protocol of {name if each else 'the first'}: {protocol}")


def say_commands(block: Block) -> None:
    """What rows of a log or a catalogue depend on and the commands that give them, each once."""
    for line in dict.fromkeys(row.protocol for row in block.rows if row.protocol):
        say(f"protocol: {line}")
    for command in dict.fromkeys(command for row in block.rows for command in row.commands):
        say(f"by hand: {command}")


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
        row += _in_papers(printed, keys)
        if not ours:
            failed = [f"{key}: {printed[key].figure}" for key in keys if printed[key].status == "fails"]
            row.append("; ".join(failed))
        rows.append(row)
    here_columns = ("here", "the figure that decides") if ours else ()
    in_paper = ("in the paper",) if len(keys) > _SEVERAL else tuple(f"in the paper, {key}" for key in keys)
    last = () if ours else ("why it fails",)
    print_table("claims", ("claim", "text", *here_columns, *in_paper, *last), rows)


def _in_paper(status: str) -> str:
    from diptych.studies.page import MARKS

    return "not printed" if status == "not run" else f"{MARKS[status]} {status}"


def _in_papers(printed: Mapping[str, Judgement], keys: Sequence[str]) -> list[str]:
    """A cell per evaluation, or of many one cell that names those with each outcome."""
    said = {key: _in_paper(printed[key].status) for key in keys}
    if len(keys) <= _SEVERAL:
        return list(said.values())
    outcomes = dict.fromkeys(said.values())
    if len(outcomes) == 1:
        return list(outcomes)
    return ["; ".join(f"{one}: {', '.join(key for key in keys if said[key] == one)}" for one in outcomes)]


def _print_numbers(
    title: str,
    first: Sequence[str],
    headers: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    caption: str,
    *numbers: str,
) -> None:
    """Columns of numbers behind the ``first`` ones; in several tables where a line has no room for all of
    them, for a number that is cut is another number.

    ``numbers`` are those of the first columns that must not be broken either.
    """
    wanted = []
    for place, header in enumerate(headers, len(first)):
        cells = [*header.split("\n"), *(row[place] for row in rows)]
        wanted.append(_GAP + max(len(cell) for cell in cells))
    room = console().width - _GAP * len(first) - (_LABEL if len(first) > 1 else 0)
    room -= max(max(map(len, column)) for column in ([row[len(first) - 1] for row in rows], first))
    parts: list[list[int]] = [[]]
    for column, width in enumerate(wanted):
        if parts[-1] and sum(wanted[one] for one in parts[-1]) + width > room:
            parts.append([])
        parts[-1].append(column)
    for number, part in enumerate(parts, 1):
        shown = [headers[column] for column in part]
        cut = [(*row[: len(first)], *(row[len(first) + column] for column in part)) for row in rows]
        print_table(
            title if number == 1 else "",
            (*first, *shown),
            cut,
            numbers=(*shown, *numbers),
            caption=caption if number == len(parts) else "",
        )


def _headers(study: Study) -> tuple[str, ...]:
    names = (column.short or column.name for column in study.columns)
    return tuple(name.replace(" ", "\n", 1) for name in names)


def _wide() -> bool:
    """Whether spreads and labels fit on a line beside the numbers."""
    return console().width >= WIDE


def _number(mean: float, sd: float | None, decimals: int) -> str:
    grouped = "," if abs(mean) >= _MILLION else ""
    return f"{mean:{grouped}.{decimals}f}" + ("" if sd is None else f"±{sd:.{max(decimals, 1)}f}")


def _figure(figure: Figure | None, decimals: int, wide: bool) -> str:
    return "–" if figure is None else _number(figure.mean, figure.sd if wide else None, decimals)


def _lines(row: ComparedRow, study: Study, reproduces: bool, wide: bool) -> list[tuple[str, ...]]:
    from diptych.studies.page import MARKS

    decimals = [column.decimals for column in study.columns]
    cells: list[tuple[ComparedCell, int]] = list(zip(row.cells, decimals, strict=True))
    lines: list[tuple[str, ...]] = []
    if row.printed is not None and row.printed.cells:
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
