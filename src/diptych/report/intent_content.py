"""Pages of people's behaviour: sections, colours, what may be shown, and how numbers are written.

A page is handed on; the CSV files of a description stay with whoever made it and hold every number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from diptych.core.errors import UsageError
from diptych.core.files import write_bytes
from diptych.core.table import Table
from diptych.report.drawing import BLUE, INK, ORANGE
from diptych.report.page import DARK, LIGHT, Headline, clean, shorten, templates


@dataclass(frozen=True)
class Series:
    """How one line is drawn.

    Attributes:
        name: of its colour on the page.
        marker: as Matplotlib calls it.
        glyph: the same in words' legends.
        dash: of the line.
    """

    name: str
    marker: str
    glyph: str
    dash: str = "-"

    @property
    def colour(self) -> str:
        """On light paper."""
        return LIGHT[self.name] if self.name != "ink" else INK


SERIES = (
    Series("blue", "o", "●"),
    Series("orange", "s", "■"),
    Series("green", "^", "▲"),
    Series("purple", "D", "◆"),
    Series("olive", "v", "▼"),
    Series("ink", "x", "✕"),
)

PURCHASE = Series("blue", "o", "●")
OTHER = Series("orange", "s", "■", "--")

assert PURCHASE.colour == BLUE
assert OTHER.colour == ORANGE


def series(place: int) -> Series:
    """The way of the ``place``-th line; from the seventh on the same again, dashed."""
    one = SERIES[place % len(SERIES)]
    return one if place < len(SERIES) else Series(one.name, one.marker, f"{one.glyph}╌", "--")


def label(text: str, limit: int = 22) -> str:
    """A name from a log as figures show it: one line of at most ``limit`` characters, its head and its tail.

    Names that are long are often alike at their beginning, so the tail stays.
    """
    one = clean(text if len(text) <= 8 * limit else f"{text[: 4 * limit]} {text[-4 * limit :]}") or "(empty)"
    if len(one) <= limit:
        return one
    tail = (limit - 1) // 3
    return f"{one[: limit - 1 - tail].rstrip()}…{one[len(one) - tail :].lstrip()}"


@dataclass(frozen=True)
class Legend:
    """What lines and bars mean: (colour, glyph, words) each."""

    entries: Sequence[tuple[str, str, str]]
    kind: ClassVar[str] = "legend"


@dataclass(frozen=True)
class Panels:
    """Figures side by side, below each other where there is no room.

    Attributes:
        figures: ``<svg>`` elements.
        narrow: rem below which a figure does not shrink before the next one goes below it.
        after: a line below.
    """

    figures: Sequence[str]
    narrow: float = 19.0
    after: str = ""
    kind: ClassVar[str] = "panels"


@dataclass(frozen=True)
class Text:
    """A text as it is, which opens on request.

    Attributes:
        caption: what it is.
        text: of several lines.
    """

    caption: str
    text: str
    kind: ClassVar[str] = "text"


Block = Table | Legend | Panels | Text


@dataclass(frozen=True)
class Section:
    """One section.

    Attributes:
        name: of its anchor.
        title: of it.
        findings: sentences that a reader takes away, each computed.
        protocol: how the numbers come about.
        blocks: tables, legends and panels in order.
        notes: what else has to be said.
    """

    name: str
    title: str
    findings: Sequence[str] = ()
    protocol: str = ""
    blocks: Sequence[Block] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes:
        title: its name.
        subtitle: of what it is.
        headlines: numbers to be seen first.
        sections: in order.
        facts: the protocol, name by name.
        notes: below the facts.
        commands: how to make it again, or to use it.
        commands_title: which of both.
    """

    title: str
    subtitle: str
    headlines: Sequence[Headline] = ()
    sections: Sequence[Section] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    commands: Sequence[str] = ()
    commands_title: str = "Again"


def render_page(page: Page) -> str:
    """The text of one self-contained HTML page; everything but figures is escaped."""
    from markupsafe import Markup

    template = templates().get_template("intent.html.j2")
    return template.render(page=page, drawn=Markup, light=LIGHT, dark=DARK)


def write_page(path: Path | str, page: Page) -> Path:
    """Write a page as one HTML file, whole or not at all."""
    write_bytes(path, render_page(page).encode("utf-8", "replace"))
    return Path(path)


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
