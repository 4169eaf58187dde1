"""Formats of raw logs: which columns of a file hold what, and SQL of its rows as canonical events.

Text is read line by line and taken apart here. DuckDB's own CSV reader is not used, for three measured reasons:
a quotation mark that is never closed makes it lose the rest of the file in silence, what it rejects depends on
the number of threads, and with CRLF and LF in one file it may read nothing. So a line is a row: values in
quotation marks may hold delimiters, but no line breaks. A row with another number of values than the first line,
with bad quotation marks, with NUL or with bytes that are not UTF-8 is unreadable, and is counted.

Names of columns and values of a log enter SQL through :func:`identifier` and :func:`literal` only.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, model_validator

from diptych.commerce.logs.schema import (
    ACTION_WORDS,
    ACTIONS,
    DEVICE_WORDS,
    MISSING_WORDS,
    UNKNOWN,
    YES_WORDS,
)
from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.options import Options
from diptych.core.reading import file_errors, open_bytes, open_regular, read_toml

ENDINGS = (".csv", ".tsv", ".dat", ".txt", ".json", ".jsonl", ".ndjson", ".parquet")
"""Of the files that are taken from a folder, also with ``.gz``."""

_BEGINNING = 1 << 20
_UNPACKED = 6  # times as large as gzipped, roughly


@dataclass(frozen=True)
class SourceFile:
    """A file of a raw log, as its beginning shows it."""

    path: Path
    kind: Literal["text", "json", "parquet"]  # text with a delimiter, JSON lines or Parquet
    names: tuple[str, ...]  # of columns; of text the fields of its first line, which may be values
    rows: int  # of text and JSON an estimate
    delimiter: str = ","
    gzipped: bool = False
    timed: frozenset[str] = frozenset()  # Parquet columns of dates and timestamps
    pointers: Mapping[str, str] = field(default_factory=dict)  # JSON: column → its place (RFC 6901)

    @property
    def name(self) -> str:
        """Return the name without the folder."""
        return self.path.name

    @property
    def stem(self) -> str:
        """Return the name in lower case without its endings."""
        return self.name.lower().removesuffix(".gz").rpartition(".")[0]


def look_at(path: Path) -> SourceFile:
    """Find out what a file is, by its content; its name says nothing."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DataError(
            f"{path} is no file: a log is read more than once", "write to a file what comes from there"
        )
    with file_errors(path, DataError), open_regular(path) as handle:
        magic = handle.read(4)
    if not magic:
        raise DataError(f"{path} is empty", "check how it was made; leave it out")
    if magic == b"PAR1":
        return _look_at_parquet(path)
    gzipped = magic.startswith(b"\x1f\x8b")
    lines = _first_lines(path, gzipped)
    size = path.stat().st_size * (_UNPACKED if gzipped else 1)
    rows = max(1, round(size * len(lines) / sum(len(line.encode()) + 1 for line in lines)))
    if lines[0].startswith("{"):
        pointers = _pointers(lines)
        return SourceFile(path, "json", tuple(pointers), rows, gzipped=gzipped, pointers=pointers)
    if lines[0].startswith("["):
        raise DataError(f"{path} is one JSON list", "write one object per line (JSON lines): jq -c '.[]'")
    delimiter = max(",;\t|", key=lambda one: (lines[0].count(one), one == ","))
    names = tuple(name.strip() for name in next(csv.reader(lines[:1], delimiter=delimiter)))
    return SourceFile(path, "text", names, rows, delimiter, gzipped)


def check_whole(file: SourceFile) -> None:
    """Raise a DataError for a gzipped file that is cut; the database would read what there is of it."""
    if file.gzipped:
        with file_errors(file.path, DataError), open_bytes(file.path, gzipped=True) as handle:
            while handle.read(_BEGINNING):
                pass


def _first_lines(path: Path, gzipped: bool) -> list[str]:
    """Return the lines of a file's beginning that are not blank, each whole but for a very long first."""
    with file_errors(path, DataError), open_bytes(path, gzipped) as handle:
        content = handle.read(_BEGINNING)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is in UTF-16", "write it in UTF-8: iconv -f utf-16 -t utf-8")
    whole = content if len(content) < _BEGINNING else content.rpartition(b"\n")[0] or content
    lines = [line for line in whole.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip(b" ")]
    if not lines:
        raise DataError(f"{path} holds nothing but blank lines", "check how it was made; leave it out")
    try:
        first = lines[0].decode()  # in the others an odd byte is one bad row
    except UnicodeDecodeError:
        raise DataError(f"the first line of {path} is not UTF-8", "write it in UTF-8, with iconv") from None
    if "\0" in first:
        raise DataError(f"{path} is no text, JSON lines or Parquet", "unpack or export it as one of these")
    return [first, *(line.decode(errors="replace") for line in lines[1:])]


def _pointers(lines: list[str]) -> dict[str, str]:
    """Return the keys of the first objects, of inner ones as ``outer.inner``, and where their values are."""
    found: dict[str, str] = {}

    def add(value: Mapping[str, Any], name: str = "", pointer: str = "") -> None:
        for key, inner in value.items():
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if isinstance(inner, dict):
                add(inner, f"{name}{key}.", place)
            else:
                found.setdefault(name + key, place)

    for line in lines:
        try:
            value = json.loads(line)
            if isinstance(value, dict):
                add(value)
        except (ValueError, RecursionError):  # one bad row, which the import counts
            continue
    return found


def _look_at_parquet(path: Path) -> SourceFile:
    require("pyarrow", "commerce", "reading Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        opened = pq.ParquetFile(path)
        schema, rows = opened.schema_arrow, opened.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        line = str(error).split("\n", 1)[0]
        raise DataError(f"{path} is no whole Parquet file: {line}", "it is corrupt: fetch it again") from None
    timed = frozenset(
        one.name for one in schema if pa.types.is_timestamp(one.type) or pa.types.is_date(one.type)
    )
    return SourceFile(path, "parquet", tuple(schema.names), rows, timed=timed)


# Which column holds what.

TARGETS = (
    *("time", "client", "visitor", "session", "device", "channel", "country", "action", "page_type"),
    *("query", "item", "price", "purchase", "address", "agent"),
)
"""What a column can hold; the agent and the address are looked at and not kept."""

_IDENTITIES = ("client", "visitor", "session", "item")
_CONSTANT = ("action", "device", "channel", "country", "page_type")
_VALUED = (*_CONSTANT, "purchase")


@dataclass(frozen=True)
class Layout:
    """The columns of one kind of file."""

    columns: Mapping[str, str]  # target → column; of a published format ``|`` divides its spellings
    # target → meaning → the words for it; what is nowhere listed stays, of an action it is unknown
    values: Mapping[str, Mapping[str, Iterable[str]]] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)  # target → the value of all events
    time_format: str = "auto"  # of ``TIME_FORMATS``, or of ``strptime``
    missing: Iterable[str] = ()  # identifiers of no client, besides ``MISSING_WORDS``
    sql: Mapping[str, str] = field(default_factory=dict)  # target → SQL over other targets
    optional: Collection[str] = ()  # targets whose columns may be missing
    others: Collection[str] | None = None  # further columns that a file may have; None for any
    bare: int = (
        0  # values per line of a file without names of columns; a column is then its number, from 1 on
    )

    def fitted(self, file: SourceFile) -> Layout | None:
        """Return the layout with the file's own names of columns, None where it is of another kind."""
        if self.bare:
            is_so = len(file.names) == self.bare and all(map(_BARE.fullmatch, file.names[:3]))
            return self if is_so and file.kind == "text" else None
        own = {_plain(name): name for name in file.names}
        found: dict[str, str] = {}
        for target, spellings in self.columns.items():
            known = [own[_plain(one)] for one in spellings.split("|") if _plain(one) in own]
            if known:
                found[target] = known[0]
            elif target not in self.optional:
                return None
        more = {
            name
            for name in file.names
            if name not in found.values() and _plain(name) not in (self.others or ())
        }
        return None if self.others is not None and more else replace(self, columns=found)


_BARE = re.compile(r"\d+\.?\d*|\d{4}-\d\d-\d\dT[\d:.]+Z")


def _plain(name: str) -> str:
    return re.sub("[._]", "", name.lower())


class ColumnMapping(Options):
    """Which of a user's own columns holds what, and what their values mean; also a TOML file of these keys."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    columns: dict[str, str] = Field({})
    values: dict[str, dict[str, tuple[str, ...]]] = Field({})
    constants: dict[str, str] = Field({})
    time_format: str = "auto"
    missing: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Self:
        for what, given, allowed in (
            ("columns", self.columns, TARGETS),
            ("values", self.values, _VALUED),
            ("constants", self.constants, _CONSTANT),
        ):
            for target in given:
                if target not in allowed:
                    raise UsageError(
                        f"{what}: nothing is called {target!r}", f"targets: {', '.join(allowed)}"
                    )
        if both := sorted(set(self.columns) & set(self.constants)):
            raise UsageError(f"{both[0]} has a column and a constant", "give one of them")
        for action in (*self.values.get("action", {}), *filter(None, [self.constants.get("action")])):
            if action not in ACTIONS:
                raise UsageError(f"there is no action {action!r}", f"actions: {', '.join(ACTIONS)}")
        if not set(self.values.get("purchase", {})) <= {"yes"}:
            raise UsageError("values of purchase are listed under yes", "[values.purchase] yes = [...]")
        return self

    def with_columns(self, options: Iterable[str]) -> ColumnMapping:
        """Return the same with further columns, each written ``target=column``."""
        more: dict[str, str] = {}
        for option in options:
            target, _, column = (part.strip() for part in option.partition("="))
            if not column:
                raise UsageError(
                    f"{option!r} names no column", f"e.g. client=cookie_id; targets: {', '.join(TARGETS)}"
                )
            if more.setdefault(target, column) != column:
                raise UsageError(
                    f"{target} is in two columns, {more[target]} and {column}", "give one of them"
                )
        return ColumnMapping.model_validate({**dict(self), "columns": {**self.columns, **more}})

    def layout(self, file: SourceFile) -> Layout:
        """Return the layout of a file; UsageError where it lacks a column."""
        is_bare = file.kind == "text" and not set(self.columns.values()) <= set(file.names)
        is_bare = is_bare and all(column.isdigit() for column in self.columns.values())
        names = [str(1 + place) for place in range(len(file.names))] if is_bare else list(file.names)
        found = f"columns of {file.name}: {', '.join(names)}"
        for needed in (("time",), ("client", "visitor")):
            if not {*needed} & set(self.columns):
                fix = "name columns: --column time=COLUMN --column client=COLUMN"
                raise UsageError(f"no column holds the {' or the '.join(needed)}", f"{fix}; {found}")
        for column in self.columns.values():
            if (count := names.count(column)) != 1:
                raise UsageError(
                    f"{file.name} has {f'{count} columns' if count else 'no column'} {column!r}", found
                )
        return Layout(**dict(self), bare=len(names) if is_bare else 0)


def read_mapping(path: Path) -> ColumnMapping:
    """Read a mapping from a TOML file."""
    read = read_toml(path, UsageError, "see https://toml.io")
    return ColumnMapping.read(read, str(path), fix="see diptych intent ingest --help")


class LogFormat(NamedTuple):
    """A format of logs."""

    name: str  # of ``--format``
    description: str
    layouts: tuple[Layout, ...]  # of its files: the first that fits counts
    notes: tuple[str, ...] = ()  # for readers of an imported log
    others: tuple[str, ...] = ()  # names, without endings, of files that come with the log and hold no events
    has_hours: bool = True  # whether its times are those of a clock

    def layout(self, file: SourceFile) -> Layout | None:
        """Return how a file is read, None where it is of another format."""
        return next(filter(None, (one.fitted(file) for one in self.layouts)), None)


_SHOP_LOG = {"client": "cookie", "visitor": "customer", "page_type": "page", "purchase": "purchased"}
_SHOP_LOG |= {
    one: one for one in ("time", "device", "channel", "country", "action", "query", "item", "price")
}
_SIGIR_TIME = {"time": "server_timestamp_epoch_ms", "client": "session_id_hash", "session": "session_id_hash"}
_DIGINETICA = {"session": "sessionId", "client": "sessionId", "visitor": "userId", "day": "eventdate"}
_DIGINETICA |= {"since": "timeframe|timeframe_ms"}
_DIGINETICA_TIME = "CAST(iso_us({day}) + unix_us({since}, 1e3) AS VARCHAR)"
_SESSION = "session_id|session"
_YOOCHOOSE = {"session": _SESSION, "client": _SESSION, "time": "timestamp|time", "item": "item_id|item"}
_YOOCHOOSE_BARE = {"session": "1", "client": "1", "time": "2", "item": "3"}
_CATEGORY = ("category", "categoryid", "cat")
_PRODUCT, _BOUGHT = {"page_type": "product"}, {"page_type": "product", "action": "purchase"}
_PRICE = {"price": "nullif({price}, '0')"}  # 0 stands for a price that is not known

LOG_FORMATS = (
    LogFormat(
        "shop-log",
        "a generated shop log: the folder that diptych data shop-log made",
        (Layout(_SHOP_LOG, time_format="iso"),),
    ),
    # M. Kechinov, eCommerce behavior data from multi category store, REES46 Marketing Platform, 2019 (Kaggle).
    LogFormat(
        "rees46",
        "events of REES46 shops (Kaggle): view, cart, remove_from_cart, purchase",
        (
            Layout(
                {
                    **{
                        "time": "event_time",
                        "client": "user_id",
                        "visitor": "user_id",
                        "session": "user_session",
                    },
                    **{"action": "event_type", "item": "product_id", "price": "price"},
                },
                constants=_PRODUCT,
                time_format="iso",
            ),
        ),
        notes=("every event has a user, so every session is identified; only product pages are logged",),
    ),
    # Tagliabue et al., SIGIR 2021 E-Commerce Workshop Data Challenge, 2021. A product's page is there twice, as a
    # detail of the product and as a page view; the latter is dropped as a twin. Queries are vectors: the first digits
    # of their MD5 stand for what was typed, so that equal queries are equal.
    LogFormat(
        "sigir",
        "Coveo's log of the SIGIR eCom 2021 challenge: browsing_train.csv and search_train.csv, or their folder",
        (
            Layout(
                {
                    **_SIGIR_TIME,
                    **{"event": "event_type", "product": "product_action"},
                    **{"item": "product_sku_hash", "address": "hashed_url"},
                },
                values={"action": {"other": ["click"]}},
                sql={
                    "action": "coalesce({product}, {event})",
                    "page_type": "CASE WHEN {product} = 'detail' THEN 'product' ELSE 'page' END",
                    "is_twin": "{product} IS NULL",
                },
                time_format="unix-ms",
            ),
            Layout(
                {**_SIGIR_TIME, "vector": "query_vector"},
                constants={"action": "query"},
                sql={"query": "left(md5({vector}), 16)"},
                time_format="unix-ms",
            ),
        ),
        notes=(
            "a client is a session; times are shifted by an unknown number of weeks; a query is its vector's MD5",
        ),
        others=("sku_to_content",),
    ),
    # CIKM Cup 2016 Track 2, Personalized E-Commerce Search Challenge. A time is a day and the milliseconds since the
    # session began; when in the day it began is not published. Queries without words are pages of a category. Clicks
    # on results are views as well and are left out.
    LogFormat(
        "diginetica",
        "views, queries and purchases of the CIKM Cup 2016: give the files, or their folder",
        (
            Layout(
                {**_DIGINETICA, "query": "searchstring.tokens"},
                constants={"page_type": "category"},
                sql={"time": _DIGINETICA_TIME, "query": "nullif({query}, 'NA')"},
                time_format="unix-us",
            ),
            Layout(
                {**_DIGINETICA, "order": "ordernumber", "item": "itemId"},
                constants=_BOUGHT,
                sql={"time": _DIGINETICA_TIME},
                time_format="unix-us",
            ),
            Layout(
                {**_DIGINETICA, "item": "itemId"},
                constants=_PRODUCT,
                sql={"time": _DIGINETICA_TIME},
                time_format="unix-us",
            ),
        ),
        notes=(
            "a client is a session; each is taken to begin at midnight of its day in the zone of --times-in, for hours "
            "and zone are not published: hours of the day say nothing",
        ),
        others=("products", "product-categories", "train-clicks"),
        has_hours=False,
    ),
    # Ben-Shimon et al., RecSys Challenge 2015 and the YOOCHOOSE Dataset, RecSys 2015: as published, without names of
    # columns, or excerpts with them, whose times often are seconds since 1970.
    LogFormat(
        "yoochoose",
        "clicks and buys of the RecSys Challenge 2015: give both files, or their folder",
        (
            Layout(_YOOCHOOSE_BARE | {"price": "4"}, constants=_BOUGHT, sql=_PRICE, bare=5),
            Layout(_YOOCHOOSE_BARE, constants=_PRODUCT, bare=4),
            Layout(
                _YOOCHOOSE | {"price": "price"},
                constants=_BOUGHT,
                sql=_PRICE,
                others=(*_CATEGORY, "quantity"),
            ),
            Layout(_YOOCHOOSE, constants=_PRODUCT, others=(*_CATEGORY, "quantity")),
        ),
        notes=("a client is a session; only clicks on items are pages",),
        others=("dataset-readme", "yoochoose-test"),
    ),
    LogFormat(
        "columns",
        "your own CSV, TSV, JSON lines or Parquet: name its columns with --column or --mapping",
        tuple(
            Layout({one: one for one in TARGETS}, optional={*TARGETS} - {"time", person})
            for person in ("client", "visitor")
        ),
    ),
)
"""In the order in which they are tried; a file of several is of the first."""


# SQL of rows.


def identifier(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + _whole(name).replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + _whole(text).replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Return texts in single quotes, separated by commas."""
    return ", ".join(map(literal, texts))


def _whole(text: str) -> str:
    if "\0" in text:
        raise UsageError("a name or value holds a NUL character", "leave it out")
    return text


def choose(value: str, *words: Mapping[str, Iterable[str]], otherwise: str = "NULL") -> str:
    """Return SQL of what a value means: the key under which the first of ``words`` lists it, in any capitals."""
    meanings: dict[str, str] = {}
    for listed in words:
        for meaning, spellings in listed.items():
            for word in spellings:
                meanings.setdefault(word.lower(), meaning)
    # One by one: for a list of many words DuckDB would plan a join.
    cases = [f"WHEN {literal(word)} THEN {literal(meaning)}" for word, meaning in meanings.items()]
    return f"CASE lower({value}) {' '.join(cases)} ELSE {otherwise} END" if cases else otherwise


TIME_FORMATS = {
    "auto": "auto_us({})",  # seconds, milli-, micro- or nanoseconds since 1970, by their size; all else is iso
    "iso": "iso_us({})",  # ISO 8601, also with a blank in the middle, with an offset, Z, UTC, GMT or no zone
    "unix": "unix_us({}, 1e6)",
    "unix-ms": "unix_us({}, 1e3)",
    "unix-us": "unix_us({}, 1e0)",
}
"""Name → SQL of microseconds since 1970 UTC. Anything with a ``%`` in it is a format of ``strptime``.

A time that names no zone is in the zone the database was opened with. In an hour that the clocks repeat it is the
later one, and a note counts them; one that the clocks skipped is what it would have been without the change.
"""


def read_time(text: str, time_format: str) -> str:
    """Return SQL of microseconds since 1970 UTC, NULL where the text is no time."""
    if "%" in time_format:
        return f"epoch_us(CAST(TRY_STRPTIME({text}, {literal(time_format)}) AS TIMESTAMPTZ))"
    if time_format not in TIME_FORMATS:
        known = f"{', '.join(TIME_FORMATS)}, or one of strptime such as '%d/%m/%Y %H:%M'"
        raise UsageError(f"there is no time format {time_format!r}", known)
    return TIME_FORMATS[time_format].format(text)


MACROS = (
    # Blanks and tabs at the ends are cut; nothing left is nothing. Asking first is five times as fast as cutting.
    """trimmed(x) AS nullif(CASE WHEN prefix(x, ' ') OR suffix(x, ' ') OR prefix(x, chr(9)) OR suffix(x, chr(9))
       THEN trim(x, ' ' || chr(9)) ELSE x END, '')""",
    """unquoted(x) AS CASE WHEN prefix(x, '"') AND suffix(x, '"') AND length(x) > 1
       THEN replace(substring(x, 2, length(x) - 2), '""', '"') ELSE x END""",
    f"identity_of(x) AS CASE x {' '.join(f'WHEN {literal(word)} THEN NULL' for word in MISSING_WORDS)} ELSE x END",
    # A zone by name must not get to the cast: DuckDB 1.5 would read later times without one in that zone. So UTC
    # becomes Z, and in a second attempt what is ISO 8601 too: small letters, a decimal comma, no seconds.
    r"""mended(x) AS regexp_replace(regexp_replace(regexp_replace(replace(upper(x), ',', '.'),
         ' *(Z|UTC|GMT)$', 'Z'), '([0-9]) +([-+])', '\1\2'), '([T ][0-9]{2}:[0-9]{2})(Z|[-+])', '\1:00\2')""",
    """iso_us(x) AS epoch_us(coalesce(
         CASE WHEN regexp_full_match(x, '[-0-9T:.+ /]*(?:Z| UTC)?')
         THEN TRY_CAST(CASE WHEN suffix(x, ' UTC') THEN left(x, -4) || 'Z' ELSE x END AS TIMESTAMPTZ) END,
         CASE WHEN regexp_full_match(x, '(?i)[-0-9T:.,+ /]*(?:Z|UTC|GMT)?')
         THEN TRY_CAST(mended(x) AS TIMESTAMPTZ) END))""",
    "unix_us(x, factor) AS TRY_CAST(round(TRY_CAST(x AS DOUBLE) * factor) AS BIGINT)",
    # A number below the first bound is seconds (to the year 5138), below the second milliseconds, and so on.
    """sized_us(x, size) AS CASE WHEN size IS NULL THEN iso_us(x) WHEN size < 1e11 THEN unix_us(x, 1e6)
       WHEN size < 1e14 THEN unix_us(x, 1e3) WHEN size < 1e17 THEN unix_us(x, 1e0)
       ELSE TRY_CAST(x AS BIGINT) // 1000 END""",
    "auto_us(x) AS sized_us(x, abs(TRY_CAST(x AS DOUBLE)))",
    # Behind a colon a sign belongs to an offset, before it to a date.
    """zoneless(x) AS NOT suffix(x, 'Z') AND TRY_CAST(x AS DOUBLE) IS NULL
       AND NOT regexp_matches(x, '(?i)(?:Z|UTC|GMT)$|:.*[-+]')""",
    "bucket_of(x, n) AS ('0x' || left(md5(x), 8))::UINTEGER % n",
)
"""Functions that the SQL here needs."""

REJECTED = "SELECT count(DISTINCT (scan_id, file_id, line)) FROM reject_errors"
"""Of all text that was read so far: lines that never became rows, for their bytes are not UTF-8 or they are
longer than two megabytes."""

VISITOR_CLIENT = "visitor:"
"""A visitor without a client is a client of this name and the visitor's."""


def canonical_sql(file: SourceFile, layout: Layout, first_number: int) -> str:
    """Return SQL of a file's rows: columns of the table, what rules look at beside them, and marks."""
    taken = {column: f"text_{number}" for number, column in enumerate(dict.fromkeys(layout.columns.values()))}
    given = {target: taken[column] for target, column in layout.columns.items()}
    given |= {target: literal(value) for target, value in layout.constants.items()}
    for target, sql in layout.sql.items():
        given[target] = sql.format_map(given)
    given["said"], given["written"] = given.get("action", "NULL"), given["time"]
    is_typed = layout.columns.get("time") in file.timed
    time_format = "iso" if is_typed else layout.time_format
    given["time"] = read_time(given["time"], time_format)
    for target in _IDENTITIES:
        for word in layout.missing:
            given[target] = f"nullif({given.get(target, 'NULL')}, {literal(word)})"
    for target in given.keys() & {*_CONSTANT}:
        given[target] = choose(given[target], layout.values.get(target, {}), otherwise=given[target])
    if "action" in given:
        given["action"] = choose(given["said"], layout.values.get("action", {}), ACTION_WORDS)
    else:
        given["action"] = f"CASE WHEN {given.get('query', 'NULL')} IS NULL THEN 'page' ELSE 'query' END"
    yes = {"yes": layout.values.get("purchase", {}).get("yes", YES_WORDS)}
    given["purchase"] = f"{choose(given.get('purchase', 'NULL'), yes)} = 'yes'"
    parts = (*TARGETS, "is_twin", "said", "written")
    texts = ", ".join(f"{given.get(part, 'NULL')} AS given_{part}" for part in parts)
    identities = ", ".join(f"identity_of(given_{part}) AS {part}_identity" for part in _IDENTITIES)
    rows = _rows_sql(file, taken, layout.bare > 0, first_number)
    device = choose("given_device", DEVICE_WORDS, otherwise="lower(given_device)")
    if "%" in time_format:
        zoneless = "false" if "%z" in time_format.lower() else "true"
    else:
        zoneless = "zoneless(given_written)" if time_format in ("auto", "iso") else "false"
    # Literal NULLs would have no type: as texts they have.
    return f"""
        SELECT
            event_id,
            coalesce(client_identity, {literal(VISITOR_CLIENT)} || visitor_identity)::VARCHAR AS client_id,
            visitor_identity::VARCHAR AS visitor_id,
            session_identity::VARCHAR AS given_session,
            given_time::BIGINT AS t_us,
            coalesce({device}, {literal(UNKNOWN)})::VARCHAR AS device,
            coalesce(lower(given_channel), {literal(UNKNOWN)})::VARCHAR AS channel,
            CASE WHEN regexp_full_match(given_country, '[A-Za-z][A-Za-z]') THEN upper(given_country) END AS country,
            given_action::VARCHAR AS action,
            CASE WHEN given_action = 'page' THEN given_page_type END::VARCHAR AS page_type,
            given_query::VARCHAR AS query,
            item_identity::VARCHAR AS item_id,
            CASE WHEN isfinite(number) THEN number END AS price,
            coalesce(given_action = 'purchase' OR given_purchase, false) AS is_purchase,
            given_address::VARCHAR AS address,
            coalesce(given_is_twin, false) AS is_twin,
            readable,
            given_said::VARCHAR AS said,
            given_written::VARCHAR AS written,
            given_agent::VARCHAR AS agent,
            out_of_order,
            client_identity IS NULL AND visitor_identity IS NOT NULL AS visitor_clients,
            given_country IS NOT NULL AND country IS NULL AS bad_countries,
            given_price IS NOT NULL AND price IS NULL AS bad_prices,
            coalesce({zoneless}, false) AS zoneless
        FROM (
            SELECT *, {identities}, TRY_CAST(given_price AS DOUBLE) AS number
            FROM (
                SELECT *, coalesce(given_time < lag(given_time) OVER (), false) AS out_of_order
                FROM (SELECT event_id, readable, {texts} FROM ({rows}))
            )
        )"""


def _rows_sql(file: SourceFile, taken: Mapping[str, str], is_bare: bool, first_number: int) -> str:
    """Return SQL of ``event_id`` from ``first_number`` on, ``readable``, and the texts ``taken``."""
    path = literal(str(file.path.resolve()))
    if file.kind == "parquet":
        texts = ", ".join(f"CAST({identifier(one)} AS VARCHAR) AS {alias}" for one, alias in taken.items())
        source = f"read_parquet({path}, hive_partitioning = false, binary_as_string = true)"
        number = f"row_number() OVER () - 1 + {first_number}"
        rows = f"SELECT {number} AS event_id, true AS readable, {texts} FROM {source}"
    else:
        rows = _lines_sql(file, path, taken, is_bare, first_number)
    # Every step is a query of its own: nested, each would be computed many times over.
    for step in ("trimmed", "unquoted", "trimmed") if file.kind == "text" else ("trimmed",):
        texts = ", ".join(f"{step}({alias}) AS {alias}" for alias in taken.values())
        rows = f"SELECT event_id, readable, {texts} FROM ({rows})"
    return rows


def _lines_sql(
    file: SourceFile, path: str, taken: Mapping[str, str], is_bare: bool, first_number: int
) -> str:
    if file.kind == "json":
        pointers = literals(file.pointers[column] for column in taken)
        fields = f"""CASE WHEN prefix(ltrim(line), '{{') AND json_valid(line)
            THEN json_extract_string(line, [{pointers}]) END"""
        places = {column: 1 + number for number, column in enumerate(taken)}
        count, skipped = len(taken), 0
    else:
        fields, count, skipped = _fields_sql(file.delimiter), len(file.names), int(not is_bare)
        places = {column: int(column) if is_bare else 1 + file.names.index(column) for column in taken}
    texts = ", ".join(f"fields[{places[one]}] AS {alias}" for one, alias in taken.items())
    packed = "gzip" if file.gzipped else "none"
    # NUL is the delimiter, so whatever is in the second column says that there was one.
    lines = f"""read_csv({path}, auto_detect = false, header = false, delim = chr(0), quote = '', escape = '',
        comment = '', nullstr = chr(1), columns = {{'line': 'VARCHAR', 'rest': 'VARCHAR'}}, null_padding = true,
        strict_mode = false, store_rejects = true, rejects_limit = 0, compression = '{packed}',
        hive_partitioning = false)"""
    return f"""
        SELECT number + {first_number} AS event_id, readable, {texts}
        FROM (
            SELECT *, coalesce(len(fields) = {count}, false) AS readable
            FROM (
                SELECT number, CASE WHEN line IS NOT NULL AND rest IS NULL THEN {fields} END AS fields
                FROM (
                    SELECT row_number() OVER () - {1 + skipped} AS number, line, rest
                    FROM {lines}
                    WHERE line IS NULL OR rest IS NOT NULL OR NOT prefix(line, ' ') OR trim(line, ' ') <> ''
                )
                WHERE number >= 0
            )
        )"""


def _fields_sql(delimiter: str) -> str:
    """Return SQL of the fields of ``line``, NULL where a quotation mark is where none may be."""
    apart, other = literal(delimiter), delimiter.replace("|", r"\|").replace("\t", r"\t")

    def pattern(inside: str) -> str:
        field = f'(?: *"(?:{inside}|"")*" *| *[^" {other}][^{other}]*| *)'
        return literal(f"{field}(?:{other}{field})*")

    # Cut at quotation marks, every second piece was inside: only outside of it a delimiter divides.
    divided = f"""array_to_string(list_transform(string_split(line, '"'),
        lambda piece, place: CASE WHEN place % 2 = 1 THEN replace(piece, {apart}, chr(0)) ELSE piece END), '"')"""
    simple, general = pattern(f'[^"{delimiter}]'), pattern('[^"]')
    return f"""CASE
        WHEN NOT contains(line, '"') OR regexp_full_match(line, {simple}) THEN string_split(line, {apart})
        WHEN regexp_full_match(line, {general}) THEN string_split({divided}, chr(0)) END"""
