"""Who is in the population of a setting and a step (thesis section 6.5.1).

Sessions have at least twelve pages: the last step and a buffer of two, so that nobody predicts at the very end.
The thesis leaves it at that; but a session of thirty pages whose purchase comes with the fifth tells a model of
step ten its outcome by the page that confirms it. So, by default, at step k only sessions are left whose first
purchase, if any, comes after k + 2 pages at least; and a session is identified at step k only if its visitor is
known by then: on arrival, or logged in before page k. ``compat="published"`` does neither: all sessions stay, and
who logs in at any page is identified from the beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.sessions.schema import BUFFER

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable

COMPATS = ("none", "published")


def is_undecided(pages_before_purchase: np.ndarray, step: int, compat: str = "none") -> np.ndarray:
    """(n,) bool: whether no purchase lies before the step and its buffer.

    Args:
        pages_before_purchase: (n,) float64, infinity where there was none.
    """
    if compat == "published":
        return np.ones(len(pages_before_purchase), dtype=bool)
    undecided: np.ndarray = pages_before_purchase >= step + BUFFER
    return undecided


def is_identified(pages_before_identified: np.ndarray, step: int, compat: str = "none") -> np.ndarray:
    """(n,) bool: whether the visitor is known once ``step`` pages are open.

    Args:
        pages_before_identified: (n,) float64, NaN where the visitor was never known.
    """
    before = pages_before_identified
    if compat == "published":
        known: np.ndarray = ~np.isnan(before)
        return known
    identified: np.ndarray = (before == 0) | (before < step)
    return identified


def count_populations(table: FeatureTable) -> list[dict[str, Any]]:
    """For every setting and step: sessions, purchases among them, and those left out for their early purchase."""
    rows = []
    for setting in table.settings:
        for step in table.steps:
            chosen = table.population(setting, step)
            in_setting = len(table)
            if not table.is_whole:
                identified = int(table.identified(step).sum())
                in_setting = identified if setting == "identified" else len(table) - identified
            rows.append(
                {
                    "setting": setting,
                    "step": step,
                    "sessions": len(chosen),
                    "purchases": int(table.labels[chosen].sum()),
                    "bought_too_early": in_setting - len(chosen),
                }
            )
    return rows
