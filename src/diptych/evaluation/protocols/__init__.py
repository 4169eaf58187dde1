"""The protocols; importing a file declares its protocols."""

from __future__ import annotations

from diptych.evaluation.partitioning import PARTITIONS

__all__ = ["PARTITIONS"]
