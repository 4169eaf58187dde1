"""Two tables of features side by side: sessions of one, and the same sessions with other events after a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from diptych.commerce.purchase_intent.features.fitted import fit_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.features.view import NO_PAGE, SessionsView

_NOT_THERE = "(population)"
_SETTING = "(setting)"


@dataclass(frozen=True)
class ShiftChange:
    """A value that depends on what comes after the step.

    Attributes:
        session_id: of the session.
        setting: that it is in at the step.
        step: pages that are open.
        column: of the features; ``(setting)`` where the session is in another one, ``(population)`` where it is in
            none.
        before, after: the value, and that in the altered log; None where there is none.
    """

    session_id: int
    setting: str
    step: int
    column: str
    before: float | None
    after: float | None


def compare_step(
    table: FeatureTable, again: FeatureTable, step: int, rows: np.ndarray, altered_ids: np.ndarray
) -> list[ShiftChange]:
    """What differs at a step.

    Args:
        rows: (m,) of ``table``.
        altered_ids: (m,) what their sessions are called in ``again``.
    """
    place = {session_id: row for row, session_id in enumerate(again.session_ids.tolist())}
    places = np.array([place.get(one, -1) for one in altered_ids.tolist()], dtype=np.int64)
    there = places >= 0
    identified = table.identified(step)[rows]
    same = there.copy()
    same[there] = again.identified(step)[places[there]] == identified[there]
    changed = []
    for setting in table.settings:
        mine = identified == (setting == "identified")
        changed += [_change(table, row, setting, step, _NOT_THERE) for row in rows[mine & ~there]]
        changed += [_change(table, row, setting, step, _SETTING) for row in rows[mine & there & ~same]]
        kept = mine & same
        changed += _compare_values(table, again, setting, step, rows[kept], places[kept])
    return changed


def _compare_values(
    table: FeatureTable, again: FeatureTable, setting: str, step: int, rows: np.ndarray, places: np.ndarray
) -> list[ShiftChange]:
    population = table.population(setting, step)
    if not len(rows) or not len(population):
        return []
    fitted = fit_features(table.features(setting, table.sets[-1], step), table.at(population, step))
    before = fitted.matrix(table.at(rows, step))
    after = fitted.matrix(_in_words_of(table.view, again.at(places, step)))
    # The same numbers are computed in blocks of other sizes: sums may differ in the last bits.
    differs = ~np.isclose(before, after, rtol=1e-9, atol=1e-12, equal_nan=True)
    return [
        _change(
            table, rows[row], setting, step, fitted.names[column], before[row, column], after[row, column]
        )
        for row, column in np.argwhere(differs)
    ]


def _in_words_of(view: SessionsView, other: SessionsView) -> SessionsView:
    """A view with the codes of another's vocabulary."""
    code_of = {name: code for code, name in enumerate(view.vocabulary)}
    codes = [code_of.get(name, len(code_of)) for name in other.vocabulary]
    new = np.array([*codes, len(code_of), NO_PAGE], dtype=np.int32)  # NO_PAGE is -1: the last
    return replace(other, page_types=new[other.page_types], vocabulary=view.vocabulary)


def _change(
    table: FeatureTable,
    row: int,
    setting: str,
    step: int,
    column: str,
    before: float = np.nan,
    after: float = np.nan,
) -> ShiftChange:
    values = (None if np.isnan(value) else float(value) for value in (before, after))
    return ShiftChange(int(table.session_ids[row]), setting, step, column, *values)
