"""Change: which queries a perturbation changed, and whether the encoder can tell.

Rows of the same text or picture differ in their last digits with the batch that they were encoded in. So a
changed query whose row lies within rounding of the clean one keeps the clean one: to the encoder it is the
same query, and it is counted. An encoder that does not see a change is then indifferent to it exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diptych.core.errors import Interrupted

ROUNDING = 2.0**-20
"""Rows of unit length that differ by no more than this in every number are the same row."""

Stop = Callable[[], bool]
"""Tells whether somebody asked to stop."""


@dataclass(frozen=True, eq=False)
class Change:
    """Which queries a perturbation changed.

    Attributes:
        changed: (n,) booleans.
        content: a fingerprint of the changed queries.
        options: what the perturbation was run with.
        reasons: how many queries stayed, by reason.
        texts: the changed texts in order, of captions.
    """

    changed: np.ndarray
    content: str
    options: Mapping[str, Any]
    reasons: Mapping[str, int]
    texts: Sequence[str] = field(default=())

    @property
    def places(self) -> np.ndarray:
        """(q,) which queries were changed."""
        return np.flatnonzero(self.changed)


def same_rows(rows: np.ndarray, clean: np.ndarray) -> np.ndarray:
    """(n,) booleans: which of (n, d) rows lie within rounding of the clean ones."""
    found: np.ndarray = (np.abs(rows - clean) <= ROUNDING).all(axis=1)
    return found


def check_stop(should_stop: Stop) -> None:
    """Stop where that was asked for."""
    if should_stop():
        raise Interrupted("stopped: every finished condition is kept", "the same command goes on")
