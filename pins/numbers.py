"""Records of numbers: made of arrays, stored as JSON, compared value by value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

RELATIVE = 0.02
ABSOLUTE = 0.02
"""Tolerances on another architecture or with other library versions, where last bits differ and training drifts."""

_LEADING = 6
_DIGEST = "blake2b"
_DIGESTS = (_DIGEST, "all")  # of arrays, and of texts of many numbers
_NUMBER = re.compile(r"[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?|\bnan\b|[✓✗▲▼↓↑]")


def digest(array: Any) -> str:
    """A short name of an array by its bytes, little-endian in C order."""
    values = np.ascontiguousarray(array)
    values = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return blake2b(values.tobytes(), digest_size=12).hexdigest()


def text_digest(text: str) -> str:
    """A short name of a text."""
    return blake2b(text.encode(), digest_size=12).hexdigest()


def record(array: Any) -> dict[str, Any]:
    """A long array in short: its shape, a digest of its bytes, and its first values and sum for diagnosis."""
    values = np.asarray(array)
    return {
        "shape": list(values.shape),
        "dtype": values.dtype.name,
        _DIGEST: digest(values),
        "first": plain(values.ravel()[:_LEADING].tolist()),
        "sum": plain(float(values.sum(dtype=np.float64))),
    }


def plain(value: Any) -> Any:
    """The value as JSON can hold it: NumPy's scalars as Python's, what is not finite as text."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a pin cannot hold {type(value).__name__}")


def numbers_in(text: str) -> list[str]:
    """The numbers and marks of a text as they are printed, so that its words may change."""
    return _NUMBER.findall(text)


def differences(stored: Any, measured: Any, exact: bool, where: str = "") -> Iterator[str]:
    """What differs, one line per value.

    Args:
        exact: bit for bit; else digests are not compared and numbers may differ by the tolerances above.
    """
    if isinstance(stored, dict) and isinstance(measured, dict):
        for key in [*stored, *(key for key in measured if key not in stored)]:
            inner = f"{where} / {key}" if where else str(key)
            if key not in measured:
                yield f"{inner}: is missing, stored {_short(stored[key])}"
            elif key not in stored:
                yield f"{inner}: is new, {_short(measured[key])}"
            elif exact or key not in _DIGESTS:
                yield from differences(stored[key], measured[key], exact, inner)
        return
    if isinstance(stored, list) and isinstance(measured, list):
        if len(stored) != len(measured):
            yield f"{where}: {len(stored)} values stored, {len(measured)} measured"
            return
        for place, (one, other) in enumerate(zip(stored, measured, strict=True)):
            yield from differences(one, other, exact, f"{where}[{place}]")
        return
    if not _same(stored, measured, exact):
        yield f"{where}: stored {_short(stored)}, measured {_short(measured)}{_gap(stored, measured)}"


def _same(stored: Any, measured: Any, exact: bool) -> bool:
    if _is_number(stored) and _is_number(measured):
        if exact:
            return bool(stored == measured)
        return math.isclose(stored, measured, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return type(stored) is type(measured) and bool(stored == measured)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _gap(stored: Any, measured: Any) -> str:
    if _is_number(stored) and _is_number(measured):
        return f" (by {measured - stored:.3g})"
    return ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
