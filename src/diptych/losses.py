"""Losses by name, for ``import diptych as dp; dp.losses.InfoNCE(0.05)``; see :mod:`diptych.objectives`."""

from diptych.objectives import *  # noqa: F403
from diptych.objectives import __all__ as __all__
