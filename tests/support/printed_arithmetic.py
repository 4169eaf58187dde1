"""Whether printed numbers agree with each other: recalls and their sums, what is counted of a log and of a catalogue.

Every printed number stands for an interval of half a unit of its last digit; what follows from several is an
interval too, and a number that lies outside of it does not follow.
"""

from __future__ import annotations

import itertools
import math
import statistics
from itertools import pairwise

from diptych.studies.published import published_table

Interval = tuple[float, float]

_LOG = "intent"
_HALF = 0.005
_FLOAT = 1e-9
_BASE_RATES = [step / 1000 for step in range(1, 301)]
_NEAR = 0.02  # shares that do not add up to 100 leave standardised rates uncertain by so much


def log_faults(table):
    """(row, column) of cells of a log's table that contradict others; nothing of other papers."""
    if table.paper.key != _LOG:
        return []
    faults = []
    for rule in (_text_is_another, _rate_is_off, _share_is_off, _queries_are_off, _does_not_follow):
        faults += rule(table)
    order = [row.row for row in table.rows]
    own = sorted((one for one in faults if one[0] in order), key=lambda one: order.index(one[0]))
    return [*own, *(("all rows", column) for column in _sums_are_off(table))]


# Single rules -----------------------------------------------------------------------------------------


def _text_is_another(table):
    """Counts that the text gives otherwise."""
    if table.columns != ("total", "text"):
        return []
    both = [(row.row, [cell.value for cell in row.cells.values()]) for row in table.rows]
    return [(row, "total") for row, values in both if len(set(values)) > 1]


def _rate_is_off(table):
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


def _shares_of(row):
    """A group's shares of purchase sessions and of others; as the text compares them where the table's have one
    digit, for their ratio is all that a rate depends on."""
    own, other = (row.cells[name].value for name in ("purchase", "non-purchase"))
    if min(own, other) > 10 * _HALF:
        return own, other
    less = next(
        one
        for one in published_table(_LOG, "text-table-6.4").rows
        if one.row.lower().startswith(row.row.lower())
    )
    return 1 - less.cells["stated"].value / 100, 1.0


def _share_is_off(table):
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


def _queries_are_off(table):
    """Queries per session that are not the average times the share of queries over the share of sessions."""
    average = table.of("all", "thesis")
    if average is None or "purchase per session" not in table.columns:
        return []
    devices = published_table(_LOG, "table-6.4")
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


def _does_not_follow(table):
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


def _sums_are_off(table):
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


def standardised(shares, base, ddof):
    """Standardised conversion rates of groups, from their shares of purchase sessions and of others."""
    rates = [base * own / (base * own + (1 - base) * other) for own, other in shares]
    deviation = statistics.stdev(rates) if ddof else statistics.pstdev(rates)
    return [(rate - statistics.mean(rates)) / deviation for rate in rates]


def follows(formula, *numbers):
    """The interval of a formula that rises or falls with each of its numbers."""
    corners = [formula(*corner) for corner in itertools.product(*numbers)]
    return min(corners), max(corners)


def _of(value, half=_HALF):
    return value - half, value + half


def _meet(one, other):
    return one[0] <= other[1] + _FLOAT and other[0] <= one[1] + _FLOAT


def _derived():
    """What the printed cells say about each number that the text derives, in per cent."""

    def cell(table, config, column):
        row = published_table(_LOG, table).of(config, "thesis")
        assert row is not None, (table, config)
        return row.cells[column].value

    def more(table, config, columns=("purchase", "non-purchase"), sign=1):
        return follows(
            lambda one, other: 100 * sign * (one / other - 1),
            *(_of(cell(table, config, name)) for name in columns),
        )

    def apart(config):
        return follows(
            lambda three, four: abs(three - four),
            *(_of(cell("figure-6.3", config, name)) for name in ("three most", "four least")),
        )

    def share(part, whole):
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


_CATALOGUE = "cti"
_CUTS = {"P@1": 1, "P@5": 5, "P@10": 10}
_QUERIES = {"all": 5471, "most-general": 34, "most-specific": 4100}
"""Categories of each setting, as the headings of table 7.1 count them."""

_MODELS = {"BM25": "bm25", "CLIP": "clip", "MPNet": "sentence", "CLIP-I": "clip-i", "CLIP-IA": "clip-ia"}
_MODELS |= {"CLIP-ITA": "clip-ita"}


def cti_faults(table):
    """(row, column) of cells of a table of chapter 7 that contradict others; nothing of other papers."""
    if table.paper.key != _CATALOGUE:
        return []
    rules = {
        "table-7.1": _no_share_of_queries,
        "table-7.2": _counts_are_off,
        "table-7.3": _parts_are_off,
        "figure-7.2": _distances_are_off,
    }
    return rules.get(table.name, _gain_does_not_follow)(table)


# What is possible ---------------------------------------------------------------------------------------


def possible_precision(value, queries, k):
    """Whether so many queries can have a printed P@k, in per cent: hits among the first k over all places."""
    places = queries * k
    return any(
        _prints(100 * hits / places, value)
        for hits in range(math.floor(value * places / 100) - 1, math.ceil(value * places / 100) + 2)
    )


def shares_of_count(shares, count):
    """Whether so many cases can be cut into parts with the printed shares, in per cent."""
    each = [[n for n in range(count + 1) if _prints(100 * n / count, share)] for share in shares]
    return any(sum(parts) == count for parts in itertools.product(*each))


def gain(one, other):
    """By how many per cent the mean of some printed numbers is above the mean of others."""
    low, high = (
        [statistics.fmean(end) for end in zip(*map(_printed, values), strict=True)] for values in (one, other)
    )
    return 100 * (low[0] / high[1] - 1), 100 * (low[1] / high[0] - 1)


# Single rules -----------------------------------------------------------------------------------------


def _no_share_of_queries(table):
    """Precisions that the heading's number of queries cannot have."""
    return [
        (row.row, column)
        for row in table.rows
        for column, k in _CUTS.items()
        if not possible_precision(row.cells[column].value, _QUERIES[_setting(row)], k)
    ]


def _counts_are_off(table):
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


def _parts_are_off(table):
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
            if _printed(whole)[1] < _printed(low)[0] or _printed(whole)[0] > _printed(high)[1]:
                faults.append((row.row, column))
    return faults


def _distances_are_off(table):
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


def _gain_does_not_follow(table):
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


def _gain_is(sentence, said):
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


def _gains(who, setting):
    one, other = _both(who, setting)
    return {column: gain([one[column]], [other[column]]) for column in one}


def _mean_gain(who, setting):
    one, other = _both(who, setting)
    return gain(list(one.values()), list(other.values()))


def _both(who, setting):
    names = who.split(" over ")
    table = "table-7.1" if names[0] in _MODELS else "table-7.3"
    rows = [f"{_MODELS.get(name, name)}-{setting}" for name in names]
    columns = published_table(_CATALOGUE, table).columns
    one, other = ({column: _cell(table, row, column) for column in columns} for row in rows)
    return one, other


# Intervals --------------------------------------------------------------------------------------------


def _cell(table, config, column):
    row = published_table(_CATALOGUE, table).of(config, "thesis")
    assert row is not None, (table, config)
    return row.cells[column].value


def _setting(row):
    return next(name for name in ("most-general", "most-specific", "all") if str(row.config).endswith(name))


def _unit(value):
    """Of the last digit: the chapter prints 9.9 and 13.27, so that zeros at the end may be missing."""
    return next(10.0**-digits for digits in (0, 1, 2) if round(value, digits) == value)


def _printed(value):
    unit = min(_unit(value), 0.1)
    return value - unit / 2, value + unit


def _prints(exact, printed):
    """Whether a number is printed so, rounded or cut off after as many digits."""
    unit = _unit(printed)
    return printed - unit / 2 - _FLOAT <= exact < printed + unit - _FLOAT


_HALF_DIGIT = 0.05  # half a unit of the one decimal that recalls are printed with


def arithmetic_faults(table):
    """(row, column) of cells that contradict the others of their row beyond what rounding explains.

    Recalls must not fall with k, averages and sums (of a direction or both) must be those of their recalls,
    means and sample deviations those of the printed runs, mean reciprocal ranks what their recalls allow, and
    a latency the reciprocal of its throughput. Tables of a log and of a catalogue have rules of their own.
    """
    faults = []
    for row in table.rows:
        values = {column: cell.value for column, cell in row.cells.items()}
        for direction in ("i2t", "t2i"):
            faults += [(row.row, column) for column in _recall_faults(direction, values)]
            faults += [(row.row, f"{direction} MRR@10")] * _reciprocal_rank_is_off(direction, values)
        faults += [(row.row, column) for column in _latency_faults(row)]
        # Each recall and their sum is rounded.
        half = max((cell.rounding for cell in row.cells.values()), default=0.0) or _HALF_DIGIT
        for direction in ("i2t", "t2i"):
            own = {column: value for column, value in values.items() if column.startswith(f"{direction} ")}
            faults += [(row.row, f"{direction} rsum")] * _sum_is_off(own, 4 * half, f"{direction} rsum", 3)
        faults += [(row.row, "rsum")] * _sum_is_off(values, 7 * half)
        for run in row.each:
            # One run's recalls are multiples of 0.02 or 0.1: only the sum of their rounding is left.
            faults += [(row.row, "rsum")] * _sum_is_off(run, _HALF_DIGIT)
        faults += [(row.row, column) for column in _spread_faults(row)]
    return [*faults, *log_faults(table), *cti_faults(table)]


def _recall_faults(direction, values):
    names = [f"{direction} R@{k}" for k in (1, 5, 10)]
    if not all(name in values for name in names):
        return []
    faults = [after for before, after in pairwise(names) if values[after] < values[before]]
    average = values.get(f"{direction} average recall")
    mean = statistics.mean(values[name] for name in names)
    if average is not None and abs(mean - average) > 2 * _HALF_DIGIT + _FLOAT:
        faults.append(f"{direction} average recall")
    return faults


def _sum_is_off(values, rounding, total="rsum", terms=6):
    recalls = [value for column, value in values.items() if " R@" in column]
    if total not in values or len(recalls) != terms:
        return False
    return abs(sum(recalls) - values[total]) > rounding + _FLOAT


def _spread_faults(row):
    faults = []
    for column, cell in row.cells.items() if row.each else ():
        runs = [run[column] for run in row.each]
        mean_is_off = abs(statistics.mean(runs) - cell.value) > _HALF_DIGIT + _FLOAT
        spread_is_off = (
            cell.sd is not None and abs(statistics.stdev(runs) - cell.sd) > _HALF_DIGIT / 10 + _FLOAT
        )
        if mean_is_off or spread_is_off:
            faults.append(column)
    return faults


def _reciprocal_rank_is_off(direction, values):
    """Whether no ranking has the printed mean reciprocal rank (cut at 10) and its recalls."""
    first, fifth, found = (values.get(f"{direction} {name}") for name in ("R@1", "R@5", "MRR@10"))
    if first is None or fifth is None or found is None:
        return False
    # Those between the first and the fifth place have 1/2 to 1/5, those behind at most 1/6.
    most = first + (fifth - first) / 2 + (100 - fifth) / 6
    least = first + (fifth - first) / 5
    return not least - 2 * _HALF_DIGIT <= found <= most + 2 * _HALF_DIGIT


def _latency_faults(row):
    faults = []
    for column, cell in row.cells.items():
        rate = row.cells.get(column.replace("latency", "throughput"))
        if not column.startswith("latency") or rate is None or cell.bound or rate.bound:
            continue
        # Milliseconds have two decimals; queries per second none, whether rounded or cut off.
        least, most = 1000 / (rate.value + 1), 1000 / (rate.value - 0.5)
        if not least - _HALF_DIGIT / 10 - _FLOAT <= cell.value <= most + _HALF_DIGIT / 10 + _FLOAT:
            faults.append(column)
    return faults
