"""Gather the compiled functions; importing this module compiles them (:func:`diptych.index.kernels.load_kernels`)."""

from __future__ import annotations

from diptych.index.kernels.prepare import MOST_TERMS as MOST_TERMS
from diptych.index.kernels.prepare import fill as fill
from diptych.index.kernels.prepare import frequencies as frequencies
from diptych.index.kernels.prepare import prepare as prepare
from diptych.index.kernels.rows import best_of_all as best_of_all
from diptych.index.kernels.rows import rescore as rescore
from diptych.index.kernels.scan import scan as scan
