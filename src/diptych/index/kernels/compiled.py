"""Gather the compiled functions; importing this module compiles them (:func:`diptych.index.kernels.load_kernels`)."""

from __future__ import annotations

from diptych.index.kernels.find import candidates, find  # noqa: F401
from diptych.index.kernels.prepare import MOST_TERMS, fill, frequencies  # noqa: F401
from diptych.index.kernels.rows import best_of_all, rescore  # noqa: F401
