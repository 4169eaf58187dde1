"""Whether a printed table agrees with itself: sums, averages, orders, spreads."""

from __future__ import annotations

import statistics
from itertools import pairwise

from diptych.studies.published import PublishedRow, PublishedTable

__all__ = ["arithmetic_faults"]

_HALF = 0.05  # half a unit of the one decimal that recalls are printed with
_FLOAT = 1e-9


def arithmetic_faults(table: PublishedTable) -> list[tuple[str, str]]:
    """(row, column) of cells that contradict the others of their row beyond what rounding explains.

    Recalls must not fall with k, averages and sums must be those of their recalls, and means and
    sample deviations those of the printed runs.
    """
    faults: list[tuple[str, str]] = []
    for row in table.rows:
        values = {column: cell.value for column, cell in row.cells.items()}
        for direction in ("i2t", "t2i"):
            faults += [(row.row, column) for column in _recall_faults(direction, values)]
        # Each of six recalls and their sum is rounded.
        faults += [(row.row, "rsum")] * _sum_is_off(values, 7 * _HALF)
        for run in row.each:
            # One run's recalls are multiples of 0.02 or 0.1: only the sum of their rounding is left.
            faults += [(row.row, "rsum")] * _sum_is_off(run, _HALF)
        faults += [(row.row, column) for column in _spread_faults(row)]
    return faults


def _recall_faults(direction: str, values: dict[str, float]) -> list[str]:
    names = [f"{direction} R@{k}" for k in (1, 5, 10)]
    if not all(name in values for name in names):
        return []
    faults = [after for before, after in pairwise(names) if values[after] < values[before]]
    average = values.get(f"{direction} average recall")
    mean = statistics.mean(values[name] for name in names)
    if average is not None and abs(mean - average) > 2 * _HALF + _FLOAT:
        faults.append(f"{direction} average recall")
    return faults


def _sum_is_off(values: dict[str, float], rounding: float) -> bool:
    recalls = [value for column, value in values.items() if " R@" in column]
    if "rsum" not in values or len(recalls) != 6:
        return False
    return abs(sum(recalls) - values["rsum"]) > rounding + _FLOAT


def _spread_faults(row: PublishedRow) -> list[str]:
    faults = []
    for column, cell in row.cells.items() if row.each else ():
        runs = [run[column] for run in row.each]
        mean_is_off = abs(statistics.mean(runs) - cell.value) > _HALF + _FLOAT
        spread_is_off = cell.sd is not None and abs(statistics.stdev(runs) - cell.sd) > _HALF / 10 + _FLOAT
        if mean_is_off or spread_is_off:
            faults.append(column)
    return faults
