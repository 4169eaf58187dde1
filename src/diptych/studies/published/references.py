"""References to printed rows: ``PAPER:TABLE:ROW``, with ``@EVALUATION`` where a row was printed for several.

For example ``reproducibility:table-2.1:Repr. X-VLM, Flickr30k`` or ``d2s:table-3.1:COTS (5.3M)@coco-blip``.
"""

from __future__ import annotations

from diptych.core.errors import UnknownNameError, UsageError
from diptych.evaluation.printed import Target
from diptych.evaluation.printed.target import cell_parts
from diptych.studies.published.tables import PublishedRow, published_papers, published_table

__all__ = ["published_row", "target_of"]

_FORM = "PAPER:TABLE:ROW, e.g. reproducibility:table-2.1:Repr. X-VLM, COCO"


def published_row(reference: str) -> PublishedRow:
    """The row that a reference names.

    Raises:
        UsageError: another form, or a row that was printed for several evaluations and none is named.
        UnknownNameError: no such paper, table, row or evaluation; the message lists those there are.
    """
    parts = reference.split(":", 2)
    if len(parts) < 3 or not all(part.strip() for part in parts):
        raise UsageError(
            f"{reference!r} is no reference to a printed row",
            f"{_FORM}; papers: {', '.join(published_papers())}",
        )
    paper, name, row = (part.strip() for part in parts)
    table = published_table(paper, name)
    rows = [one for one in table.rows if one.row == row]
    key = None
    if not rows and "@" in row:
        row, _, key = (part.strip() for part in row.rpartition("@"))
        rows = [one for one in table.rows if one.row == row]
    if not rows:
        raise UnknownNameError(f"row of {paper} {name}", row, dict.fromkeys(one.row for one in table.rows))
    keys = [one.on.key for one in rows]
    if key is not None:
        if key not in keys:
            raise UnknownNameError(f"evaluation of {paper} {name}, row {row}", key, keys)
        rows = [one for one in rows if one.on.key == key]
    if len(rows) > 1:
        raise UsageError(
            f"{paper} {name} has row {row!r} for {len(rows)} evaluations: {', '.join(keys)}",
            f"name one, e.g. {paper}:{name}:{row}@{keys[0]}",
        )
    return rows[0]


def target_of(row: PublishedRow) -> tuple[Target, tuple[str, ...]]:
    """The row's cells that are measures of retrieval, and the columns that are left out.

    A table prints its recalls with the same decimals, and a file drops zeros at the end: all cells have
    those of the cell with the most.

    Raises:
        UsageError: no cell is a measure of retrieval.
    """
    values, left = {}, []
    for column, cell in row.cells.items():
        try:
            cell_parts(column)
        except UsageError:
            left.append(column)
            continue
        if cell.bound:
            left.append(column)
        else:
            values[column] = cell.value
    if not values:
        raise UsageError(
            f"row {row.row!r} prints no measure of retrieval: {', '.join(row.cells)}", "choose another row"
        )
    decimals = max(1, *(len(f"{value!r}".partition(".")[2].rstrip("0")) for value in values.values()))
    first = next(iter(row.cells.values()))
    return Target.of(values, decimals, f"{first.paper} {first.table}, row {row.row}"), tuple(left)
