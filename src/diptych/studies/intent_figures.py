"""What the reports of thesis chapter 6's studies draw: the statistics and evaluations that rows were measured from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from diptych.studies.intent_rows import statistics_of
from diptych.studies.verdict import Evidence

if TYPE_CHECKING:
    from diptych.report.intent_content import Legend

_SMALL = "Counts of one to four sessions are not drawn."
_BOTH = (("blue", "●", "purchase sessions"), ("orange", "■", "others"))


@dataclass(frozen=True)
class Drawn:
    """Panels of what was measured here; nothing where it is gone."""

    name: str
    title: str
    note: str
    panels: Callable[[Evidence], list[str]]
    wide: bool = False

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """The panels; their labels are those of the log."""
        return self.panels(evidence)


def length_curves() -> Drawn:
    """Figure 6.2."""

    def panels(evidence: Evidence) -> list[str]:
        from diptych.report.intent_content import Discretion
        from diptych.report.intent_figures import length_figures

        of = statistics_of(evidence)
        if of is None:
            return []
        rows, quantiles = of("session-length"), of("session-length-quantiles")
        return [_legend(_BOTH), *length_figures(rows, quantiles, Discretion())] if rows else []

    return Drawn(
        "lengths",
        "Lengths of sessions",
        "Share of sessions that have at least so many actions, on logarithmic axes; dots are P50 and P90, pale lines "
        f"all devices together. {_SMALL}",
        panels,
    )


def week_day_bars() -> Drawn:
    """Figure 6.3."""

    def panels(evidence: Evidence) -> list[str]:
        from diptych.report.intent_content import Discretion
        from diptych.report.intent_figures import week_day_figure

        of = statistics_of(evidence)
        return [] if of is None else [_legend(_BOTH), week_day_figure(of("week-days"), Discretion())]

    return Drawn(
        "week", "Days of the week", f"Intervals are 95 %; the dotted line is a seventh. {_SMALL}", panels
    )


def hour_bars() -> Drawn:
    """Figure 6.4."""

    def panels(evidence: Evidence) -> list[str]:
        from diptych.report.intent_content import Discretion
        from diptych.report.intent_figures import hour_figure

        of = statistics_of(evidence)
        return [] if of is None else [_legend(_BOTH), hour_figure(of("hours"), Discretion())]

    return Drawn("day", "Hours of the day", f"Bands are 95 % intervals. {_SMALL}", panels)


def channel_bars() -> Drawn:
    """Table 6.2."""
    return _groups("channel", "Channels")


def device_bars() -> Drawn:
    """Table 6.4."""
    return _groups("device", "Devices")


def _groups(key: str, title: str) -> Drawn:
    def panels(evidence: Evidence) -> list[str]:
        from diptych.report.intent_content import percent
        from diptych.report.intent_figures import MOST_GROUPS, class_bars, standardised_figure

        of = statistics_of(evidence)
        if of is None:
            return []
        rows = sorted(of(f"{key}s"), key=lambda row: (-row["sessions"], row[key]))[:MOST_GROUPS]
        pairs = {row[key]: (row["purchase_share"], row["other_share"]) for row in rows}
        values = {
            name: tuple(None if one is None else 100 * one for one in pair) for name, pair in pairs.items()
        }
        texts = {name: tuple(percent(one) for one in pair) for name, pair in pairs.items()}
        rates = {row[key]: row["standardised"] for row in rows if row["standardised"] is not None}
        drawn = [
            _legend(_BOTH),
            class_bars(f"{key}-shares", f"{title} of both kinds", values, texts, "% of the kind's sessions"),  # type: ignore[arg-type]
        ]
        return (
            [*drawn, standardised_figure(f"{key}-rates", "Standardised conversion rate", rates)]
            if rates
            else drawn
        )

    return Drawn(
        f"{key}s",
        title,
        "Of all groups that the log has. A standardised rate is a group's conversion rate less the mean of all "
        "groups', in their standard deviations.",
        panels,
    )


def transition_arrows() -> Drawn:
    """Figure 6.5."""

    def panels(evidence: Evidence) -> list[str]:
        from diptych.report.intent_content import Discretion
        from diptych.report.intent_figures import LINKS, transition_figure

        of = statistics_of(evidence)
        rows = [] if of is None else of("device-transitions")
        return [_legend(LINKS.values()), transition_figure(rows, Discretion())] if rows else []

    return Drawn(
        "switches",
        "Switches of devices",
        "Numbers are per cent of the transitions that leave a device; in the circles, of those that stay.",
        panels,
    )


def importance_bars() -> Drawn:
    """Figure 6.6."""

    def panels(evidence: Evidence) -> list[str]:
        from diptych.report.intent_step_figures import (
            IMPORTANCE_LEGEND,
            KINDS,
            importance_figure,
            static_figure,
            static_legend,
        )
        from diptych.studies.intent_predicting import evaluations_of

        rows = [row for one in evaluations_of(evidence) for row in one.importance if row["set"] == "extended"]
        by_setting: dict[str, list[Any]] = {}
        for row in rows:
            by_setting.setdefault(row["setting"], []).append(row)
        drawn = [
            importance_figure(f"importance-{setting}-{kind}", f"{setting}, {kind}", mine, kind)
            for setting, mine in by_setting.items()
            for kind in sorted(KINDS)
        ]
        shares = static_figure(by_setting)
        drawn = [panel for panel in drawn if panel]
        parts = [_shown(IMPORTANCE_LEGEND), *drawn] if drawn else []
        return [*parts, _shown(static_legend(list(by_setting))), shares] if shares else parts

    return Drawn(
        "importance",
        "Importance",
        "Of the random forest with the extended set; bars are means over steps, lines go from the least to the most "
        "important step. Impurity is as published; what permuting a feature on held-out sessions costs stands beside.",
        panels,
    )


def step_lines() -> Drawn:
    """Figure 6.7."""

    def panels(evidence: Evidence) -> list[str]:
        from diptych.report.intent_grid import Grid
        from diptych.report.intent_step_figures import gain_figures, measure_figures, model_legend

        found = evaluations_of_rows(evidence)
        grid = Grid([cell for one in found for cell in one.cells])
        if not grid.cells:
            return []
        gains = [{**row, "gain": row["difference"]} for one in found for row in one.gains]
        drawn = []
        for measure, title, words, reference in (
            ("f1", "F1", "calling every session a purchase", "always_buy_f1"),
            ("average_precision", "average precision", "share of purchases", "base_rate"),
        ):
            drawn += [
                _shown(model_legend(grid, words)),
                *measure_figures(grid, measure, title, lambda cell, key=reference: cell[key]),  # type: ignore[misc]
                *gain_figures(grid, gains, measure, f"gain in {title}"),
            ]
        return drawn

    def evaluations_of_rows(evidence: Evidence) -> list[Any]:
        from diptych.studies.intent_predicting import evaluations_of

        return evaluations_of(evidence)

    return Drawn(
        "steps",
        "Step by step",
        "As in Figure 6.7, with what calling every session a purchase would have. Bands and whiskers are 95 % "
        "intervals of resampled persons, of the model whose average precision is highest. Then what the extended "
        "set gains, and the same by average precision, which needs no threshold and no weights.",
        panels,
    )


def _shown(legend: Legend) -> str:
    return _legend(legend.entries)


def _legend(entries: Iterable[Sequence[str]]) -> str:
    """Colours and markers in words, as a panel of its own; colours are those of the page where it has them."""
    from diptych.report.page import LIGHT

    parts = []
    for colour, glyph, meaning in entries:
        ink = "currentColor" if colour == "ink" else f"var(--{colour}, {LIGHT[colour]})"
        parts.append(f'<span style="color: {ink}">{escape(glyph)}</span> {escape(meaning)}')
    return f'<p class="protocol">{" &nbsp; ".join(parts)}</p>'
