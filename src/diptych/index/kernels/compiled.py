"""All compiled functions; importing this module compiles them, see :func:`diptych.index.kernels.load_kernels`."""

from __future__ import annotations
