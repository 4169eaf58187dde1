"""The journal of a folder of downloads: one line per picture that came or failed, written when it is so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from diptych.core.errors import StorageError

JOURNAL = "downloads.jsonl"
"""Its name; a folder with other things and without it is somebody else's."""


class Journal:
    """What is known of each picture; the newest line of an id counts."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        self._lines: dict[str, bytes] = {}  # as they are written: a third of the memory of what they say
        try:
            self._handle: BinaryIO = open(self._path, "a+b")  # noqa: SIM115 - closed with the journal
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}", "check the folder") from error
        try:
            self._handle.truncate(self._read())  # a kill may leave half a line
        except BaseException:
            self._handle.close()
            raise

    def _read(self) -> int:
        """How many bytes are whole lines."""
        self._handle.seek(0)
        whole = 0
        for number, line in enumerate(self._handle, 1):
            if not line.endswith(b"\n"):
                break
            try:
                entry = json.loads(line)
                self._lines[entry["id"]] = line
            except (ValueError, KeyError, TypeError):
                raise StorageError(
                    f"{self._path}, line {number} is no line of a journal of downloads", "remove that line"
                ) from None
            whole += len(line)
        return whole

    def get(self, identifier: str) -> Mapping[str, Any] | None:
        """The newest line of an id, None where there is none."""
        line = self._lines.get(identifier)
        found: Mapping[str, Any] | None = None if line is None else json.loads(line)
        return found

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write one line; once this returns, a kill does not lose it."""
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._handle.write(line)
            self._handle.flush()
        except OSError as error:
            raise StorageError(
                f"cannot write {self._path}: {error.strerror}", "free some space, then run the same command"
            ) from error
        self._lines[entry["id"]] = line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._handle.flush()
            os.fsync(self._handle.fileno())
        finally:
            self._handle.close()
