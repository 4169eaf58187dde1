"""How long pages were looked at.

Page i is left when page i + 1 opens, so after k pages k − 1 dwell times are known: none before the second page.
"""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.plain import Plain
from diptych.commerce.purchase_intent.features.view import NO_PAGE, SessionsView
from diptych.data.logs.schema import SECOND

__all__ = ["DWELL_DEVIATION", "DWELL_MEAN"]


def _dwells(view: SessionsView) -> tuple[np.ndarray, np.ndarray]:
    """(n, steps − 1) seconds, 0 where there is none, and (n,) how many there are; NaN for none."""
    known = view.page_types[:, 1:] != NO_PAGE
    seconds = np.where(known, np.diff(view.page_times, axis=1), 0) / SECOND
    counts = known.sum(axis=1).astype(np.float64)
    counts[counts == 0] = np.nan
    return seconds, counts


def _mean(view: SessionsView) -> np.ndarray:
    seconds, counts = _dwells(view)
    mean: np.ndarray = seconds.sum(axis=1) / counts
    return mean


def _deviation(view: SessionsView) -> np.ndarray:
    seconds, counts = _dwells(view)
    mean = seconds.sum(axis=1) / counts
    apart = np.where(view.page_types[:, 1:] != NO_PAGE, seconds - mean[:, None], 0.0)
    deviation: np.ndarray = np.sqrt((apart**2).sum(axis=1) / counts)
    return deviation


_MEAN = Plain(("dwell-mean",), _mean)
_DEVIATION = Plain(("dwell-deviation",), _deviation)

DWELL_MEAN = FEATURES.add(
    Feature(
        name="dwell-mean",
        label="current page dwell time, mean",
        description="mean seconds from a page to the next, of pages that were left; none before the second page",
        group="session",
        dynamic=True,
        baseline=True,
        columns=(),
        fit=_MEAN.fit,
        load=_MEAN.load,
    )
)

DWELL_DEVIATION = FEATURES.add(
    Feature(
        name="dwell-deviation",
        label="current page dwell time, σ",
        description="standard deviation (of the population) of seconds from a page to the next; 0 for one of them",
        group="session",
        dynamic=True,
        baseline=True,
        columns=(),
        fit=_DEVIATION.fit,
        load=_DEVIATION.load,
    )
)
