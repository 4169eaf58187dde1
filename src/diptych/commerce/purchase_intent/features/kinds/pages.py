"""How many pages are open by now.

All sessions of one step have the same number, so a model of that step alone learns nothing from it; it is there
because the thesis lists it, and for models of several steps.
"""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.plain import Plain
from diptych.commerce.purchase_intent.features.view import NO_PAGE, SessionsView

__all__ = ["PAGES"]


def _pages(view: SessionsView) -> np.ndarray:
    counts: np.ndarray = (view.page_types != NO_PAGE).sum(axis=1)
    return counts


_PAGES = Plain(("pages",), _pages)

PAGES = FEATURES.add(
    Feature(
        name="pages",
        label="number of pages",
        description="pages opened by now, which is the step: the same for all sessions of one step",
        group="session",
        dynamic=True,
        baseline=True,
        columns=(),
        fit=_PAGES.fit,
        load=_PAGES.load,
    )
)
