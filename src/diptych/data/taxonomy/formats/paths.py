"""A path per line (``Home > Women > Dresses``), or a column of paths in a table."""

from __future__ import annotations

from pathlib import Path

from diptych.core.errors import UsageError
from diptych.data.delimited import DelimitedTable, plain_column
from diptych.data.lines import numbered_lines
from diptych.data.taxonomy.declaration import TAXONOMIES, Beginning, Taxonomy, TaxonomyFormat
from diptych.data.taxonomy.listing import PathListing, names_of, stem_of
from diptych.data.taxonomy.tree import SEPARATOR

__all__: list[str] = []

_TABLES = (".csv", ".tsv")
_NO_LISTS = (".json", ".jsonl", ".xml")
_PATHS = ("path", "category_path", "full_path", "fullpath", "category", "categories", "product_type")
_CODES = ("id", "category_id", "code")


def _recognises(beginning: Beginning) -> bool:
    if beginning.ending in _TABLES and beginning.lines:
        header = {plain_column(name) for one in ",;\t|" for name in beginning.lines[0].split(one)}
        return bool(header & set(_PATHS))
    return beginning.ending not in _NO_LISTS and any(SEPARATOR in line for line in beginning.lines)


def _read(
    path: Path,
    column: str | None = None,
    id_column: str | None = None,
    separator: str = SEPARATOR,
    encoding: str = "utf-8",
) -> Taxonomy:
    if not separator.strip():
        raise UsageError(f"separator is {separator!r}", "what stands between two names, e.g. ' > ' or '/'")
    listing = PathListing(path)
    is_table = path.name.removesuffix(".gz").lower().endswith(_TABLES)
    if is_table or column is not None:
        table = DelimitedTable(path, encoding)
        place = table.place(column, _PATHS, "paths", "column=NAME")
        codes = (
            table.places(_CODES)
            if id_column is None
            else [table.place(id_column, (), "ids", "id_column=NAME")]
        )
        for number, fields in table.rows():
            text = fields[place].strip().removeprefix(separator) if place < len(fields) else ""
            code = fields[codes[0]].strip() if codes and codes[0] < len(fields) else ""
            listing.add(number, names_of(text, listing.where(number), separator), code)
        return listing.taxonomy(stem_of(path))
    if id_column is not None:
        raise UsageError(f"{path} is no table, it has no column {id_column!r}", "leave id_column out")
    for number, line in numbered_lines(path, encoding):
        if line.strip() and not (line.startswith("#") and not listing):
            text = line.strip().removeprefix(separator)  # "/Home/Lamps"
            listing.add(number, names_of(text, listing.where(number), separator))
    return listing.taxonomy(stem_of(path))


TAXONOMIES.add(
    TaxonomyFormat(
        "paths",
        "a path per line (Home > Women > Dresses), or a column of paths in a CSV or TSV file",
        _recognises,
        _read,
        {
            "column": "column of paths (recognised)",
            "id_column": "column of ids (recognised)",
            "separator": "between the names of a path (default: ' > ')",
            "encoding": "of the file (default: utf-8)",
        },
        general=2,
    )
)
