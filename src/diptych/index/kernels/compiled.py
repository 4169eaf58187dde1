"""Gather the compiled functions; importing this module compiles them (:func:`diptych.index.kernels.load_kernels`)."""

from __future__ import annotations

from diptych.index.kernels.prepare import MOST_TERMS, fill, frequencies, prepare
from diptych.index.kernels.rows import best_of_all, rescore
from diptych.index.kernels.scan import scan

__all__ = ["MOST_TERMS", "best_of_all", "fill", "frequencies", "prepare", "rescore", "scan"]
