"""The measures, one file each; importing a file declares its measures."""

from __future__ import annotations

from diptych.metrics.measuring import MEASURES

__all__ = ["MEASURES"]
