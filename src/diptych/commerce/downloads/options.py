"""How politely, and how far, pictures are fetched."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from pydantic import field_validator

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.options import Options, parameter
from diptych.core.version import __version__
from diptych.data.collection import Collection
from diptych.data.columns import first_duplicate
from diptych.data.images import MAX_PIXELS
from diptych.data.lines import DelimitedTable
from diptych.data.source import DataSource, TargetOption

AGENT = "diptych"
"""The name under which robots.txt is read."""


class DownloadOptions(Options):
    """How politely images are fetched, and how far."""

    contact: str = parameter(
        ..., "Your mail address or web page, sent to every host.", envvar="DIPTYCH_CONTACT"
    )
    rate: float = parameter(1.0, "Requests per second and host.", gt=0)
    connections: int = parameter(1, "At once, to one host.", ge=1)
    hosts: int = parameter(8, "Hosts at once.", ge=1, hidden=True)
    ignore_robots: bool = parameter(False, "Ignore robots.txt: on your own hosts only.")
    allow_private: bool = parameter(False, "Follow addresses into private networks.")
    attempts: int = parameter(4, "Per image, before it counts as failed.", ge=1)
    back_off: float = parameter(
        2.0, "Seconds before the second attempt; then twice as many.", ge=0, hidden=True
    )
    longest_wait: float = parameter(
        600.0, "Seconds; a host that asks for more is left for another time.", gt=0, hidden=True
    )
    timeout: float = parameter(30.0, "Seconds to connect, and without a byte.", gt=0, hidden=True)
    seconds: float = parameter(180.0, "For one image altogether.", gt=0, hidden=True)
    redirects: int = parameter(5, "How many are followed.", ge=0, hidden=True)
    max_bytes: int = parameter(30_000_000, "An image's largest file.", ge=1)
    max_pixels: int = parameter(MAX_PIXELS, "An image's largest area.", ge=1, hidden=True)
    min_side: int = parameter(2, "Shorter images are placeholders.", ge=0, hidden=True)

    @field_validator("contact")
    @classmethod
    def _reachable(cls, contact: str) -> str:
        contact = contact.strip()
        if not contact or not contact.isascii() or not contact.isprintable() or set("()") & set(contact):
            raise UsageError(
                f"{contact!r} is no contact",
                "give a mail address or a web page, so that whoever runs a host can reach you",
            )
        return contact

    @property
    def user_agent(self) -> str:
        """Return what is sent to hosts."""
        return f"{AGENT}/{__version__} (+{self.contact})"


class FetchOptions(DataSource, DownloadOptions, TargetOption):
    """Which images are fetched."""

    data: Path = parameter(
        ...,
        "A dataset whose records have addresses, or a CSV file of ids and addresses.",
        argument=True,
        metavar="DATA",
    )
    out: Path = parameter(..., "Folder of images: new, or of an earlier call.", "--out", "-o")
    limit: int | None = parameter(None, "Try at most so many addresses now.", ge=1)
    retry_failed: bool = parameter(False, "Try those again that failed in an earlier call.")

    def wanted(self) -> list[Wanted]:
        """Return the images that the data names."""
        return addresses_in(self.data, self.reader, **self.reader_options())


@dataclass(frozen=True)
class Wanted:
    """One picture."""

    id: str  # of the item that it shows
    address: str  # where it is


def wanted_of(collection: Collection) -> list[Wanted]:
    """The items of a collection that have no picture and whose records say where one is (``picture_address``)."""
    found: list[Wanted] = []
    with_address = 0
    records = collection.records if collection.records is not None else ()
    for identifier, pictured, record in zip(collection.image_ids, collection.pictured, records, strict=False):
        address = str((record or {}).get("picture_address") or "").strip()
        with_address += bool(address)
        if address and not pictured:
            found.append(Wanted(identifier, address))
    if not with_address:
        raise DataError(
            f"{collection.name}: no record of {collection.n_images:,} says where its picture is",
            "give a dataset with addresses, or a CSV file with the columns id and address",
        )
    return found


def addresses_in(path: Path | str, reader: str | None = None, **options: Any) -> list[Wanted]:
    """Return the images that a list of ids and addresses, or a dataset whose records have addresses, wants."""
    from diptych.data.readers import read_collection

    if reader is None and not options and is_list(path):
        return read_wanted(path)
    return wanted_of(read_collection(path, reader, **options))


def is_list(path: Path | str) -> bool:
    """Return whether a file is a CSV file with the columns ``id`` and ``address``."""
    path = Path(path)
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as handle:
        first = handle.readline(10_000)
    return {"id", "address"} <= set(next(csv.reader([first]), []))


def read_wanted(path: Path | str) -> list[Wanted]:
    """A CSV file with the columns ``id`` and ``address``, others unread; lines without an address are left out."""
    path = Path(path)
    table = DelimitedTable(path, delimiter="comma")
    if not {"id", "address"} <= set(table.columns):
        raise DataError(
            f"{path} has the columns {', '.join(table.columns)}", "it needs the columns id and address"
        )
    identifiers, addresses = table.columns.index("id"), table.columns.index("address")
    found = []
    for line, row in table.rows():
        identifier, address = (
            row[place].strip() if place < len(row) else "" for place in (identifiers, addresses)
        )
        if not identifier:
            raise DataError(f"{path}, line {line}: no id", "give each picture an id")
        if address:
            found.append(Wanted(identifier, address))
    return checked(found)


def checked(wanted: Iterable[Wanted]) -> list[Wanted]:
    """Return the same, each id once."""
    found = list(wanted)
    twice = first_duplicate([one.id for one in found])
    if twice is not None:
        raise DataError(f"the id {twice!r} occurs twice among the wanted pictures", "make ids unique")
    return found


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
        """Return how many bytes are whole lines."""
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
        """Return the newest line of an id, None where there is none."""
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
