"""Whether the numbers that thesis chapter 7 prints agree with each other, and with what its text derives.

A printed number stands for an interval: half a unit of its last digit below it, a whole unit above, because the
chapter cuts digits off as often as it rounds. What follows from several is an interval too.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from diptych.studies.log_arithmetic import Interval, follows
from diptych.studies.published import PublishedRow, PublishedTable, published_table

_PAPER = "cti"
_FLOAT = 1e-9
_CUTS = {"P@1": 1, "P@5": 5, "P@10": 10}
_QUERIES = {"all": 5471, "most-general": 34, "most-specific": 4100}
"""Categories of each setting, as the headings of table 7.1 count them."""

_MODELS = {"BM25": "bm25", "CLIP": "clip", "MPNet": "sentence", "CLIP-I": "clip-i", "CLIP-IA": "clip-ia"}
_MODELS |= {"CLIP-ITA": "clip-ita"}


def cti_faults(table: PublishedTable) -> list[tuple[str, str]]:
    """(row, column) of cells of a table of chapter 7 that contradict others; nothing of other papers."""
    if table.paper.key != _PAPER:
        return []
    rules: dict[str, Callable[[PublishedTable], list[tuple[str, str]]]] = {
        "table-7.1": _no_share_of_queries,
        "table-7.2": _counts_are_off,
        "table-7.3": _parts_are_off,
        "figure-7.2": _distances_are_off,
    }
    return rules.get(table.name, _does_not_follow)(table)


# What is possible ---------------------------------------------------------------------------------------


def possible_precision(value: float, queries: int, k: int) -> bool:
    """Whether so many queries can have a printed P@k, in per cent: hits among the first k over all places."""
    places = queries * k
    return any(
        _prints(100 * hits / places, value)
        for hits in range(math.floor(value * places / 100) - 1, math.ceil(value * places / 100) + 2)
    )


def shares_of_count(shares: Sequence[float], count: int) -> bool:
    """Whether so many cases can be cut into parts with the printed shares, in per cent."""
    each = [[n for n in range(count + 1) if _prints(100 * n / count, share)] for share in shares]
    return any(sum(parts) == count for parts in itertools.product(*each))


def error_queries(errors: int, precision: float) -> list[int]:
    """Numbers of queries of which so many errors leave a printed P@1, in per cent."""
    most = math.ceil(errors / (1 - (precision + 0.1) / 100)) + 1
    return [n for n in range(errors + 1, most + 1) if _prints(100 * (n - errors) / n, precision)]


def seen_share(whole: float, seen: float, unseen: float) -> Interval:
    """Which share of queries is seen where the mean of all, of seen and of unseen ones are as printed."""
    return follows(lambda all_, one, other: (all_ - other) / (one - other), *map(_of, (whole, seen, unseen)))


def gain(one: Sequence[float], other: Sequence[float]) -> Interval:
    """By how many per cent the mean of some printed numbers is above the mean of others."""
    low, high = (
        [statistics.fmean(end) for end in zip(*map(_of, values), strict=True)] for values in (one, other)
    )
    return 100 * (low[0] / high[1] - 1), 100 * (low[1] / high[0] - 1)


# Single rules -----------------------------------------------------------------------------------------


def _no_share_of_queries(table: PublishedTable) -> list[tuple[str, str]]:
    """Precisions that the heading's number of queries cannot have."""
    return [
        (row.row, column)
        for row in table.rows
        for column, k in _CUTS.items()
        if not possible_precision(row.cells[column].value, _QUERIES[_setting(row)], k)
    ]


def _counts_are_off(table: PublishedTable) -> list[tuple[str, str]]:
    """Two roots in one tree, and totals that are not their parts'."""
    parts = {row.config: row for row in table.rows if row.config != "total"}
    faults = []
    if parts["most-general"].cells["same tree"].value:
        faults.append((parts["most-general"].row, "same tree"))
    total = table.of("total", "thesis")
    assert total is not None
    for column, cell in total.cells.items():
        if sum(row.cells[column].value for row in parts.values()) != cell.value:
            faults.append((total.row, column))
    return faults


def _parts_are_off(table: PublishedTable) -> list[tuple[str, str]]:
    """Seen and unseen queries between whose numbers that of all queries, in table 7.1, does not lie."""
    faults = []
    for row in table.rows:
        if not str(row.config).startswith("seen-"):
            continue
        setting = _setting(row)
        for column, cell in row.cells.items():
            other = _cell("table-7.3", f"unseen-{setting}", column)
            low, high = sorted([cell.value, other])
            whole = _cell("table-7.1", f"clip-ita-{setting}", column)
            if _of(whole)[1] < _of(low)[0] or _of(whole)[0] > _of(high)[1]:
                faults.append((row.row, column))
    return faults


def _distances_are_off(table: PublishedTable) -> list[tuple[str, str]]:
    """Distances whose sign the text contradicts, and shares that no number of errors has."""
    faults = []
    for row in table.rows:
        values = {column: cell.value for column, cell in row.cells.items()}
        up = [column for column in values if column.startswith("d = ") and int(column[4:]) > 0]
        if values.get("more general") == 100:
            faults += [(row.row, column) for column in up if values[column]]
        shares = [value for column, value in values.items() if column.startswith("d = ")]
        count = _cell("table-7.2", str(row.config), "same tree")
        if len(shares) > 1 and not shares_of_count(shares, int(count)):
            faults.append((row.row, "shares"))
    return faults


def _does_not_follow(table: PublishedTable) -> list[tuple[str, str]]:
    """Numbers of the text that do not follow from the cells, or are not the most or the least as it says."""
    faults = []
    for row in table.rows:
        stated = row.cells["stated"].value
        said = (stated - 0.5, stated + 1)
        if table.name == "text-table-7.2":
            setting = "all" if "all" in row.row else "most-specific"
            same, other = (_cell("table-7.2", setting, name) for name in ("same tree", "different tree"))
            share = 100 * same / (same + other)
            right = _meet((share, share), said)
        else:
            right = _gain_is(row.row, said)
        if not right:
            faults.append((row.row, "stated"))
    return faults


def _gain_is(sentence: str, said: Interval) -> bool:
    """Whether a gain is as said; its row is ``ONE over OTHER, SETTING[, MEASURE][, the most|the least], section …``."""
    who, setting, *more = sentence.rpartition(", section")[0].split(", ")
    setting = setting.replace(" ", "-")
    named = next((one for one in more if not one.startswith("the ")), None)
    gains = _gains(who, setting)
    if named is None and "the most" in more:
        # A measure is not named: whichever gains the most has to.
        named = max(gains, key=lambda column: gains[column][0])
    if named is None:
        return _meet(_mean_gain(who, setting), said)
    own, others = gains[named], [gains[column] for column in gains if column != named]
    beaten = ("the most" in more and any(low > own[1] for low, _ in others)) or (
        "the least" in more and any(high < own[0] for _, high in others)
    )
    return _meet(own, said) and not beaten


def _gains(who: str, setting: str) -> Mapping[str, Interval]:
    one, other = _both(who, setting)
    return {column: gain([one[column]], [other[column]]) for column in one}


def _mean_gain(who: str, setting: str) -> Interval:
    one, other = _both(who, setting)
    return gain(list(one.values()), list(other.values()))


def _both(who: str, setting: str) -> tuple[dict[str, float], dict[str, float]]:
    names = who.split(" over ")
    table = "table-7.1" if names[0] in _MODELS else "table-7.3"
    rows = [f"{_MODELS.get(name, name)}-{setting}" for name in names]
    columns = published_table(_PAPER, table).columns
    one, other = ({column: _cell(table, row, column) for column in columns} for row in rows)
    return one, other


# Intervals --------------------------------------------------------------------------------------------


def _cell(table: str, config: str, column: str) -> float:
    row = published_table(_PAPER, table).of(config, "thesis")
    assert row is not None, (table, config)
    return row.cells[column].value


def _setting(row: PublishedRow) -> str:
    return next(name for name in ("most-general", "most-specific", "all") if str(row.config).endswith(name))


def _unit(value: float) -> float:
    """Of the last digit: the chapter prints 9.9 and 13.27, so that zeros at the end may be missing."""
    return next(10.0**-digits for digits in (0, 1, 2) if round(value, digits) == value)


def _of(value: float) -> Interval:
    unit = min(_unit(value), 0.1)
    return value - unit / 2, value + unit


def _prints(exact: float, printed: float) -> bool:
    """Whether a number is printed so, rounded or cut off after as many digits."""
    unit = _unit(printed)
    return printed - unit / 2 - _FLOAT <= exact < printed + unit - _FLOAT


def _meet(one: Interval, other: Interval) -> bool:
    return one[0] <= other[1] + _FLOAT and other[0] <= one[1] + _FLOAT
