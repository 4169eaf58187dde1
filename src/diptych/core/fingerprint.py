"""Short names for content: what a cache is keyed by and what a number carries with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["fingerprint", "fingerprint_arrays", "fingerprint_file"]

_DIGEST_BYTES = 8


def _hasher() -> Any:
    return hashlib.blake2b(digest_size=_DIGEST_BYTES)


def fingerprint(*values: Any) -> str:
    """16 hexadecimal digits of JSON-able ``values``; equal values give equal fingerprints."""
    hasher = _hasher()
    for value in values:
        hasher.update(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str).encode())
        hasher.update(b"\0")
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
    """Fingerprint of a file's bytes, read in blocks."""
    hasher = _hasher()
    with open(path, "rb") as handle:
        while block := handle.read(1 << 20):
            hasher.update(block)
    return str(hasher.hexdigest())
