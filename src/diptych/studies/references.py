"""References to printed rows: ``PAPER:TABLE:ROW``, with ``@EVALUATION`` where a row was printed for several.

For example ``reproducibility:table-2.1:Repr. X-VLM, Flickr30k`` or ``d2s:table-3.1:COTS (5.3M)@coco-blip``.
Who gives a part of one is told what there is: papers, a paper's tables, a table's rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.known import known_by_name
from diptych.evaluation.printed import Target, as_target
from diptych.evaluation.printed.target import Printed, cell_parts
from diptych.metrics.measuring import Measure, measure
from diptych.studies.published import (
    Cell,
    EvaluatedOn,
    PublishedRow,
    PublishedTable,
    published_papers,
    published_table,
    published_tables,
)

_EXAMPLE = "reproducibility:table-2.1:Repr. X-VLM, COCO"


def published_row(reference: str) -> PublishedRow:
    """The row that a reference names; upper and lower case are the same."""
    parts = [part.strip() for part in reference.split(":", 2)]
    if not parts[0]:
        raise UsageError(
            f"{reference!r} names no paper",
            f"PAPER:TABLE:ROW, e.g. {_EXAMPLE}; papers: {', '.join(published_papers())}",
        )
    paper = _same("published paper", parts[0], published_papers())
    names = published_tables(paper)
    if len(parts) < 2 or not parts[1]:
        raise UsageError(
            f"{reference!r} names no table", f"PAPER:TABLE:ROW; tables of {paper}: {', '.join(names)}"
        )
    table = published_table(paper, _same(f"table of {paper}", parts[1], names))
    if len(parts) < 3 or not parts[2]:
        raise UsageError(
            f"{reference!r} names no row", f"rows of {paper}:{table.name}: {'; '.join(_listed(table))}"
        )
    return _row(table, parts[2])


def row_references(paper: str, table: str) -> list[tuple[str, PublishedRow]]:
    """Every row of a table that prints a measure of retrieval, with its reference."""
    found = published_table(paper, table)
    names = [one.row for one in found.rows]
    return [
        (f"{paper}:{table}:{one.row}" + (f"@{one.on.key}" if names.count(one.row) > 1 else ""), one)
        for one in found.rows
        if any(_is_measure(column) and not cell.bound for column, cell in one.cells.items())
    ]


def _row(table: PublishedTable, given: str) -> PublishedRow:
    names = list(dict.fromkeys(one.row for one in table.rows))
    paper, key = table.paper.key, None
    is_one = given.casefold() in map(str.casefold, names)
    row, at, rest = (given, "", "") if is_one else (part.strip() for part in given.rpartition("@"))
    if at:
        given, key = row, rest
    row = _same(f"row of {paper} {table.name}", given, names)
    rows = [one for one in table.rows if one.row == row]
    keys = [one.on.key for one in rows]
    if key is not None:
        wanted = _same(f"evaluation of {paper} {table.name}, row {row},", key, keys)
        rows = [one for one in rows if one.on.key == wanted]
    if len(rows) > 1:
        raise UsageError(
            f"{paper} {table.name} has row {row!r} for {len(rows)} evaluations: {', '.join(keys)}",
            f"name one, e.g. {paper}:{table.name}:{row}@{keys[0]}",
        )
    return rows[0]


def _same(kind: str, given: str, known: Sequence[str]) -> str:
    """The known name that a given one is, but for upper and lower case."""
    found = [name for name in known if name.casefold() == given.casefold()]
    if not found:
        has_comma = any("," in name for name in known)
        raise UnknownNameError(kind, given, [f"“{name}”" for name in known] if has_comma else known)
    return found[0]


def _listed(table: PublishedTable) -> list[str]:
    """Rows with what they are, those without a measure of retrieval marked."""
    usable = {one.row for _, one in row_references(table.paper.key, table.name)}
    found = {}
    for one in table.rows:
        more = f" ({one.label})" if one.label and one.label != one.row else ""
        found[one.row] = f"{one.row}{more}" + ("" if one.row in usable else " [no measure of retrieval]")
    return list(found.values())


def target_of(row: PublishedRow) -> tuple[Target, tuple[str, ...]]:
    """The row's cells that are measures of retrieval, and the columns that are left out.

    A table prints its recalls with the same decimals, and a file drops zeros at the end: all recalls have
    those of the recall with the most, and so on for every other measure. Precisions that a table prints as
    fractions of 1 beside recalls in per cent are given in per cent, as everything else.
    """
    values, left = {}, []
    for column, cell in row.cells.items():
        if _is_measure(column) and not cell.bound:
            values[column] = cell
        else:
            left.append(column)
    if not values:
        raise UsageError(
            f"row {row.row!r} prints no measure of retrieval: {', '.join(row.cells) or 'nothing'}",
            "choose another row",
        )
    first = next(iter(values.values()))
    target = as_target(
        {column: cell.value for column, cell in values.items()},
        label=f"{first.paper} {first.table}, row {row.row}",
    )
    cells = {column: _as_printed(column, target.cells[column], values) for column in values}
    return Target(cells, target.label, first.runs), tuple(left)


def published_target(reference: str, decimals: int | None) -> tuple[Target, EvaluatedOn, list[str]]:
    """Return the cells of the row that a reference names, what they were measured on, and lines about both."""
    row = published_row(reference)
    target, left = target_of(row)
    lines = [f"printed: {target.label}; {row.on.describe()}"]
    lines += [f"left out, no measures of retrieval: {', '.join(left)}"] if left else []
    return as_target(target, decimals), row.on, lines


def other_data(on: EvaluatedOn, given: Mapping[str, tuple[Mapping[str, Any], int]]) -> tuple[str, ...]:
    """What has to be said where the data at hand are not those of the printed numbers."""
    printed = f"{on.dataset} {on.split} ({on.images:,} images)"
    others = {
        label: f"{about['dataset']} {about['split']} ({images:,} images)"
        for label, (about, images) in given.items()
        if not _same_data(on.dataset, str(about["dataset"]))
    }
    if len(others) == len(given):
        return (
            f"OTHER DATA: printed of {printed}, computed from {'; '.join(others.values())}; what follows says which "
            "protocols would give such numbers on these data, not why they were printed of those",
        )
    if others:
        return (f"OTHER DATA: printed of {printed}; {', '.join(others)} is {'; '.join(others.values())}",)
    if not any(images == on.images for _, images in given.values()):
        sizes = ", ".join(f"{images:,} ({label})" for label, (_, images) in given.items())
        return (f"Printed of {on.images:,} images; given are {sizes}: recall falls as a gallery grows",)
    return ()


def _same_data(one: str, other: str) -> bool:
    known, also = known_by_name(one), known_by_name(other)
    if known is None or also is None:
        return one.casefold() == other.casefold()
    return known.name == also.name


def _is_measure(column: str) -> bool:
    try:
        cell_parts(column)
    except UsageError:
        return False
    return True


def _kind(column: str) -> str:
    return cell_parts(column)[1]


def _as_printed(column: str, cell: Printed, beside: Mapping[str, Cell]) -> Printed:
    """In per cent; recalls with one digit after the point at least, for the file has 38.0 as 38."""
    kind = _kind(column)
    if kind == "rsum" or kind.startswith("R@"):
        return Printed(cell.value, max(1, cell.decimals))
    member = measure(kind)
    recalls = [one.value for name, one in beside.items() if _kind(name).startswith("R@")]
    if isinstance(member, Measure) and member.kind == "share" and cell.value <= 1 < max(recalls, default=0.0):
        return Printed(round(100 * cell.value, 6), max(0, cell.decimals - 2))
    return cell
