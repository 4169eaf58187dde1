"""From a taxonomy file to a Taxonomy, by the format that recognises it or the one named."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_lines
from diptych.data.taxonomy.declaration import TAXONOMIES, Beginning, Taxonomy, TaxonomyFormat

_LINES = 20


def _beginning(path: Path, encoding: str) -> Beginning:
    lines = read_lines(path, encoding, error=DataError)
    return Beginning(path, tuple(islice((line for _, line in lines if line.strip()), _LINES)))


def _recognised(beginning: Beginning) -> TaxonomyFormat | None:
    found = (one for one in TAXONOMIES if one.recognises(beginning))
    return min(found, key=lambda one: one.general, default=None)


def recognised_format(path: Path | str) -> TaxonomyFormat | None:
    """The format that recognises a file by its first lines; None where none does."""
    return _recognised(_beginning(Path(path), "utf-8"))


def read_taxonomy(path: Path | str, format: str | None = None, **options: Any) -> Taxonomy:
    """Read a file of categories, plain or gzipped."""
    path = Path(path)
    given = {key: str(value) for key, value in options.items() if value is not None}
    if format is None:
        beginning = _beginning(path, given.get("encoding", "utf-8"))
        found = _recognised(beginning)
        if found is None:
            raise UsageError(
                f"no taxonomy format recognises {path}"
                + (
                    f", which begins with {beginning.lines[0][:60]!r}"
                    if beginning.lines
                    else ", which is empty"
                ),
                f"name the format with --format, one of {', '.join(TAXONOMIES.names())}",
            )
        chosen = found
    else:
        chosen = TAXONOMIES.get(format)
    for key in given:
        if key not in chosen.options:
            known = ", ".join(chosen.options) or "none"
            raise UsageError(
                f"taxonomy format {chosen.name!r} has no option {key!r}", f"its options: {known}"
            )
    return chosen.read(path, **given)
