"""Three parts of the sessions: to fit a model on, to calibrate it on, and to measure it on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.commerce.purchase_intent.splits.declaration import SplitInput
from diptych.core.draws import draw_uniform
from diptych.core.errors import UnknownNameError, UsageError

SPLIT_NAMES = ("time", "grouped")


@dataclass(frozen=True)
class Slices:
    """(n,) bool masks, disjoint.

    Attributes:
        fit: the model and its features learn from these.
        calibration: its probabilities are calibrated, and the threshold chosen, on these.
        holdout: it is measured on these, and learns nothing from them.
        split: how they were told apart: ``time`` or ``grouped``.
        note: what a reader has to know about it.
        ends: of ``time``: microseconds at which the first two end.
    """

    fit: np.ndarray
    calibration: np.ndarray
    holdout: np.ndarray
    split: str
    note: str
    ends: tuple[int, int] | None = None

    @property
    def n_left_out(self) -> int:
        """Sessions in none of them: they run across an end."""
        return int((~(self.fit | self.calibration | self.holdout)).sum())


def slices_of(
    given: SplitInput, *, split: str = "time", calibration: float = 0.2, holdout: float = 0.2, seed: int = 0
) -> Slices:
    """Cut all sessions in three, the same for every setting and step.

    ``time``: the earliest part is fitted on, the next one calibrated on, the last one measured on; a session has
    to end before its part does. ``grouped``: all sessions of a person are in one part, drawn at random; this is
    what happens, and is said, where all sessions begin at one time.

    Args:
        given: labels, persons and times, (n,).
    """
    if split not in SPLIT_NAMES:
        raise UnknownNameError("split of a scorer", split, SPLIT_NAMES)
    if not (calibration > 0 and holdout > 0 and calibration + holdout < 1):
        raise UsageError(
            f"calibration {calibration:g} and holdout {holdout:g} leave nothing to one of three parts",
            "both above 0, together below 1; e.g. 0.2 and 0.2",
        )
    n = len(given.start_us)
    first, second = round(n * (1 - calibration - holdout)), round(n * (1 - holdout))
    if split == "time" and n and given.start_us.min() < given.start_us.max():
        starts = np.sort(given.start_us)
        end, last = int(starts[first]), int(starts[min(second, n - 1)])
        return Slices(
            given.end_us < end,
            (given.start_us >= end) & (given.end_us < last),
            given.start_us >= last,
            "time",
            "the earliest sessions are fitted on, later ones calibrated on, the last ones measured on",
            (end, last),
        )
    note = "all sessions of a person are in one part, drawn at random"
    if split == "time":
        note = f"the sessions have no times to be told apart by, so that {note}"
    draws = draw_uniform(seed, given.persons)
    return Slices(
        draws < 1 - calibration - holdout,
        (draws >= 1 - calibration - holdout) & (draws < 1 - holdout),
        draws >= 1 - holdout,
        "grouped",
        note,
    )
