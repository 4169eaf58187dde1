"""A shop's log as it is named: a folder that an import wrote, or raw files that are imported first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class LogSource:
    """What ``--data`` names, of a study of a log.

    Attributes:
        path: a folder that ``diptych intent ingest`` wrote, or a file or folder of raw events.
        importer: the format of raw events, where it is not recognised.
        options: of the import, as ``diptych intent ingest`` takes them.
    """

    path: Path
    importer: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_imported(self) -> bool:
        """Whether it is a folder of canonical events."""
        from diptych.data.logs.log import Log

        return Log.is_at(self.path)
