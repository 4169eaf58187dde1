"""How politely, and how far, pictures are fetched."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.version import __version__
from diptych.data.collection import Collection
from diptych.data.images import MAX_PIXELS

AGENT = "diptych"
"""The name under which robots.txt is read."""


@dataclass(frozen=True)
class DownloadOptions:
    """Options of one download."""

    contact: (
        str  # a mail address or web page where whoever runs a host can reach who downloads; it is sent to all
    )
    rate: float = 1.0  # requests per second and host, robots.txt included
    connections: int = 1  # at once, to one host
    hosts: int = 8  # how many hosts at once
    robots: bool = True  # keep to robots.txt
    allow_private: bool = False  # follow addresses into private and loopback networks
    attempts: int = 4  # how often a picture is tried before it counts as failed
    back_off: float = 2.0  # seconds before the second attempt; twice as long before each further one
    longest_wait: float = 600.0  # seconds; a host that asks for a longer pause is left for another time
    timeout: float = 30.0  # seconds to connect, and without a byte
    seconds: float = 180.0  # for one picture altogether
    redirects: int = 5  # how many are followed
    max_bytes: int = 30_000_000  # a picture's largest file
    max_pixels: int = MAX_PIXELS  # a picture's largest area
    min_side: int = 2  # shorter pictures are placeholders

    def __post_init__(self) -> None:
        contact = self.contact.strip()
        if not contact or not contact.isascii() or not contact.isprintable() or set("()") & set(contact):
            raise UsageError(
                f"{self.contact!r} is no contact",
                "give a mail address or a web page, so that whoever runs a host can reach you",
            )
        for field in fields(self):
            value = getattr(self, field.name)
            zero = field.name in ("back_off", "redirects", "min_side")
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and not (value > 0 or (zero and value == 0)):
                raise UsageError(f"{field.name} cannot be {value:g}", "give a positive number")

    @property
    def user_agent(self) -> str:
        """Return what is sent to hosts."""
        return f"{AGENT}/{__version__} (+{self.contact.strip()})"


@dataclass(frozen=True)
class Wanted:
    """One picture.

    Attributes:
        id: of the item that it shows.
        address: where it is.
    """

    id: str
    address: str


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
    try:
        with open(path, newline="", encoding="utf-8-sig") as handle:
            rows = csv.DictReader(handle)
            names = rows.fieldnames or []
            if "id" not in names or "address" not in names:
                raise DataError(
                    f"{path} has the columns {', '.join(names) or 'none'}",
                    "it needs the columns id and address",
                )
            found = []
            for row in rows:
                identifier, address = (row["id"] or "").strip(), (row["address"] or "").strip()
                if not identifier:
                    raise DataError(f"{path}, line {rows.line_num}: no id", "give each picture an id")
                if address:
                    found.append(Wanted(identifier, address))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}", "give a CSV file in UTF-8") from None
    return list(checked(found))


def checked(wanted: Iterable[Wanted]) -> Iterable[Wanted]:
    """Yield the same, each id once."""
    seen: set[str] = set()
    for one in wanted:
        if one.id in seen:
            raise DataError(f"the id {one.id!r} occurs twice among the wanted pictures", "make ids unique")
        seen.add(one.id)
        yield one


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
