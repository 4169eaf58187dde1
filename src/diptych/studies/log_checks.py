"""Checks that claims about a log are made of: which number is above which, and by what.

Numbers of a log have intervals (columns ``COLUMN low`` and ``COLUMN high``); whether two that are compared lie
apart is said beside the verdict, as the spread over seeds is for trained models. Two equal numbers decide nothing:
printed ones are equal to their last digit alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from diptych.studies.claims import Check, Finding, missing
from diptych.studies.verdict import Evidence

LOW, HIGH = " low", " high"
"""End the names of columns with the ends of another one's interval."""

Place = tuple[str, str]
"""Row and column of a number."""

_NOTHING = 1e-12
_EQUAL = ": equal, as far as the digits go"


def known(evidence: Evidence, places: Sequence[Place]) -> dict[Place, float]:
    """The numbers that are there."""
    found = {place: evidence.figure(*place) for place in places}
    return {place: figure.mean for place, figure in found.items() if figure is not None}


def shown(evidence: Evidence, place: Place, decimals: int = 2) -> str:
    """A number with its interval, where it has one."""
    row, column = place
    (value,) = known(evidence, [place]).values()
    ends = known(evidence, [(row, column + LOW), (row, column + HIGH)])
    if len(ends) < 2:
        return f"{value:,.0f}" if value == int(value) else f"{value:.{decimals}f}"
    return f"{value:.{decimals}f} [{', '.join(f'{end:.{decimals}f}' for end in ends.values())}]"


def above(first: Place, second: Place, what: str = "") -> Check:
    """One number is above another."""

    def check(evidence: Evidence) -> list[Finding]:
        title = what or f"{_name(first, second)} is above {_name(second, first)}"
        found = known(evidence, [first, second])
        if len(found) < 2:
            return [missing(title, *(_name(one) for one in (first, second) if one not in found))]
        one, other = found[first], found[second]
        detail = (
            f"{shown(evidence, first)} against {shown(evidence, second)}{_apart(evidence, first, second)}"
        )
        return [_ordered(title, one, other, detail)]

    return check


def more_in_purchases(row: str) -> Check:
    """A row has more in the column ``purchase`` than in ``non-purchase``."""
    return above((row, "purchase"), (row, "non-purchase"))


def less_in_purchases(row: str) -> Check:
    """A row has less in the column ``purchase`` than in ``non-purchase``."""
    return above((row, "non-purchase"), (row, "purchase"))


def column_of(column: str, rows: Sequence[str]) -> list[Place]:
    """A column's numbers of several rows."""
    return [(row, column) for row in rows]


def highest(places: Sequence[Place], winners: Sequence[Place], what: str) -> Check:
    """The highest of all numbers are those of ``winners``, in whatever order."""
    return _first(places, winners, what, 1.0)


def lowest(places: Sequence[Place], winners: Sequence[Place], what: str) -> Check:
    """The lowest of all numbers are those of ``winners``, in whatever order."""
    return _first(places, winners, what, -1.0)


def peak(places: Sequence[Place], among: Sequence[Place], what: str, sign: int = 1) -> Check:
    """The highest of all numbers (the lowest, with ``sign`` −1) is one of ``among``."""

    def check(evidence: Evidence) -> list[Finding]:
        found = known(evidence, places)
        if len(found) < len(places):
            return [missing(what, *(_name(one) for one in places if one not in found))]
        inside = max(among, key=lambda place: sign * found[place])
        outside = max((one for one in places if one not in among), key=lambda place: sign * found[place])
        detail = (
            f"{_name(inside, outside)} {shown(evidence, inside)}, "
            f"{_name(outside, inside)} {shown(evidence, outside)}"
        )
        detail += _apart(evidence, inside, outside)
        return [_ordered(what, sign * found[inside], sign * found[outside], detail)]

    return check


def steady(places: Sequence[Place], factor: float, what: str) -> Check:
    """The highest number is at most ``factor`` times the lowest."""

    def check(evidence: Evidence) -> list[Finding]:
        found = known(evidence, places)
        if len(found) < len(places):
            return [missing(what, *(_name(one) for one in places if one not in found))]
        least, most = min(found.values()), max(found.values())
        margin = (factor * least - most) / max(abs(most), _NOTHING)
        return [Finding(what, most <= factor * least, f"from {least:.2f} to {most:.2f}", margin)]

    return check


def between(place: Place, low: float, high: float, what: str) -> Check:
    """A number lies in [low, high]."""

    def check(evidence: Evidence) -> list[Finding]:
        found = known(evidence, [place])
        if not found:
            return [missing(what, _name(place))]
        margin = min(found[place] - low, high - found[place]) / max(abs(found[place]), _NOTHING)
        return [Finding(what, low <= found[place] <= high, shown(evidence, place), margin)]

    return check


def _first(places: Sequence[Place], winners: Sequence[Place], what: str, sign: float) -> Check:
    def check(evidence: Evidence) -> list[Finding]:
        found = known(evidence, places)
        absent = [one for one in winners if one not in found]
        others = {place: value for place, value in found.items() if place not in winners}
        if absent or not others:
            return [missing(what, *(_name(one) for one in absent or places))]
        last = min(winners, key=lambda place: sign * found[place])
        best = max(others, key=lambda place: sign * others[place])
        # The weakest of those that should win, beside the strongest of the others.
        detail = (
            f"{_name(last, best)} {shown(evidence, last)}, {_name(best, last)} {shown(evidence, best)}"
            f"{_apart(evidence, last, best)}"
        )
        return [_ordered(what, sign * found[last], sign * others[best], detail)]

    return check


def _ordered(what: str, first: float, second: float, detail: str) -> Finding:
    """Whether the first is above the second; equal ones do not tell."""
    if first == second:
        return Finding(what, None, detail + _EQUAL)
    apart = first - second
    return Finding(what, apart > 0, detail, apart / max(abs(first), abs(second), _NOTHING))


def _name(place: Place, beside: Place | None = None) -> str:
    """What is not the same of the number beside it: its row, its column, or both."""
    row, column = place
    if beside is not None and row == beside[0]:
        return column
    return row if beside is not None and column == beside[1] else f"{column} of {row}"


def _apart(evidence: Evidence, first: Place, second: Place) -> str:
    """Whether two intervals lie apart; nothing where a number has none."""
    ends = [known(evidence, [(row, column + LOW), (row, column + HIGH)]) for row, column in (first, second)]
    if any(len(one) < 2 for one in ends):
        return ""
    (low, high), (other_low, other_high) = (tuple(one.values()) for one in ends)
    return ", intervals apart" if low > other_high or other_low > high else ", intervals overlap"
