"""The measures; importing a file declares its measures."""

from diptych.metrics.measuring import MEASURES

__all__ = ["MEASURES"]
