"""How the kernels are compiled: without Python's lock, kept on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import types

__all__ = ["jit", "mapped"]

F = TypeVar("F", bound=Callable[..., Any])


def jit(*signature: Any, inline: bool = False) -> Callable[[F], F]:
    """Compile a function for one signature (result first), at once; without one, into its callers.

    Fused multiply-adds and other orders of summation are not allowed: a score must not depend on where in
    memory a vector stands.
    """
    wanted = [signature[0](*signature[1:])] if signature else []

    def compile_it(function: F) -> F:
        options = {"nogil": True, "error_model": "numpy", "inline": "always" if inline else "never"}
        try:
            return numba.njit(*wanted, cache=True, **options)(function)  # type: ignore[no-any-return]
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            # Neither the package's folder nor the person's cache folder can be written.
            return numba.njit(*wanted, **options)(function)  # type: ignore[no-any-return]

    return compile_it


def mapped(kind: Any, dimensions: int = 1) -> Any:
    """The type of an array that is only read, so that a memory map needs no compilation of its own."""
    return types.Array(kind, dimensions, "C", readonly=True)
