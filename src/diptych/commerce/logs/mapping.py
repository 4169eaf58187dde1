"""A user's own columns: which holds what, and what their values mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from diptych.commerce.logs.canonical import Given
from diptych.commerce.logs.rows import Row
from diptych.commerce.logs.schema import ACTION_WORDS, ACTIONS, YES_WORDS
from diptych.commerce.logs.source_files import SourceFile
from diptych.commerce.logs.sql import choose, literal, literals
from diptych.core.errors import UsageError
from diptych.core.reading import read_toml

TARGETS: Mapping[str, str] = {
    "time": "when, required",
    "client": "the browser, a cookie; it or visitor is required",
    "visitor": "the customer, where known",
    "session": "the log's own session",
    "device": "device type",
    "channel": "how the visitor came",
    "country": "two letters",
    "action": "what was done: "
    + ", ".join(ACTIONS)
    + "; without it a row is a query where it has one, else a page",
    "page_type": "of pages, e.g. home, search, product",
    "query": "what was typed",
    "item": "the product",
    "price": "of the item",
    "purchase": "whether something was bought, e.g. of pages that confirm it: yes, true or 1",
    "address": "of the page: tells events of different pages at the same time apart; it is not kept",
    "agent": "the browser's user agent, to tell bots; it is not kept",
}
"""What a column can hold."""

_VALUED = ("action", "device", "channel", "country", "page_type", "purchase")
_CONSTANT = ("action", "device", "channel", "country", "page_type")
_IDENTITIES = ("client", "visitor", "session", "item")
_FIRST = "name columns: --column time=COLUMN --column client=COLUMN"


@dataclass(frozen=True)
class ColumnMapping:
    """Which column holds what."""

    columns: Mapping[str, str]  # target → column; of a file without a header its number, from 1 on
    # target → meaning → the words for it, besides those that are known. What is nowhere listed stays as it is; an
    # action is then unknown, and dropped and counted
    values: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)  # target → the value of all events
    time_format: str = "auto"  # a name of ``TIME_FORMATS``, or a format of ``strptime``
    missing: tuple[str, ...] = ()  # identifiers that mean nobody, besides the usual ones such as ``null``

    def __post_init__(self) -> None:
        for what, given, allowed in (
            ("column", self.columns, tuple(TARGETS)),
            ("values", self.values, _VALUED),
            ("constant", self.constants, _CONSTANT),
        ):
            for target in given:
                if target not in allowed:
                    meanings = "; ".join(f"{name} ({TARGETS[name]})" for name in allowed)
                    raise UsageError(
                        f"{what} of {target!r}: there is nothing of this name", f"targets: {meanings}"
                    )
        both = sorted(set(self.columns) & set(self.constants))
        if both:
            raise UsageError(f"{both[0]} has a column and a constant", "give one of them")
        for action in (*self.values.get("action", {}), *filter(None, [self.constants.get("action")])):
            if action not in ACTIONS:
                raise UsageError(f"there is no action {action!r}", f"actions: {', '.join(ACTIONS)}")
        if not set(self.values.get("purchase", {})) <= {"yes"}:
            raise UsageError("values of purchase are listed under yes", "[values.purchase] yes = [...]")

    def given(self, file: SourceFile) -> Given:
        """Return what the rows of a file say."""
        row = self._row(file)
        texts = {target: row[column] for target, column in self.columns.items() if target != "time"}
        texts |= {target: literal(value) for target, value in self.constants.items()}
        said = texts.get("action", "NULL")
        purchase = texts.pop("purchase", "NULL")
        for target, text in texts.items():
            if target in _IDENTITIES and self.missing:
                texts[target] = f"CASE WHEN {text} NOT IN ({literals(self.missing)}) THEN {text} END"
            elif target in _VALUED:
                texts[target] = choose(text, self.values.get(target, {}), otherwise=text)
        if "action" in texts:
            texts["action"] = choose(said, _with(self.values.get("action", {}), ACTION_WORDS))
        elif "query" in texts:
            texts["action"] = f"CASE WHEN {texts['query']} IS NULL THEN 'page' ELSE 'query' END"
        yes = self.values.get("purchase", {}).get("yes", YES_WORDS)
        return Given(
            row,
            row.time(self.columns["time"], self.time_format),
            written=row[self.columns["time"]],
            **texts,
            said=said,
            purchase=f"{choose(purchase, {'yes': yes})} = 'yes'",
        )

    def _row(self, file: SourceFile) -> Row:
        named = set(self.columns.values()) <= set(file.first)
        numbered = all(column.isdigit() for column in self.columns.values())
        row = Row(file, header=named or not numbered)
        found = f"columns of {file.name}: {', '.join(row.columns)}"
        if "time" not in self.columns:
            raise UsageError("no column holds the time", f"{_FIRST}; {found}")
        if not {"client", "visitor"} & set(self.columns):
            raise UsageError("no column holds the client or the visitor", f"{_FIRST}; {found}")
        return row

    @classmethod
    def of(cls, columns: Sequence[str], file: Path | None, time_format: str | None) -> ColumnMapping | None:
        """Return what options name: ``target=column`` texts and a TOML file; None where they name no column."""
        if not columns and file is None:
            if time_format is not None:
                raise UsageError(
                    "--time-format is of your own columns", "name them with --column or --mapping"
                )
            return None
        found = (cls({}) if file is None else read_mapping(file)).with_columns(columns)
        return found if time_format is None else replace(found, time_format=time_format)

    def with_columns(self, options: Iterable[str]) -> ColumnMapping:
        """Return the same with further columns, each written ``target=column``."""
        more: dict[str, str] = {}
        for target, column in map(_pair, options):
            if more.setdefault(target, column) != column:
                raise UsageError(
                    f"{target} is in two columns, {more[target]} and {column}", "give one of them"
                )
        return replace(self, columns={**self.columns, **more})


def _with(
    first: Mapping[str, Iterable[str]], then: Mapping[str, Iterable[str]]
) -> dict[str, tuple[str, ...]]:
    """Words by meaning: those of ``first`` count, and those of ``then`` that it does not take."""
    taken = {word.lower() for words in first.values() for word in words}
    return {
        meaning: (
            *first.get(meaning, ()),
            *(word for word in then.get(meaning, ()) if word.lower() not in taken),
        )
        for meaning in dict.fromkeys([*first, *then])
    }


def _pair(option: str) -> tuple[str, str]:
    target, equals, column = option.partition("=")
    if not equals or not column:
        raise UsageError(
            f"{option!r} names no column", f"e.g. client=cookie_id; targets: {', '.join(TARGETS)}"
        )
    return target.strip(), column


# A mapping of columns from a TOML file.
#
# ::
#
#     time_format = "%d/%m/%Y %H:%M:%S"          # or auto, iso, unix, unix-ms, unix-us
#     missing = ["0", "anonymous"]               # identifiers that mean nobody
#
#     [columns]
#     client = "cookie_id"
#     time = "ts"
#     page_type = "page_template"
#
#     [values.action]
#     page = ["screen", "view"]
#     add = ["basket"]
#
#     [constants]
#     device = "smartphone"


def read_mapping(path: Path) -> ColumnMapping:
    """Read a mapping from a TOML file."""
    read = read_toml(path, UsageError, "see https://toml.io")
    known = ("columns", "values", "constants", "time_format", "missing")
    for key in read:
        if key not in known:
            raise UsageError(
                f"{path} has {key!r}, which is no part of a mapping", f"parts: {', '.join(known)}"
            )
    values = {
        target: {meaning: _texts(words, f"values.{target}.{meaning}") for meaning, words in meanings.items()}
        for target, meanings in _table(read, "values").items()
        if isinstance(meanings, dict) or _wrong(f"values.{target}", "a table")
    }
    return ColumnMapping(
        {target: _text(column, f"columns.{target}") for target, column in _table(read, "columns").items()},
        values,
        {target: _text(value, f"constants.{target}") for target, value in _table(read, "constants").items()},
        _text(read.get("time_format", "auto"), "time_format"),
        _texts(read.get("missing", []), "missing"),
    )


def _table(read: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = read.get(key, {})
    if not isinstance(value, dict):
        _wrong(key, "a table")
    return dict(value)


def _text(value: Any, key: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        _wrong(key, "a text")
    return str(value)


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        _wrong(key, "a list of texts")
    return tuple(_text(one, key) for one in value)


def _wrong(key: str, what: str) -> bool:
    raise UsageError(f"{key} of the mapping is not {what}", "see diptych intent ingest --help")
