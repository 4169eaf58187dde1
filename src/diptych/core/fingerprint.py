"""Short names for content: what a cache is keyed by and what a number carries with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from diptych.core.reading import open_regular

_DIGEST_BYTES = 8
_BLOCK = 4096
# What a text from elsewhere may hold, half a character, counts like any other.
_HALVES = "surrogatepass"


def _hasher() -> Any:
    return hashlib.blake2b(digest_size=_DIGEST_BYTES)


def fingerprint(*values: Any) -> str:
    """16 hexadecimal digits of JSON-able ``values``; equal values give equal fingerprints.

    An iterator counts as the list of what it gives; it is gone through and never held.
    """
    hasher = _hasher()
    for value in values:
        if isinstance(value, Iterator):
            _update_list(hasher, value)
        else:
            hasher.update(
                json.dumps(value, sort_keys=True, ensure_ascii=False, default=str).encode(errors=_HALVES)
            )
        hasher.update(b"\0")
    return str(hasher.hexdigest())


def fingerprint_lists(*lists: Iterable[Any]) -> str:
    """The :func:`fingerprint` of lists of JSON-able values, which are gone through and never held."""
    return fingerprint(*map(iter, lists))


def _update_list(hasher: Any, values: Iterator[Any]) -> None:
    hasher.update(b"[")
    comma = ""
    while block := list(islice(values, _BLOCK)):
        text = json.dumps(block, sort_keys=True, ensure_ascii=False, default=str)
        hasher.update((comma + text[1:-1]).encode(errors=_HALVES))
        comma = ", "
    hasher.update(b"]")


def fingerprint_bytes(content: bytes) -> str:
    hasher = _hasher()
    hasher.update(content)
    return str(hasher.hexdigest())


def fingerprint_arrays(arrays: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    """Fingerprint of named arrays (NumPy or CPU tensors): names, types, shapes and bytes."""
    import numpy as np

    hasher = _hasher()
    items = arrays.items() if isinstance(arrays, Mapping) else arrays
    for name, array in sorted(items, key=lambda item: item[0]):
        array = np.ascontiguousarray(array)
        hasher.update(f"{name}:{array.dtype.str}:{array.shape}\0".encode())
        hasher.update(array.view(np.uint8).reshape(-1).data)
    return str(hasher.hexdigest())


def fingerprint_file(path: Path | str) -> str:
    """Fingerprint of a regular file's bytes, read in blocks; OSError at once for a device or a pipe."""
    with open_regular(path) as handle:
        return fingerprint_stream(handle)


def fingerprint_stream(handle: BinaryIO) -> str:
    hasher = _hasher()
    while block := handle.read(1 << 20):
        hasher.update(block)
    return str(hasher.hexdigest())
