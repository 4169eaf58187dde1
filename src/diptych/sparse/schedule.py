"""How far a training's learning rates have risen or fallen, from the step alone."""

from __future__ import annotations

__all__ = ["rate_share"]


def rate_share(step: int, steps: int, warmup: int) -> float:
    """The share of its top that a learning rate has at a step counted from 0.

    It rises linearly and is 1 at step ``warmup``; from there it falls linearly, and would be 0 at
    ``steps``, the step after the last.
    """
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (steps - step) / (steps - warmup)
