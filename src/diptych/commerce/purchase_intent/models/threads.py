"""One thread for fits and scores: sums in one order give the same bits on every machine and in every process."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from diptych.core.extras import require

_COMPUTING = ("scipy.linalg", "sklearn.ensemble")
"""Modules that load BLAS and OpenMP as the models use them."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread inside the block."""
    with _controller().limit(limits=1):
        yield


@cache
def _controller() -> Any:
    """Looks once at which libraries are loaded: that takes as long as a score."""
    library = require("threadpoolctl", "commerce", "fitting models")
    for name in _COMPUTING:
        importlib.import_module(name)
    return library.ThreadpoolController()
