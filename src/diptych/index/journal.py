"""Stand-in until the journal is here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.core.fingerprint import fingerprint
from diptych.index.contract import Index, open_index


class StoredIndex:
    """A saved index and the changes since."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.index: Index = open_index(folder)
        self._stat = self._now()

    def _now(self) -> tuple[int, int]:
        stat = (self.folder / "index.json").stat()
        return stat.st_ino, stat.st_mtime_ns

    @property
    def fingerprint(self) -> str:
        return fingerprint(*map(str, self._stat))

    @property
    def is_replaced(self) -> bool:
        return self._now() != self._stat

    def refresh(self) -> bool:
        if self._now() == self._stat:
            return False
        self.index, self._stat = open_index(self.folder), self._now()
        return True

    def add(self, ids: Any, rows: Any, records: Any = None, captions: Any = None, **more: Any) -> None:
        self.index.add(ids, rows, **more)
        self.compact()

    def delete(self, ids: Any) -> None:
        self.index.delete(ids)
        self.compact()

    def compact(self) -> None:
        self.index.save(self.folder)
        self._stat = self._now()
