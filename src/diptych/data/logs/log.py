"""Log: a folder of canonical events, as an import wrote it.

::

    LOG/
      log.json                     what it was made of, how, and what every rule dropped
      events/bucket=00/part.parquet
      …

Events are in as many buckets as ``log.json`` says, by a hash of their client, so that everything about one
client is in one bucket and a pass over the log needs the memory of a bucket alone; inside a bucket they are
in the order of client, time and event.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, StorageError
from diptych.core.reading import opening, read_json

MARKER = "log.json"
EVENTS = "events"
FORMAT = 1


@dataclass(frozen=True)
class Log:
    """An imported log.

    Attributes:
        folder: where it is.
        about: what ``log.json`` says.
    """

    folder: Path
    about: dict[str, Any]

    @classmethod
    @opening("import it again: diptych intent ingest")
    def open(cls, folder: Path | str) -> Log:
        """Open a folder that an import has written."""
        folder = Path(folder)
        if not (folder / MARKER).is_file():
            raise DataError(
                f"{folder} holds no events (no {MARKER})", "make it: diptych intent ingest FILE --out LOG"
            )
        about = read_json(folder / MARKER)
        if about.get("format") != FORMAT:
            raise StorageError(
                f"{folder} is a log of format {about.get('format')}, this version reads {FORMAT}",
                "import it again: diptych intent ingest",
            )
        return cls(folder, about)

    @property
    def name(self) -> str:
        """What reports call it."""
        return str(self.about["name"])

    @property
    def fingerprint(self) -> str:
        """Of the events and how they were made."""
        return str(self.about["fingerprint"])

    @property
    def n_events(self) -> int:
        """Events that were kept."""
        return int(self.about["events"])

    @property
    def zone(self) -> str:
        """The zone of local hours and days."""
        return str(self.about["zone"])

    @property
    def buckets(self) -> list[Path]:
        """The files of events, one per bucket that has any."""
        return sorted((self.folder / EVENTS).glob("bucket=*/*.parquet"))

    def describe(self) -> str:
        """One line."""
        return f"{self.name}: {self.n_events:,} events, {self.about['first']} to {self.about['last']} ({self.zone})"
