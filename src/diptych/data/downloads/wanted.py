"""Which pictures are wanted, and where they are."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.collection import Collection


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


def is_list(path: Path | str) -> bool:
    """Whether a file is a CSV file with the columns ``id`` and ``address``."""
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
    """The same, each id once."""
    seen: set[str] = set()
    for one in wanted:
        if one.id in seen:
            raise DataError(f"the id {one.id!r} occurs twice among the wanted pictures", "make ids unique")
        seen.add(one.id)
        yield one
