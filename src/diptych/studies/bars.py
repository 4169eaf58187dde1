"""Grouped bars: one number per row under two conditions, a panel per model, beside fixed levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diptych.studies.evidence import Evidence, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREY = "#8a929c"
_SIZE = (9.6, 3.7)  # of every panel, so that they are drawn to one scale


@dataclass(frozen=True)
class GroupedBars:
    """A panel per group of rows, and per row a bar for each of two columns.

    Attributes:
        groups: title of a panel → (row, what stands under its bars), in order.
        columns: (column, what the legend calls it), two of them.
        limit: a dotted line, the most that can be had.
        chance: a column of what knowing nothing gives: a line of fine dashes.
        reference: a column of what training began with: a dashed line.
        name, title, note, wide: of the figure's place on the page.
    """

    groups: Mapping[str, Sequence[tuple[str, str]]]
    columns: tuple[tuple[str, str], tuple[str, str]]
    limit: float
    chance: str
    reference: str
    name: str = "bars"
    title: str = "Figure"
    note: str = ""
    wide: bool = True

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """Its panels; one without a bar is left out."""
        panels = (
            self._panel(evidence, f"{self.name}-{number}", title, rows)
            for number, (title, rows) in enumerate(self.groups.items())
        )
        return [panel for panel in panels if panel is not None]

    def _panel(
        self, evidence: Evidence, name: str, title: str, rows: Sequence[tuple[str, str]]
    ) -> str | None:
        from diptych.report.drawing import BLUE, INK, ORANGE, draw

        column = self.columns[0][0]
        there = [(row, label) for row, label in rows if evidence.figure(row, column) is not None]
        if not there:
            return None
        wide = 0.38
        with draw(name, size=_SIZE) as drawing:
            axes = drawing.axes
            for shift, colour, (key, called) in zip((-0.5, 0.5), (BLUE, ORANGE), self.columns, strict=True):
                found = [(place, evidence.figure(row, key)) for place, (row, _) in enumerate(there)]
                bars = [(place, figure) for place, figure in found if figure is not None]
                if bars:
                    spreads = [0.0 if figure.sd is None else figure.sd for _, figure in bars]
                    axes.bar(
                        [place + shift * wide for place, _ in bars],
                        [figure.mean for _, figure in bars],
                        wide,
                        yerr=spreads if any(spreads) else None,
                        color=colour,
                        error_kw={"ecolor": INK, "elinewidth": 0.9, "capsize": 1.5},
                        label=called,
                    )
            axes.axhline(self.limit, color=INK, linewidth=1.1, linestyle=(0, (1, 2)))
            axes.set_ylim(0, 1.08 * self.limit)
            axes.set_xlim(-0.6, len(there) - 0.4)
            axes.set_xticks(range(len(there)), [label for _, label in there])
            axes.tick_params(axis="x", length=0, rotation=45)
            for text in axes.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor")
            levels = self._levels(axes, evidence, [row for row, _ in there])
            axes.set(title=title, ylabel=column)
            drawing.figure.legend(loc="outside upper right", ncols=4, fontsize=8.5)
            parts = [self._words(evidence, row, label) for row, label in there]
            drawing.summary = f"{title}, {column} of at most {self.limit:g}: {'; '.join(parts)}{levels}."
        return drawing.svg

    def _levels(self, axes: Axes, evidence: Evidence, rows: Sequence[str]) -> str:
        """Draw chance and reference where there are any; gives them in words."""
        said = ""
        for column, called, style in (
            (self.reference, "before fine-tuning", (0, (5, 3))),
            (self.chance, "chance", (0, (2, 2))),
        ):
            level = next(iter(evidence.only(rows, column).values()), None)
            if level is None:
                continue
            axes.axhline(level.mean, color=_GREY, linewidth=1.2, linestyle=style, label=called)
            said += f"; {called} {level.mean:.1f}"
        return said

    def _words(self, evidence: Evidence, row: str, label: str) -> str:
        """One row in words."""

        def number(figure: Figure | None) -> str:
            return "" if figure is None else f"{figure.mean:.1f}"

        values = [(called, number(evidence.figure(row, key))) for key, called in self.columns]
        return f"{label} " + ", ".join(f"{value} {called}" for called, value in values if value)
