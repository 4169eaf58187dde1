"""What stands in a run's place where a log is measured, or what the package declares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from diptych.studies.log_workshop import Workshop
from diptych.studies.study import Row


@dataclass(frozen=True)
class LogRow:
    """A row that is measured on a log.

    Attributes:
        row: of the study.
        folder: where what it gives is kept.
        workshop: of the log.
    """

    row: Row
    folder: Path
    workshop: Workshop


@dataclass(frozen=True)
class DeclaredRow:
    """A row of a study that needs no log.

    Attributes:
        row: of the study.
    """

    row: Row
