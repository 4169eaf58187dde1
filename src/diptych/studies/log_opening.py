"""Opening the log that a study is measured on: one that is imported already, raw events, or a generated one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import DataError, UnknownNameError
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.studies.log_source import LogSource
from diptych.studies.log_workshop import KEY
from diptych.studies.results import file_name

if TYPE_CHECKING:
    from diptych.data.logs.log import Log

_LOG, _SCENES = "log", "scenes"
_OPTIONS = ("name", "zone", "times_in", "memory_limit")
"""What ``--reader-option`` takes; who has more to say imports first: ``diptych intent ingest``."""


def open_log(
    beside: Path,
    source: LogSource | None,
    scenes: Mapping[str, Any] | None,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Path, Log]:
    """The log, and the folder for what is made of it; events are imported, or generated too, where they are not
    there yet.
    """
    from diptych.data.logs.log import Log

    if source is None:
        options = dict(scenes or {})
        folder = beside / f"scenes-{fingerprint(options)[:KEY]}"
        return folder, _generated(folder, options, tell)
    if source.is_imported:
        log = Log.open(source.path)
        return beside / f"{file_name(log.name)}-{fingerprint(log.fingerprint)[:KEY]}", log
    if not source.path.exists():
        raise DataError(
            f"{source.path} is not there", "give a folder that diptych intent ingest wrote, or raw events"
        )
    folder = beside / f"{file_name(source.path.name.partition('.')[0])}-{_key(source)}"
    return folder, _imported(folder, source, tell)


def _key(source: LogSource) -> str:
    """Of raw events and how they are read: files that have changed are another log."""
    files = sorted(file for file in source.path.rglob("*") if file.is_file()) or [source.path]
    found = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return fingerprint(found, source.importer, dict(source.options))[:KEY]


def _generated(folder: Path, options: dict[str, Any], tell: Callable[[str], None]) -> Log:
    """A log of scenes with planted effects, imported; opened when it is there."""
    from diptych.data.logs.log import Log
    from diptych.data.scenes import make_shop_log

    if Log.is_at(folder / _LOG):
        return Log.open(folder / _LOG)
    tell(f"{_SCENES}: generating a shop log")
    return _imported(folder, LogSource(make_shop_log(**options), options={"name": _SCENES}), tell)


def _imported(folder: Path, source: LogSource, tell: Callable[[str], None]) -> Log:
    """Raw events as a log, opened when they are there: the folder's name stands for what they were read from."""
    from diptych.data.logs.ingest import ingest
    from diptych.data.logs.log import Log

    for key in source.options:
        if key not in _OPTIONS:
            raise UnknownNameError("option of an import", key, _OPTIONS)
    target = folder / _LOG
    with taking_turns(target):
        if not Log.is_at(target):
            tell(f"{source.options.get('name', source.path.name)}: importing events")
            ingest(source.path, target, format=source.importer, **source.options)
    return Log.open(target)
