"""Amounts of memory as people write them."""

from __future__ import annotations

import re

from diptych.core.errors import UsageError

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def mebibytes(text: str) -> int:
    """Parse ``"1GB"``, ``"700 MB"``, ``"2GiB"`` as whole MiB, at least 1; a unit always counts 1024."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:I?B)?\s*", text.upper())
    if found is None or not float(found[1]):
        raise UsageError(f"the memory limit is {text!r}", "an amount and a unit, e.g. 1GB or 700MB")
    return max(1, int(float(found[1]) * 1024 ** (_UNITS[found[2]] - 2)))
