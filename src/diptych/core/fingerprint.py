"""Short names for content: what a cache is keyed by and what a number carries with it."""

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


def _digest(pieces: Iterable[Any]) -> str:
    hasher = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def fingerprint(*values: Any) -> str:
    """16 hexadecimal digits of JSON-able ``values``; equal values give equal fingerprints.

    An iterator counts as the list of what it gives; it is gone through and never held.
    """

    def pieces() -> Iterator[str]:
        for value in values:
            yield from _list_pieces(value) if isinstance(value, Iterator) else (_json(value),)
            yield "\0"

    return _digest(piece.encode(errors=_HALVES) for piece in pieces())


def _list_pieces(values: Iterator[Any]) -> Iterator[str]:
    before = "["
    while block := list(islice(values, _BLOCK)):
        yield before + _json(block)[1:-1]
        before = ", "
    yield "[]" if before == "[" else "]"


def fingerprint_bytes(content: bytes) -> str:
    return _digest([content])


def fingerprint_arrays(arrays: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    """Fingerprint of named arrays (NumPy or CPU tensors): names, types, shapes and bytes."""
    import numpy as np

    def pieces() -> Iterator[Any]:
        items = arrays.items() if isinstance(arrays, Mapping) else arrays
        for name, array in sorted(items, key=lambda item: item[0]):
            array = np.ascontiguousarray(array)
            yield f"{name}:{array.dtype.str}:{array.shape}\0".encode()
            yield array.view(np.uint8).reshape(-1).data

    return _digest(pieces())


def fingerprint_file(path: Path | str) -> str:
    """Fingerprint of a regular file's bytes, read in blocks; OSError at once for a device or a pipe."""
    with open_regular(path) as handle:
        return fingerprint_stream(handle)


def fingerprint_stream(handle: BinaryIO) -> str:
    return _digest(iter(lambda: handle.read(1 << 20), b""))
