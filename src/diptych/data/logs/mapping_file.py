"""A mapping of columns from a TOML file.

::

    time_format = "%d/%m/%Y %H:%M:%S"          # or auto, iso, unix, unix-ms, unix-us
    missing = ["0", "anonymous"]               # identifiers that mean nobody

    [columns]
    client = "cookie_id"
    time = "ts"
    page_type = "page_template"

    [values.action]
    page = ["screen", "view"]
    add = ["basket"]

    [constants]
    device = "smartphone"
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.core.errors import UsageError
from diptych.core.reading import read_toml
from diptych.data.logs.mapping import ColumnMapping


def read_mapping(path: Path) -> ColumnMapping:
    """Read a mapping from a TOML file."""
    read = read_toml(path, UsageError, "see https://toml.io")
    known = ("columns", "values", "constants", "time_format", "missing")
    for key in read:
        if key not in known:
            raise UsageError(
                f"{path} has {key!r}, which is no part of a mapping", f"parts: {', '.join(known)}"
            )
    values = {
        target: {meaning: _texts(words, f"values.{target}.{meaning}") for meaning, words in meanings.items()}
        for target, meanings in _table(read, "values").items()
        if isinstance(meanings, dict) or _wrong(f"values.{target}", "a table")
    }
    return ColumnMapping(
        {target: _text(column, f"columns.{target}") for target, column in _table(read, "columns").items()},
        values,
        {target: _text(value, f"constants.{target}") for target, value in _table(read, "constants").items()},
        _text(read.get("time_format", "auto"), "time_format"),
        _texts(read.get("missing", []), "missing"),
    )


def _table(read: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = read.get(key, {})
    if not isinstance(value, dict):
        _wrong(key, "a table")
    return dict(value)


def _text(value: Any, key: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        _wrong(key, "a text")
    return str(value)


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        _wrong(key, "a list of texts")
    return tuple(_text(one, key) for one in value)


def _wrong(key: str, what: str) -> bool:
    raise UsageError(f"{key} of the mapping is not {what}", "see diptych intent ingest --help")
