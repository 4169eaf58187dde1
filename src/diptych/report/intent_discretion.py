"""What a page of people's behaviour may show, and how numbers are written on it.

A page is handed on; the CSV files of a description stay with whoever made it and hold every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diptych.core.errors import UsageError
from diptych.report.words import shorten

WEEK_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

CONVERSION = "purchase sessions / sessions"

_FLOOR = 0.01
"""Where the tail of a distribution ends when rates are hidden: its steps are the sessions' number's inverse."""


@dataclass(frozen=True)
class Discretion:
    """What is left out.

    Attributes:
        least: counts of 1 to ``least`` − 1 sessions or visitors are not shown, nor what follows from them; 1 shows
            all.
        hide_rates: whether conversion rates are left out, and the counts and intervals that they follow from;
            shares and standardised rates stay, as in thesis section 6.2.
    """

    least: int = 5
    hide_rates: bool = False

    def __post_init__(self) -> None:
        if self.least < 1:
            raise UsageError(
                f"counts below {self.least} cannot be left out", "give 1 (all are shown) or more"
            )

    def small(self, *counts: int | None) -> bool:
        """Whether one of the counts is of so few that they might be known."""
        return any(count is not None and 0 < count < self.least for count in counts)

    def few_beyond(self, level: float, *sessions: int) -> bool:
        """Whether some of these distributions have too few sessions above that quantile for it to be shown."""
        return any((1 - level) * n < self.least - 1e-9 for n in sessions)

    def count(self, count: int | None) -> str:
        """A count as tables print it."""
        return f"< {self.least}" if self.small(count) else number(count)

    @property
    def floor(self) -> float:
        """The smallest share that the tail of a distribution shows."""
        return _FLOOR if self.hide_rates else 0.0

    def lines(self) -> list[str]:
        """What is said about it under a page's protocol."""
        said = []
        if self.least > 1:
            said.append(
                f"Counts of 1 to {self.least - 1} are shown as < {self.least}; shares, rates and lines that "
                f"follow from them are left out, and quantiles that fewer than {self.least} sessions lie "
                "beyond, for few may be known people. Other counts of the page may still give one away, by "
                "subtraction. The CSV files of the description hold all numbers."
            )
        if self.hide_rates:
            said.append(
                "Conversion rates, the counts by class that they follow from, and intervals of shares are left "
                "out. Shares of both classes together with standardised rates still allow a guess at the rates."
            )
        return said


def number(value: float | None, decimals: int = 0) -> str:
    """A number as tables print it; a dash for none."""
    return "–" if value is None else f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")


def signed(value: float | None, decimals: int = 2) -> str:
    """A number with its sign; what is as good as nothing has +."""
    return "–" if value is None else f"{round(value, decimals) + 0.0:+,.{decimals}f}".replace("-", "−")


def percent(share: float | None, decimals: int = 1) -> str:
    """A share in per cent, without the sign; what rounds to none but is some says so."""
    if share is None:
        return "–"
    shown = f"{100 * share:.{decimals}f}"
    none = f"{0:.{decimals}f}"
    return f"< {10**-decimals:.{decimals}f}" if shown == none and share > 0 else shown


def interval(low: float | None, high: float | None, decimals: int = 1, scale: float = 100.0) -> str:
    """The ends of an interval; nothing for none."""
    if low is None or high is None:
        return ""
    return f"{number(scale * low, decimals)} to {number(scale * high, decimals)}"


def listed(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sentence(text: str, limit: int = 400) -> str:
    """A note as a sentence of its own; what comes from elsewhere is cut to ``limit`` characters."""
    text = shorten(text, limit)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"
