"""A line that holds JSON, or what Python printed of a dict; nothing in it is ever run."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from diptych.core.errors import DataError

MAX_DEPTH = 32
"""Lists and dicts within each other; deeper lines are refused."""

MAX_LITERAL = 1 << 20
"""Characters of a line that is not JSON: a literal takes some hundred times its length while it is read."""

# A text that does not end is taken to the end of the line: what matches nothing would be tried from each of its quotes.
_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?""")
_REST = re.compile(
    r"(?:[\s,:\[\]{}()]|(?<![\w.])-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w.])|\b(?:True|False|None)\b)*"
)
_BRACKETS = re.compile(r"[\[\]{}()]")


def _check_depth(brackets: str, where: str) -> None:
    depth = 0
    for found in _BRACKETS.finditer(brackets):
        depth += 1 if found[0] in "[{(" else -1
        if depth > MAX_DEPTH:
            raise DataError(f"{where} is nested more than {MAX_DEPTH} deep", "fetch the file again")


def parse_line(line: str, where: str) -> Any:
    """The value of a line: JSON, else a literal of Python's.

    A literal is texts, numbers, True, False and None in lists, tuples and dicts; names, calls and sums are refused
    before anything parses them.
    """
    bare = _TEXT.sub("0", line)
    _check_depth(bare, where)
    try:
        return json.loads(line)
    except ValueError as error:
        not_json = error
    except RecursionError:
        raise DataError(f"{where} is nested too deep", "fetch the file again") from None
    if len(line) > MAX_LITERAL:
        raise DataError(
            f"{where} is not JSON ({not_json}), and with {len(line):,} characters too long for a literal",
            "fetch the file again",
        )
    if not _REST.fullmatch(_TEXT.sub(",", line)):
        raise DataError(
            f"{where} is neither JSON ({not_json}) nor a Python literal", "one record per line is expected"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of escapes that Python does not know: they stay as they are written
            return ast.literal_eval(line.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        what = type(error).__name__
        raise DataError(
            f"{where} is neither JSON ({not_json}) nor a Python literal ({what})",
            "one record per line is expected",
        ) from None
