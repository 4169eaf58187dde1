"""What a reader takes away from each statistic, in sentences made of its rows alone.

Each function gives some sentences, or none where nothing can be said: no purchase, one group, counts too
small to be shown. "More" is said of shares whose intervals do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from diptych.report.intent_discretion import WEEK_DAYS, Discretion, listed, number, percent, signed
from diptych.report.intent_length_figures import ALL
from diptych.report.intent_series import label

Row = Mapping[str, Any]

_WORKING_DAYS = range(5)
_EVENING = range(18, 23)
_MOST_LINKS = 4
_LONG = 30  # characters of a name from a log


def length_findings(quantiles: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``session-length-quantiles``: which class is longer, and on which devices."""
    shown = [row for row in quantiles if not discretion.small(row["sessions"])]
    of_all = {row["purchase"]: row for row in shown if row["device"] == ALL}
    if True not in of_all:
        return ["No session with a purchase can be compared with the others."] if quantiles else []
    if False not in of_all:
        return ["Every session has a purchase, so there is nothing to compare with."]
    buy, other = of_all[True], of_all[False]
    if discretion.few_beyond(0.9, buy["sessions"], other["sessions"]):
        return ["There are too few sessions of a class to compare lengths."]
    numbers = (
        f"P50 {buy['p50']:,} actions against {other['p50']:,}, P90 {buy['p90']:,} against {other['p90']:,}"
    )
    if buy["p50"] > other["p50"]:
        said = [f"Purchase sessions are longer: {numbers}."]
    elif buy["p50"] < other["p50"]:
        said = [f"Purchase sessions are shorter: {numbers}."]
    else:
        said = [f"Half of the sessions of both classes are equally long: {numbers}."]
    devices = [row for row in shown if row["device"] != ALL and not row["purchase"]]
    if len(devices) > 1:
        longest, shortest = (
            choose(devices, key=lambda row: (row["mean"], row["device"])) for choose in (max, min)
        )
        said.append(
            f"Without a purchase, sessions are longest on {_name(longest['device'])} (mean "
            f"{longest['mean']:.1f}) and shortest on {_name(shortest['device'])} ({shortest['mean']:.1f})."
        )
    return said


def week_day_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``week-days``: the busiest days of both classes, and the working week."""
    parts = []
    for purchase, name in ((True, "Purchase sessions"), (False, "others")):
        days = _shown(rows, purchase, discretion)
        if len(days) == 7:
            best = sorted(days, key=lambda row: (-row["share"], row["week_day"]))
            parts.append(
                f"{name} are most frequent on {WEEK_DAYS[best[0]['week_day']]} ({percent(best[0]['share'])} "
                f"%), least on {WEEK_DAYS[best[-1]['week_day']]} ({percent(best[-1]['share'])} %)"
            )
    if len(parts) < 2:
        return [f"{parts[0]}."] if parts and parts[0].startswith("Purchase") else []
    buy, other = (_sum(rows, "week_day", _WORKING_DAYS, purchase) for purchase in (True, False))
    return [
        f"{'; '.join(parts)}.",
        f"Monday to Friday hold {percent(buy)} % of purchase sessions and {percent(other)} % of others; five "
        f"days of seven would be {percent(5 / 7)} %.",
    ]


def hour_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``hours``: the busiest hour and the evening."""
    buy, other = (_shown(rows, purchase, discretion) for purchase in (True, False))
    if not buy or not other:
        return []
    best = max(buy, key=lambda row: (row["share"], -row["hour"]))
    shares = [_sum(rows, "hour", _EVENING, purchase) for purchase in (True, False)]
    return [
        f"Most purchase sessions start from {best['hour']} to {best['hour'] + 1} h ({percent(best['share'])} "
        f"%). From {_EVENING.start} to {_EVENING.stop} h start {percent(shares[0])} % of purchase sessions and "
        f"{percent(shares[1])} % of others."
    ]


def group_findings(rows: Sequence[Row], key: str, discretion: Discretion) -> list[str]:
    """Of ``channels`` or ``devices``: the two whose rates are furthest apart for sure, and who favours the better."""
    shown = [row for row in rows if _open(row, discretion)]
    if len(shown) < 2 or not any(row["purchase_sessions"] for row in shown):
        return []
    best = max(shown, key=lambda row: (row["low"], row[key]))
    worst = min(shown, key=lambda row: (row["high"], row[key]))
    if best["low"] <= worst["high"]:
        return [f"No {key} is to be told from another by its conversion rate: all intervals overlap."]
    more, less = (f"“{_name(row[key])}”" for row in (best, worst))
    said = [
        f"{more} clearly converts more often ({_rate(best, discretion)}) than {less} ({_rate(worst, discretion)})."
    ]
    if best["other_share"]:
        said.append(
            f"{more} is {best['purchase_share'] / best['other_share']:.1f} times as frequent among purchase sessions "
            f"({percent(best['purchase_share'])} %) as among others ({percent(best['other_share'])} %)."
        )
    return said


def device_count_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``devices-per-visitor``: who uses more than one."""
    several = {
        row["purchaser"]: row
        for row in rows
        if row["devices"] == "> 1" and not discretion.small(row["visitors"])
    }
    if set(several) != {True, False}:
        return []
    buy, other = several[True], several[False]
    said = (
        f"{percent(buy['share'])} % of purchasers use more than one device, of other visitors "
        f"{percent(other['share'])} %"
    )
    if buy["low"] <= other["high"] and other["low"] <= buy["high"]:
        said += "; the intervals overlap"
    return [f"{said}."]


def transition_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``device-transitions``: staying, the strongest switch, and kinds of links."""
    shown = [row for row in rows if row["transitions"] and not discretion.small(row["transitions"])]
    stays = [row for row in shown if row["from_device"] == row["to_device"]]
    switches = [row for row in shown if row["from_device"] != row["to_device"]]
    said = []
    if stays:
        best = max(stays, key=lambda row: (row["share"], row["from_device"]))
        said.append(
            f"Before a purchase, who was on {_name(best['from_device'])} stays there in "
            f"{percent(best['share'])} % of cases."
        )
    if not switches:
        return said
    strongest = max(switches, key=lambda row: (row["share"], row["from_device"], row["to_device"]))
    said.append(
        f"The most probable switch is from {_name(strongest['from_device'])} to "
        f"{_name(strongest['to_device'])} ({percent(strongest['share'])} %)."
    )
    kinds = []
    for link, between in (("strong", "–"), ("one-sided", " → ")):
        pairs: dict[frozenset[str], Row] = {}
        for row in sorted(switches, key=lambda row: -row["share"]):
            if row["link"] == link:
                pairs.setdefault(frozenset((row["from_device"], row["to_device"])), row)
        if pairs:
            names = [
                f"{_name(row['from_device'])}{between}{_name(row['to_device'])}" for row in pairs.values()
            ]
            more = [f"{len(names) - _MOST_LINKS} more"] if len(names) > _MOST_LINKS else []
            kinds.append(f"{link}: {listed([*names[:_MOST_LINKS], *more])}")
    return [*said, f"Links that are {'; '.join(kinds)}."] if kinds else said


def query_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``queries``: who searches more."""
    of_all = {
        row["purchase"]: row for row in rows if row["device"] == ALL and not discretion.small(row["sessions"])
    }
    if set(of_all) != {True, False}:
        return []
    buy, other = (of_all[purchase]["per_session"] for purchase in (True, False))
    if not buy and not other:
        return ["There are no queries in this log."]
    more = f", {buy / other:.1f} times as many" if other and buy > other else ""
    return [f"A purchase session has {number(buy, 2)} queries, another one {number(other, 2)}{more}."]


def unique_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``unique-queries``: whose queries repeat themselves."""
    of_all = {
        row["purchase"]: row
        for row in rows
        if row["device"] == ALL and row["queries"] and not discretion.small(row["queries"], row["unique"])
    }
    if set(of_all) != {True, False}:
        return []
    buy, other = (of_all[purchase]["unique_share"] for purchase in (True, False))
    return [
        f"Different queries are {percent(buy)} % of all queries in purchase sessions and {percent(other)} % in "
        "others; this share falls by itself the more queries there are."
    ]


def _open(row: Row, discretion: Discretion) -> bool:
    """Whether a group's rate may be shown."""
    return not discretion.small(row["purchase_sessions"], row["sessions"] - row["purchase_sessions"])


def _rate(row: Row, discretion: Discretion) -> str:
    if discretion.hide_rates or row["rate"] is None:
        return f"standardised {signed(row['standardised'])}"
    return f"{percent(row['rate'], 2)} %"


def _shown(rows: Sequence[Row], purchase: bool, discretion: Discretion) -> list[Row]:
    """Rows of a class that may be shown; of a class without sessions there is no share."""
    return [
        row
        for row in rows
        if row["purchase"] == purchase and row["share"] is not None and not discretion.small(row["sessions"])
    ]


def _sum(rows: Sequence[Row], key: str, places: range, purchase: bool) -> float:
    return math.fsum(row["share"] for row in rows if row["purchase"] == purchase and row[key] in places)


def _name(name: str) -> str:
    return label(name, _LONG)
