"""Which files are read and by which format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diptych.core.errors import DataError, UsageError
from diptych.data.logs.declaration import LOG_FORMATS, LogFormat
from diptych.data.logs.mapping import ColumnMapping
from diptych.data.logs.source_files import SourceFile, files_in, look_at

__all__ = ["Chosen", "choose_format"]

_SESSIONS = ("Administrative", "ProductRelated", "PageValues", "Revenue")
"""Columns of UCI's Online Shoppers Purchasing Intention: a row is a session."""


@dataclass(frozen=True)
class Chosen:
    """What is read.

    Attributes:
        format: the format of all files.
        files: of events, in the order of their names, which is the order of arrival.
        left_out: names of files that hold no events.
        zone: that the log says its days are in.
    """

    format: LogFormat
    files: tuple[SourceFile, ...]
    left_out: tuple[str, ...] = ()
    zone: str | None = None


def choose_format(
    sources: Sequence[Path], name: str | None = None, mapping: ColumnMapping | None = None
) -> Chosen:
    """Find the format of files or folders.

    Args:
        sources: files, or folders of them.
        name: of the format; recognised when not given.
        mapping: of a user's own columns.

    Raises:
        UsageError: no format recognises a file, a file is given twice, or a mapping is given for another format.
        DataError: a file is not there, empty or damaged, or there is none.
    """
    if mapping is not None and name not in (None, "columns"):
        raise UsageError(f"format {name!r} takes no columns", "leave out the format, or the columns")
    if len(sources) == 1 and mapping is None:
        for one in LOG_FORMATS if name is None else [LOG_FORMATS.get(name)]:
            marked = one.files(sources[0]) if one.files is not None else None
            if marked is not None:
                zone = one.zone(sources[0]) if one.zone is not None else None
                return Chosen(one, _looked_at(marked, sources[0]), zone=zone)
    paths = [path for source in sources for path in (files_in(source) if source.is_dir() else [source])]
    for path, times in Counter(path.resolve() for path in paths).items():
        if times > 1:
            raise UsageError(f"{path} is given {times} times", "its events would be, too: name it once")
    if mapping is not None:
        own = replace(LOG_FORMATS.get("columns"), given=mapping.given)
        return Chosen(own, _looked_at(paths, sources[0]))
    chosen = None if name is None else LOG_FORMATS.get(name)
    files = _looked_at(paths, sources[0])
    for file in files:
        if file.has(*_SESSIONS):
            raise UsageError(
                f"{file.name} is a table of sessions (UCI), not of events; mind that its column PageValues is "
                "computed from purchases",
                f"diptych intent features {file.path} --out FEATURES",
            )
    if chosen is None:
        chosen = _recognised(files)
    events = tuple(file for file in files if file.stem not in chosen.others)
    if not events:
        raise DataError(
            f"there are no events in {', '.join(file.name for file in files)}", "give other files"
        )
    left_out = tuple(file.name for file in files if file not in events)
    return Chosen(chosen, events, left_out)


def _looked_at(paths: Sequence[Path], source: Path) -> tuple[SourceFile, ...]:
    if not paths:
        raise DataError(f"{source} has no file of events", "give the files themselves")
    return tuple(look_at(path) for path in sorted(paths, key=lambda path: (path.name, str(path))))


def _recognised(files: Sequence[SourceFile]) -> LogFormat:
    """The least general format that recognises all files but those that it knows to hold no events."""
    best: tuple[int, SourceFile | None] = (0, None)
    for one in sorted(LOG_FORMATS, key=lambda one: one.general):
        unknown = [file for file in files if file.stem not in one.others and not one.recognises(file)]
        if not unknown and any(one.recognises(file) for file in files):
            return one
        if len(unknown) < len(files):
            best = (len(unknown), unknown[0])
    strange = best[1] or files[0]
    raise UsageError(
        f"no log format recognises {strange.name}, with columns {', '.join(strange.first)}",
        "name its columns: --column time=COLUMN --column client=COLUMN …, or a format: "
        f"--format {', '.join(LOG_FORMATS.names())}",
    )
