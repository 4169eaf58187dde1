"""Compilation of the kernels: without Python's lock, kept on disk where that is possible."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

F = TypeVar("F", bound=Callable[..., Any])


def jit(*signature: Any, inline: bool = False) -> Callable[[F], F]:
    """Compile a function for one signature (result first), at once; without one, into its callers.

    Fused multiply-adds and other orders of summation are not allowed: a score must not depend on where in
    memory a vector stands.
    """
    signatures = [signature[0](*signature[1:])] if signature else []

    def compile_it(function: F) -> F:
        options = {"nogil": True, "error_model": "numpy", "inline": "always" if inline else "never"}
        try:
            return numba.njit(*signatures, cache=True, **options)(function)  # type: ignore[no-any-return]
        except (OSError, RuntimeError) as error:
            # Neither the package's folder nor the person's cache folder can be written, or a disk is full.
            if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
                raise
        return numba.njit(*signatures, **options)(function)  # type: ignore[no-any-return]

    return compile_it


def forget_stale(folder: Path) -> None:
    """Delete what Numba keeps of the kernels in ``folder`` when one of them has changed since.

    Numba itself compares only the file that a function is in, not those of the functions it calls.
    """
    newest = max(path.stat().st_mtime for path in folder.glob("*.py"))
    for kept in (folder / "__pycache__").glob("*.nbi"):
        with suppress(OSError):  # another process was first, or an installed folder cannot be written
            if kept.stat().st_mtime < newest:
                kept.unlink()


def mapped(kind: Any, dimensions: int = 1) -> Any:
    """The type of an array that is only read, so that a memory map needs no compilation of its own."""
    return types.Array(kind, dimensions, "C", readonly=True)


Array = np.ndarray

# Sparse rows: where each begins, columns, weights.
ROWS = types.Tuple((mapped(types.int64), mapped(types.int32), mapped(types.float32)))
Rows = tuple[Array, Array, Array]

# Prepared queries: rows, weights and ends of hubs; numbers, weights and ends of lists; see :mod:`prepare`.
_HUBS = types.int64[::1], types.uint16[::1], types.int64[::1]
_LISTS = types.int32[::1], types.uint32[::1], types.int64[::1]
PREPARED = types.Tuple((*_HUBS, *_LISTS, types.float64[::1], types.boolean[::1]))
Prepared = tuple[Array, Array, Array, Array, Array, Array, Array, Array]
