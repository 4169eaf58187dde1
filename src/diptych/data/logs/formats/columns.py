"""A user's own columns, by a mapping, or called as the things they hold: time, client, visitor, action …"""

from __future__ import annotations

from diptych.data.logs.declaration import LOG_FORMATS, Given, LogFormat
from diptych.data.logs.mapping import TARGETS, ColumnMapping
from diptych.data.logs.source_files import SourceFile

__all__: list[str] = []


def _recognises(file: SourceFile) -> bool:
    return file.has("time") and (file.has("client") or file.has("visitor"))


def _given(file: SourceFile) -> Given:
    return ColumnMapping({target: target for target in TARGETS if file.has(target)}).given(file)


LOG_FORMATS.add(
    LogFormat(
        "columns",
        "your own CSV, TSV, JSON lines or Parquet: name its columns with --column or --mapping",
        _recognises,
        _given,
        general=9,
    )
)
