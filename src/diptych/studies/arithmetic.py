"""Whether a printed table agrees with itself: sums, averages, orders, spreads, bounds, reciprocals."""

from __future__ import annotations

import statistics
from itertools import pairwise

from diptych.studies.cti_arithmetic import cti_faults
from diptych.studies.log_arithmetic import log_faults
from diptych.studies.published import PublishedRow, PublishedTable

_HALF = 0.05  # half a unit of the one decimal that recalls are printed with
_FLOAT = 1e-9


def arithmetic_faults(table: PublishedTable) -> list[tuple[str, str]]:
    """(row, column) of cells that contradict the others of their row beyond what rounding explains.

    Recalls must not fall with k, averages and sums (of a direction or both) must be those of their recalls,
    means and sample deviations those of the printed runs, mean reciprocal ranks what their recalls allow, and
    a latency the reciprocal of its throughput. Tables of a log and of a catalogue have rules of their own
    (:mod:`diptych.studies.log_arithmetic`, :mod:`diptych.studies.cti_arithmetic`).
    """
    faults: list[tuple[str, str]] = []
    for row in table.rows:
        values = {column: cell.value for column, cell in row.cells.items()}
        for direction in ("i2t", "t2i"):
            faults += [(row.row, column) for column in _recall_faults(direction, values)]
            faults += [(row.row, f"{direction} MRR@10")] * _reciprocal_rank_is_off(direction, values)
        faults += [(row.row, column) for column in _latency_faults(row)]
        # Each recall and their sum is rounded.
        half = max((cell.rounding for cell in row.cells.values()), default=0.0) or _HALF
        for direction in ("i2t", "t2i"):
            own = {column: value for column, value in values.items() if column.startswith(f"{direction} ")}
            faults += [(row.row, f"{direction} rsum")] * _sum_is_off(own, 4 * half, f"{direction} rsum", 3)
        faults += [(row.row, "rsum")] * _sum_is_off(values, 7 * half)
        for run in row.each:
            # One run's recalls are multiples of 0.02 or 0.1: only the sum of their rounding is left.
            faults += [(row.row, "rsum")] * _sum_is_off(run, _HALF)
        faults += [(row.row, column) for column in _spread_faults(row)]
    return [*faults, *log_faults(table), *cti_faults(table)]


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


def _sum_is_off(values: dict[str, float], rounding: float, total: str = "rsum", terms: int = 6) -> bool:
    recalls = [value for column, value in values.items() if " R@" in column]
    if total not in values or len(recalls) != terms:
        return False
    return abs(sum(recalls) - values[total]) > rounding + _FLOAT


def _spread_faults(row: PublishedRow) -> list[str]:
    faults = []
    for column, cell in row.cells.items() if row.each else ():
        runs = [run[column] for run in row.each]
        mean_is_off = abs(statistics.mean(runs) - cell.value) > _HALF + _FLOAT
        spread_is_off = cell.sd is not None and abs(statistics.stdev(runs) - cell.sd) > _HALF / 10 + _FLOAT
        if mean_is_off or spread_is_off:
            faults.append(column)
    return faults


def _reciprocal_rank_is_off(direction: str, values: dict[str, float]) -> bool:
    """Whether no ranking has the printed mean reciprocal rank (cut at 10) and its recalls."""
    first, fifth, found = (values.get(f"{direction} {name}") for name in ("R@1", "R@5", "MRR@10"))
    if first is None or fifth is None or found is None:
        return False
    # Those between the first and the fifth place have 1/2 to 1/5, those behind at most 1/6.
    most = first + (fifth - first) / 2 + (100 - fifth) / 6
    least = first + (fifth - first) / 5
    return not least - 2 * _HALF <= found <= most + 2 * _HALF


def _latency_faults(row: PublishedRow) -> list[str]:
    faults = []
    for column, cell in row.cells.items():
        rate = row.cells.get(column.replace("latency", "throughput"))
        if not column.startswith("latency") or rate is None or cell.bound or rate.bound:
            continue
        # Milliseconds have two decimals; queries per second none, whether rounded or cut off.
        least, most = 1000 / (rate.value + 1), 1000 / (rate.value - 0.5)
        if not least - _HALF / 10 - _FLOAT <= cell.value <= most + _HALF / 10 + _FLOAT:
            faults.append(column)
    return faults
