"""What the reports of thesis chapter 6's studies draw: the statistics and evaluations that rows were measured from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diptych.studies.intent_rows import statistics_of
from diptych.studies.verdict import Evidence

if TYPE_CHECKING:
    from diptych.core.chart import Chart


@dataclass(frozen=True)
class Drawn:
    """Charts of what was measured here; nothing where it is gone."""

    name: str
    title: str
    note: str
    charts: Callable[[Evidence], list[Chart]]
    wide: bool = False

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[Chart]:
        """Return the charts; their labels are those of the log."""
        return self.charts(evidence)


def statistic(name: str, title: str, note: str) -> Drawn:
    """Return the charts of a statistic, as the page of a description has them."""

    def charts(evidence: Evidence) -> list[Chart]:
        from diptych.commerce.purchase_intent.statistics.shown import charts_of

        of = statistics_of(evidence)
        return [] if of is None else charts_of(name, of(name))

    return Drawn(
        name, title, f"{note} Counts of one to four, and what follows from them, are not drawn.", charts
    )


def length_curves() -> Drawn:
    """Return Figure 6.2."""
    note = "Share of sessions that have at least so many actions, on logarithmic axes."
    return statistic("session-length", "Lengths of sessions", note)


def week_day_bars() -> Drawn:
    """Return Figure 6.3."""
    return statistic("week-days", "Days of the week", "Intervals are 95 %.")


def hour_bars() -> Drawn:
    """Return Figure 6.4."""
    return statistic("hours", "Hours of the day", "Bands are 95 % intervals.")


def channel_bars() -> Drawn:
    """Return Table 6.2 as a figure."""
    return statistic("channels", "Channels", "Of all channels that the log has.")


def device_bars() -> Drawn:
    """Return Table 6.4 as a figure."""
    return statistic("devices", "Devices", "Of all devices that the log has.")


def importance_bars() -> Drawn:
    """Return Figure 6.6."""

    def charts(evidence: Evidence) -> list[Chart]:
        from diptych.commerce.purchase_intent.evaluation.shown import importance_charts
        from diptych.studies.intent_predicting import evaluations_of

        return importance_charts([row for one in evaluations_of(evidence) for row in one.importance])

    return Drawn(
        "importance",
        "Importance",
        "Of the random forest with the extended set; bars are means over the steps with pages. Impurity "
        "is as published; permutation is on held-out sessions.",
        charts,
    )


def step_lines() -> Drawn:
    """Return Figure 6.7."""

    def charts(evidence: Evidence) -> list[Chart]:
        from diptych.commerce.purchase_intent.evaluation.shown import Grid, gain_charts, step_charts
        from diptych.studies.intent_predicting import evaluations_of

        found = evaluations_of(evidence)
        grid = Grid([cell for one in found for cell in one.cells])
        drawn = [chart for measure in ("f1", "average_precision") for chart in step_charts(grid, measure)]
        return [*drawn, *gain_charts(grid, [gain for one in found for gain in one.gains])]

    return Drawn(
        "steps",
        "Step by step",
        "As in Figure 6.7, with what calling every session a purchase would have. Intervals are 95 % of resampled "
        "persons, of the model whose average precision is highest at the last step. Then what the extended set gains.",
        charts,
    )
