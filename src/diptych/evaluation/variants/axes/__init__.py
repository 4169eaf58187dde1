"""The axes, one file each; importing a file declares its axis."""

from __future__ import annotations

from diptych.evaluation.variants.axis import AXES

__all__ = ["AXES"]
