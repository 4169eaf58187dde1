"""What an import of a log refuses: files, zones and periods, and mappings of columns."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from imported import import_text
from refusals import refused

from diptych.core.errors import DataError, DiptychError, UsageError
from diptych.data.logs import Cleaning, ColumnMapping, read_mapping

Call = Callable[[Path], object]


def file(name: str, content: bytes) -> Call:
    return lambda folder: import_text(folder, content, name)


def importing(**options: Any) -> Call:
    return lambda folder: import_text(folder, "time,client\n2019-10-01,a\n", **options)


def mapping(columns: dict[str, Any], **options: Any) -> Call:
    return lambda folder: ColumnMapping(columns, **options)


def mapping_file(content: str) -> Call:
    def read(folder: Path) -> object:
        (folder / "mapping.toml").write_text(content)
        return read_mapping(folder / "mapping.toml")

    return read


def country(name: str) -> Call:
    return lambda folder: Cleaning(countries=("be", name))


REFUSED: list[tuple[Call, type[DiptychError], str]] = [
    (file("empty.csv", b""), DataError, "is empty"),
    (file("blank.csv", b"\n  \n"), DataError, "blank lines"),
    (file("header.csv", b"time,client\n"), DataError, "no event is left of 0 rows"),
    (file("bad.csv", b"time,client\nx\x1b,a\n"), DataError, r"unreadable time: 1, most of them x\?"),
    (file("utf16.csv", "time,client\n".encode("utf-16")), DataError, "UTF-16"),
    (file("latin.csv", b"time,client,\xe9\n"), DataError, "not UTF-8"),
    (file("binary.csv", b"\0\1\2\3"), DataError, "no text"),
    (file("list.json", b'[{"time": 1}]'), DataError, "JSON list"),
    (
        file("cut.csv.gz", gzip.compress(b"time,client\n" + b"2019-10-01T00:00:00Z" + b",a\n", mtime=0)[:-9]),
        DataError,
        "is corrupt",
    ),
    (file("bad.parquet", b"PAR1xxxxPAR1"), DataError, "no whole Parquet"),
    (importing(zone="Europe/Amsterdm"), UsageError, "did you mean Europe/Amsterdam"),
    (importing(zone="europe/amsterdam"), UsageError, "did you mean Europe/Amsterdam"),
    (importing(times_in="Mars"), UsageError, "no time zone 'Mars'"),
    (importing(cleaning=Cleaning(since="soon")), UsageError, "'soon' is no time"),
    (importing(cleaning=Cleaning(since="2019-10-02", until="2019-10-01")), UsageError, "period is empty"),
    (mapping({"tme": "x"}), UsageError, r"column of 'tme'.*targets: time \(when, required\); client"),
    (mapping({}, values={"price": {}}), UsageError, "values of 'price'"),
    (mapping({}, constants={"time": "now"}), UsageError, "constant of 'time'"),
    (mapping({}, values={"action": {"zoom": ("z",)}}), UsageError, "no action 'zoom'.*page, query, add"),
    (mapping({}, constants={"action": "zoom"}), UsageError, "no action 'zoom'"),
    (mapping({"device": "x"}, constants={"device": "pc"}), UsageError, "a column and a constant"),
    (mapping({}, values={"purchase": {"no": ("0",)}}), UsageError, "listed under yes"),
    (mapping_file("[columns"), UsageError, "is not TOML"),
    (mapping_file("[column]\n"), UsageError, "'column', which is no part of a mapping.*columns, values"),
    (mapping_file("columns = 3"), UsageError, "columns of the mapping is not a table"),
    (mapping_file("[columns]\ntime = [1]"), UsageError, "columns.time of the mapping is not a text"),
    (mapping_file("[values]\naction = 1"), UsageError, "values.action of the mapping is not a table"),
    (
        mapping_file('[values.action]\npage = "view"'),
        UsageError,
        "values.action.page of the mapping is not a list",
    ),
    (mapping_file("missing = 0"), UsageError, "missing of the mapping is not a list"),
    *((country(name), UsageError, f"no country '{name}'") for name in ("NLD", "Holland", "N", "N1", "ÄÖ")),
]


@pytest.mark.parametrize(("call", "error", "says"), REFUSED)
def test_what_an_import_refuses(call: Call, error: type[DiptychError], says: str, tmp_path: Path) -> None:
    refused(error, says, call, tmp_path)
    assert not list(tmp_path.glob("*.log"))
