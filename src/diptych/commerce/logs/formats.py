"""Formats of raw logs: kinds of files, and their columns, as ``formats.toml`` or a user's mapping declares them."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, model_validator

from diptych.commerce.logs.log import ACTIONS
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.options import Options
from diptych.core.reading import file_errors, open_bytes, open_regular, read_json, read_toml

ENDINGS = (".csv", ".tsv", ".dat", ".txt", ".json", ".jsonl", ".ndjson", ".parquet")
"""Endings of files that are taken from a folder, also with ``.gz``."""

_BEGINNING, _UNPACKED = 1 << 20, 6  # bytes that are looked at; times as large as gzipped, roughly


class SourceFile(NamedTuple):
    """A file of a raw log, as its beginning shows it."""

    path: Path
    kind: Literal["text", "json", "parquet"]  # text with a delimiter, JSON lines or Parquet
    names: tuple[str, ...]  # of columns; of text the fields of its first line, which may be values
    rows: int  # of text and JSON an estimate
    delimiter: str = ","
    gzipped: bool = False
    pointers: Mapping[str, str] = {}  # JSON: column → its place (RFC 6901)

    @property
    def stem(self) -> str:
        return self.path.name.lower().removesuffix(".gz").rpartition(".")[0]


def look_at(path: Path) -> SourceFile:
    """Find out what a file is, by its content; its name says nothing."""
    with file_errors(path, DataError), open_regular(path) as handle:
        magic = handle.read(4)
    if magic == b"PAR1":
        pa, pq = (require(name, "commerce", "reading Parquet") for name in ("pyarrow", "pyarrow.parquet"))
        try:
            found = pq.read_metadata(path)
        except (pa.ArrowException, OSError) as error:
            line = str(error).split("\n", 1)[0]
            raise DataError(f"{path} is no whole Parquet file: {line}", "fetch it again") from None
        return SourceFile(path, "parquet", tuple(found.schema.to_arrow_schema().names), found.num_rows)
    gzipped = magic.startswith(b"\x1f\x8b")
    with file_errors(path, DataError), open_bytes(path, gzipped) as handle:
        content = handle.read(_BEGINNING)
    whole = content if len(content) < _BEGINNING else content.rpartition(b"\n")[0] or content
    lines = [line for line in whole.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip(b" ")]
    if not lines:
        empty = "holds nothing but blank lines" if magic else "is empty"
        raise DataError(f"{path} {empty}", "check how it was made; leave it out")
    rows = max(1, path.stat().st_size * (_UNPACKED if gzipped else 1) * len(lines) // (len(whole) + 1))
    first = lines[0].decode(errors="replace")  # in the others an odd byte is one bad row
    if "\0" in first or "\ufffd" in first:
        fix = "unpack or export it as one of these; iconv -f utf-16 -t utf-8 changes an encoding"
        raise DataError(f"{path} is no UTF-8 text, JSON lines or Parquet", fix)
    if first.startswith("["):
        raise DataError(f"{path} is one JSON list", "write one object per line (JSON lines): jq -c '.[]'")
    if first.startswith("{"):
        pointers: dict[str, str] = {}
        for name, place in (found for line in lines for found in _pointers(line)):
            pointers.setdefault(name, place)
        return SourceFile(path, "json", tuple(pointers), rows, gzipped=gzipped, pointers=pointers)
    delimiter = max(",;\t|", key=lambda one: (first.count(one), one == ","))
    names = tuple(name.strip() for name in next(csv.reader([first], delimiter=delimiter)))
    return SourceFile(path, "text", names, rows, delimiter, gzipped)


def _pointers(line: bytes) -> list[tuple[str, str]]:
    """Return the keys of an object, of inner ones as ``outer.inner``, and where their values are; none of a bad row."""

    def places(value: Any, name: str, pointer: str) -> Iterator[tuple[str, str]]:
        for key, inner in value.items():
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if isinstance(inner, dict):
                yield from places(inner, f"{name}{key}.", place)
            else:
                yield name + key, place

    try:
        return list(places(json.loads(line), "", ""))
    except (AttributeError, ValueError, RecursionError):
        return []


TARGETS = (
    *("time", "client", "visitor", "session", "device", "channel", "country", "action", "page_type"),
    *("query", "item", "price", "purchase", "address", "agent"),
)
"""Things that a column can hold; the agent and the address are looked at and not kept."""

CONSTANT = ("action", "device", "channel", "country", "page_type")
"""Targets that can be one value of all events, or words that mean another."""


class Columns(Options):
    """Columns of one kind of file."""

    model_config: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True)

    columns: dict[str, str] = Field({})  # target → column
    # target → meaning → the words for it; what is nowhere listed stays, of an action it is unknown
    values: dict[str, dict[str, tuple[str, ...]]] = Field({})
    constants: dict[str, str] = Field({})  # target → the value of all events, whatever a column holds
    time_format: str = "auto"  # of ``TIME_FORMATS``, or of ``strptime``
    missing: tuple[str, ...] = ()  # identifiers of no client, besides ``MISSING_WORDS``


class Layout(Columns):
    """Columns of a file of a published format; see ``formats.toml``."""

    sql: dict[str, str] = Field({})
    optional: tuple[str, ...] = ()  # targets whose columns may be missing
    others: tuple[str, ...] | None = None
    bare: int = 0

    def fitted(self, file: SourceFile) -> Self | None:
        """Return the layout with the file's own names of columns, None where it is of another kind."""
        if self.bare:
            is_so = len(file.names) == self.bare and all(map(_BARE.fullmatch, file.names[:3]))
            return self if is_so and file.kind == "text" else None
        own, found = {_plain(name): name for name in file.names} | {name: name for name in file.names}, {}
        for target, spelt in self.columns.items():
            spellings = [one for text in spelt.split("|") for one in (text, _plain(text))]
            name = next((own[one] for one in spellings if one in own), None)
            if name is not None:
                found[target] = name
            elif target not in self.optional:
                return None
        more = {_plain(name) for name in {*file.names} - {*found.values()}}
        given = found.keys() | self.sql.keys()
        known = more if self.others is None else {*self.others}
        fits = "time" in given and given & {"client", "visitor"} and more <= known
        return self.model_copy(update={"columns": found}) if fits else None


_BARE = re.compile(r"\d+\.?\d*|\d{4}-\d\d-\d\dT[\d:.]+Z")


def _plain(name: str) -> str:
    return re.sub("[._]", "", name.lower())


class ColumnMapping(Columns):
    """Map a user's own columns and their values; also a TOML file of these keys."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        values, action = self.values, self.constants.get("action", ACTIONS[0])
        for where, given, known in (
            ("columns", self.columns, TARGETS),
            ("values", values, (*CONSTANT, "purchase")),
            ("values.action", values.get("action", ()), ACTIONS),
            ("values.purchase", values.get("purchase", ()), ("yes",)),
            ("constants", self.constants, CONSTANT),
            ("constants.action", [action], ACTIONS),
        ):
            if unknown := [name for name in given if name not in known]:
                raise UsageError(f"{where}: nothing is called {unknown[0]!r}", f"known: {', '.join(known)}")
        return self


def read_mapping(path: Path) -> ColumnMapping:
    read = read_toml(path, UsageError, "see https://toml.io")
    return ColumnMapping.read(read, str(path), fix="see diptych intent ingest --help")


class LogFormat(Options):
    """A format of logs."""

    name: str
    description: str
    layouts: tuple[Layout, ...]  # of its files: the first that fits counts
    notes: tuple[str, ...] = ()  # for readers of an imported log
    others: tuple[str, ...] = ()  # names, without endings, of files that come with the log and hold no events
    has_hours: bool = True  # whether its times are those of a clock


_DECLARED = read_toml(Path(__file__).with_name("formats.toml"))["format"]
LOG_FORMATS = tuple(map(LogFormat.model_validate, _DECLARED))

_SESSIONS = {"Administrative", "ProductRelated", "PageValues", "Revenue"}  # of UCI's shoppers


class Chosen(NamedTuple):
    """Files of one format, in the order of their names, which is the order of arrival."""

    format: LogFormat
    files: list[tuple[SourceFile, Layout]]  # of events
    left_out: list[str]  # names of files that hold no events
    zone: str | None = None  # that the log says its days are in


def choose_format(
    sources: Sequence[Path], name: str | None = None, mapping: ColumnMapping | None = None
) -> Chosen:
    by_name = {one.name: one for one in LOG_FORMATS}
    if mapping is not None:
        own = by_name["columns"].model_copy(update={"layouts": (Layout(**dict(mapping)),)})
        if name not in (None, own.name):
            raise UsageError(f"format {name!r} takes no columns", "leave out the format, or the columns")
        name, by_name[own.name] = own.name, own
    if name is not None and name not in by_name:
        raise UnknownNameError("log format", name, by_name)
    paths, zone = [path for source in sources for path in _files_of(source)], None
    marker = sources[0] / "dataset.json"
    made = read_json(marker) if mapping is None and len(sources) == 1 and marker.is_file() else None
    if isinstance(made, dict) and made.get("dataset") == "shop-log":
        pattern = "events.csv.gz" if made["format"] == "csv" else "events/part-*.parquet"
        paths, zone = list(sources[0].glob(pattern)), str(made["zone"])
    for path, times in Counter(path.resolve() for path in paths).items():
        if times > 1:
            raise UsageError(f"{path} is given {times} times", "its events would be, too: name it once")
    if not paths:
        raise DataError(f"{sources[0]} has no file of events", "give the files themselves")
    files = [look_at(path) for path in sorted(paths, key=lambda path: (path.name, str(path)))]
    refused = files[0]
    if mapping is None and {*refused.names} >= _SESSIONS:
        wrong = f"{refused.path} is a table of sessions (UCI), not of events; mind that its column PageValues"
        fix = f"diptych intent features {refused.path} --out FEATURES"
        raise UsageError(f"{wrong} is computed from purchases", fix)
    for one in LOG_FORMATS if name is None else [by_name[name]]:
        events = [file for file in files if file.stem not in one.others]
        layouts = [next(filter(None, (each.fitted(file) for each in one.layouts)), None) for file in events]
        known = [(file, layout) for file, layout in zip(events, layouts, strict=True) if layout is not None]
        if known and len(known) == len(events):
            return Chosen(one, known, [file.path.name for file in files if file not in events], zone)
        if known:
            refused = events[layouts.index(None)]
    no_file = "no log format recognises it"
    if mapping is not None:
        listed = ", ".join(f"{target}={column}" for target, column in mapping.columns.items())
        no_file = f"{listed or 'nothing'} does not name the time and the client or visitor, or a column is not there"
    elif name is not None:
        no_file = f"it is no file of {name}: {by_name[name].description}"
    own_columns = "name its columns: --column time=COLUMN --column client=COLUMN …"
    wrong = f"{refused.path.name} has columns {', '.join(refused.names)}: {no_file}"
    raise UsageError(wrong, f"{own_columns}, or a format: --format {', '.join(by_name)}")


def _files_of(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    visible = [path for path in source.iterdir() if path.is_file() and not path.name.startswith(".")]
    return [path for path in visible if path.name.lower().removesuffix(".gz").endswith(ENDINGS)]
