"""Compiled loops of the sparse engines: imported through :func:`load_kernels` when a search needs them."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

from diptych.core.context import task
from diptych.core.extras import require

__all__ = ["GROUP", "can_compile", "kernels_loaded", "load_kernels"]

# Documents whose sums are held in registers, and of which it is known what each frequent term adds at most.
GROUP = 128

_COMPILED = "diptych.index.kernels.find"


def can_compile() -> bool:
    """Return whether Numba is installed; exact sparse search does without it, over a hundred times slower."""
    return importlib.util.find_spec("numba") is not None


def kernels_loaded() -> bool:
    return _COMPILED in sys.modules


def load_kernels() -> Any:
    """The module of compiled functions; the first time on a machine it takes seconds, later Numba's cache does.

    Importing it is what compiles, so it is not to be imported at the top of a file.
    """
    if kernels_loaded():
        return importlib.import_module(_COMPILED)  # which waits where another thread is still compiling
    require("numba", purpose="this engine")
    with task("compiling the sparse engine (once per machine)"):
        jit: Any = importlib.import_module("diptych.index.kernels.jit")
        jit.forget_stale(Path(__file__).parent)
        return importlib.import_module(_COMPILED)
