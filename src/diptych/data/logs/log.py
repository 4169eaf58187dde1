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

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diptych.core.artifact import Artifact

EVENTS = "events"


@dataclass(frozen=True)
class Log(Artifact, kind="log", recreate="diptych intent ingest FILE --out LOG"):
    """An imported log.

    Attributes:
        about: of what it was made, how, and what every rule dropped.
        folder: where it is.
    """

    about: dict[str, Any]
    folder: Path = field(init=False, default=Path(), compare=False)

    @property
    def name(self) -> str:
        """Return what reports call it."""
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
        """Return the zone of local hours and days."""
        return str(self.about["zone"])

    @property
    def buckets(self) -> list[Path]:
        """Return the files of events, one per bucket that has any."""
        return sorted((self.folder / EVENTS).glob("bucket=*/*.parquet"))

    def describe(self) -> str:
        """Return one line."""
        return f"{self.name}: {self.n_events:,} events, {self.about['first']} to {self.about['last']} ({self.zone})"
