"""Whether printed numbers of a log agree with each other: shares, standardised rates, queries, what a text derives.

Every printed number stands for an interval of half a unit of its last digit; what follows from several is an
interval too, and a number that lies outside of it does not follow.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping

from diptych.studies.published import PublishedRow, PublishedTable, published_table

Interval = tuple[float, float]

_PAPER = "intent"
_HALF = 0.005
_FLOAT = 1e-9
_BASE_RATES = [step / 1000 for step in range(1, 301)]
_NEAR = 0.02  # shares that do not add up to 100 leave standardised rates uncertain by so much


def log_faults(table: PublishedTable) -> list[tuple[str, str]]:
    """(row, column) of cells of a log's table that contradict others; nothing of other papers."""
    if table.paper.key != _PAPER:
        return []
    faults = []
    for rule in (_text_is_another, _rate_is_off, _share_is_off, _queries_are_off, _does_not_follow):
        faults += rule(table)
    order = [row.row for row in table.rows]
    own = sorted((one for one in faults if one[0] in order), key=lambda one: order.index(one[0]))
    return [*own, *(("all rows", column) for column in _sums_are_off(table))]


# Single rules -----------------------------------------------------------------------------------------


def _text_is_another(table: PublishedTable) -> list[tuple[str, str]]:
    """Counts that the text gives otherwise."""
    if table.columns != ("total", "text"):
        return []
    both = [(row.row, [cell.value for cell in row.cells.values()]) for row in table.rows]
    return [(row, "total") for row, values in both if len(set(values)) > 1]


def _rate_is_off(table: PublishedTable) -> list[tuple[str, str]]:
    """Standardised rates that are not those of the share of purchase sessions, and of the deviation by n or n − 1,
    that explain the most of them."""
    if "standardised" not in table.columns:
        return []
    shares = [_shares_of(row) for row in table.rows]
    printed = [row.cells["standardised"].value for row in table.rows]
    explained = [
        [
            abs(rate - value) <= _NEAR
            for rate, value in zip(standardised(shares, base, ddof), printed, strict=True)
        ]
        for base in _BASE_RATES
        for ddof in (0, 1)
    ]
    best = max(explained, key=sum)
    return [(row.row, "standardised") for row, is_right in zip(table.rows, best, strict=True) if not is_right]


def _shares_of(row: PublishedRow) -> tuple[float, float]:
    """A group's shares of purchase sessions and of others; as the text compares them where the table's have one
    digit, for their ratio is all that a rate depends on."""
    own, other = (row.cells[name].value for name in ("purchase", "non-purchase"))
    if min(own, other) > 10 * _HALF:
        return own, other
    less = next(
        one
        for one in published_table(_PAPER, "text-table-6.4").rows
        if one.row.lower().startswith(row.row.lower())
    )
    return 1 - less.cells["stated"].value / 100, 1.0


def _share_is_off(table: PublishedTable) -> list[tuple[str, str]]:
    """Shares of counts that are printed beside them."""
    total = table.of("all", "thesis")
    if total is None:
        return []
    faults = []
    for row in table.rows:
        for column, cell in row.cells.items():
            count = row.cells.get(column.replace("%", "count"))
            if column.endswith("%") and count is not None:
                share = 100 * count.value / total.cells[column.replace("%", "count")].value
                if abs(share - cell.value) > _HALF + _FLOAT:
                    faults.append((row.row, column))
    return faults


def _queries_are_off(table: PublishedTable) -> list[tuple[str, str]]:
    """Queries per session that are not the average times the share of queries over the share of sessions."""
    average = table.of("all", "thesis")
    if average is None or "purchase per session" not in table.columns:
        return []
    devices = published_table(_PAPER, "table-6.4")
    faults = []
    for kind in ("purchase", "non-purchase"):
        column = f"{kind} per session"
        for row in table.rows:
            sessions = devices.of(str(row.config), "thesis")
            if sessions is None:
                continue
            follows_from = follows(
                lambda mean, queries, sessions: mean * queries / sessions,
                _of(average.cells[column].value),
                _of(row.cells[f"{kind} %"].value),
                _of(sessions.cells[kind].value),
            )
            # Of purchase sessions the table prints whole numbers, but where they would be 0.
            value = row.cells[column].value
            half = 0.5 if value >= 1 else _HALF
            if not _meet(follows_from, (value - half, value + half)):
                faults.append((row.row, column))
    return faults


def _does_not_follow(table: PublishedTable) -> list[tuple[str, str]]:
    """Numbers of the text that do not follow from the printed cells."""
    if not table.name.startswith("text-"):
        return []
    derived = _derived()
    faults = []
    for row in table.rows:
        stated = row.cells["stated"].value
        half = 0.5 if stated == int(stated) else _HALF if round(stated, 1) != stated else 0.05
        if not _meet(derived[row.row], (stated - half, stated + half)):
            faults.append((row.row, "stated"))
    return faults


def _sums_are_off(table: PublishedTable) -> list[str]:
    """Columns of shares that do not add up to 100, beyond what rounding explains."""
    names = {"table-6.2": ("purchase", "non-purchase"), "table-6.3": ("purchasers", "non-purchasers")}
    names |= {
        "table-6.4": names["table-6.2"],
        **dict.fromkeys(("table-6.5", "table-6.6"), ("purchase %", "non-purchase %")),
    }
    faults = []
    for column in names.get(table.name, ()):
        # Of users with several devices, one row is the sum of others.
        parts = [row.cells[column].value for row in table.rows if row.config not in ("all", "several")]
        if abs(sum(parts) - 100) > _HALF * len(parts) + _FLOAT:
            faults.append(column)
    return faults


# What follows from what ---------------------------------------------------------------------------------


def standardised(shares: list[tuple[float, float]], base: float, ddof: int) -> list[float]:
    """Standardised conversion rates of groups, from their shares of purchase sessions and of others."""
    rates = [base * own / (base * own + (1 - base) * other) for own, other in shares]
    deviation = statistics.stdev(rates) if ddof else statistics.pstdev(rates)
    return [(rate - statistics.mean(rates)) / deviation for rate in rates]


def base_rate(queries: float, sessions: float, of_purchase: Interval, of_others: Interval) -> Interval:
    """The share of purchase sessions that a log's queries give away, from queries per session of both kinds."""
    return follows(
        lambda own, other: (queries / sessions - other) / (own - other),
        of_purchase,
        of_others,
    )


def follows(formula: Callable[..., float], *numbers: Interval) -> Interval:
    """The interval of a formula that rises or falls with each of its numbers."""
    corners = [formula(*corner) for corner in itertools.product(*numbers)]
    return min(corners), max(corners)


def _of(value: float, half: float = _HALF) -> Interval:
    return value - half, value + half


def _meet(one: Interval, other: Interval) -> bool:
    return one[0] <= other[1] + _FLOAT and other[0] <= one[1] + _FLOAT


def _derived() -> Mapping[str, Interval]:
    """What the printed cells say about each number that the text derives, in per cent."""

    def cell(table: str, config: str, column: str) -> float:
        row = published_table(_PAPER, table).of(config, "thesis")
        assert row is not None, (table, config)
        return row.cells[column].value

    def more(
        table: str, config: str, columns: tuple[str, str] = ("purchase", "non-purchase"), sign: int = 1
    ) -> Interval:
        return follows(
            lambda one, other: 100 * sign * (one / other - 1),
            *(_of(cell(table, config, name)) for name in columns),
        )

    def apart(config: str) -> Interval:
        return follows(
            lambda three, four: abs(three - four),
            *(_of(cell("figure-6.3", config, name)) for name in ("three most", "four least")),
        )

    def share(part: float, whole: float) -> Interval:
        return 100 * part / whole, 100 * part / whole

    counts = {
        name: cell("table-6.1", name, "total") for name in ("sessions", "anonymous-sessions", "queries")
    }
    text = {name: cell("table-6.1", name, "text") for name in ("sessions", "anonymous-sessions")}
    users = ("purchasers", "non-purchasers")
    return {
        "anonymous sessions, section 6.3": share(text["anonymous-sessions"], text["sessions"]),
        "anonymous sessions, section 6.5.1": share(counts["anonymous-sessions"], counts["sessions"]),
        "purchase sessions of three days less those of four, section 6.4.2": apart("purchase"),
        "non-purchase sessions of three days less those of four, section 6.4.2": apart("non-purchase"),
        "direct, section 6.4.3": more("table-6.2", "direct", sign=-1),
        "paid, section 6.4.3": more("table-6.2", "paid"),
        "organic, section 6.4.3": more("table-6.2", "organic"),
        "one device, section 6.4.4": more("table-6.3", "one", users, -1),
        "several devices, section 6.4.4": more("table-6.3", "several", users),
        "PC, section 6.4.4": more("table-6.4", "pc"),
        "tablet, section 6.4.4": more("table-6.4", "tablet"),
        "smartphone, section 6.4.4": more("table-6.4", "smartphone", sign=-1),
        "game console, section 6.4.4": more("table-6.4", "game-console", sign=-1),
        "TV, section 6.4.4": more("table-6.4", "tv", sign=-1),
        "unique queries, section 6.4.5": share(
            cell("section-6.4.5", "distinct-queries", "total"), counts["queries"]
        ),
    }
