"""Pieces of SQL, put together without ever pasting in what a stranger wrote.

Names of columns and values of a log only ever go through :func:`identifier` and :func:`literal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from diptych.core.errors import UsageError


def identifier(name: str) -> str:
    """A name in double quotes."""
    return '"' + _whole(name).replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in single quotes."""
    return "'" + _whole(text).replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Texts in single quotes, separated by commas."""
    return ", ".join(map(literal, texts))


def choose(value: str, words: Mapping[str, Iterable[str]], otherwise: str = "NULL") -> str:
    """What a value means: the key of ``words`` under which it is listed, in whatever capitals."""
    # One by one: for a list of many words DuckDB would plan a join.
    meanings = {word.lower(): meaning for meaning, said in [*words.items()][::-1] for word in said}
    cases = [f"WHEN {literal(word)} THEN {literal(meaning)}" for word, meaning in meanings.items()]
    return f"CASE lower({value}) {' '.join(cases)} ELSE {otherwise} END" if cases else otherwise


def _whole(text: str) -> str:
    if "\0" in text:
        raise UsageError("a name or value holds a NUL character", "leave it out")
    return text
