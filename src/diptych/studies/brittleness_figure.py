"""Tables of chapter 5 as heat maps: how far each perturbation takes each model down, printed and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diptych.studies.brittleness_evidence import relative_change
from diptych.studies.brittleness_rows import KINDS, THIRTEEN
from diptych.studies.evidence import Evidence, printed_by
from diptych.studies.published import published_table

_ROW, _CELL, _LEFT, _TOP = 0.27, 0.62, 2.6, 1.15
"""Inches: height of a line, width of a cell, and the room for names."""

_CASES = 16
"""Models and collections of the printed table."""

_FULL = 0.6
"""The drop that is drawn in full colour."""


@dataclass(frozen=True)
class HeatMaps:
    """One panel of what is printed, one of what was measured here.

    Attributes:
        name, title, note, wide: of its place on the page.
    """

    name: str = "heat-map"
    title: str = "Heat map"
    note: str = (
        "Change of the sum R@1 + R@5 + R@10 from text, in per cent of the clean one: orange where it drops, full "
        "colour at 60 %; blue where it rises. Printed: kinds as in Table 5.3; here: all thirteen perturbations."
    )
    wide: bool = True

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """The panels; the printed one is always there."""
        printed = printed_by([published_table("brittleness", "table-5.3")], "thesis")
        panels = [_panel(f"{self.name}-printed", "printed", printed, KINDS, labels)]
        measured = _panel(f"{self.name}-here", "here", evidence, THIRTEEN, labels)
        return [panel for panel in (measured, *panels) if panel]


FIGURE = HeatMaps()


def _panel(
    name: str, title: str, evidence: Evidence, columns: Sequence[str], labels: Mapping[str, str]
) -> str:
    """One heat map; empty where there is nothing to draw."""
    from matplotlib.patches import Rectangle

    from diptych.report.drawing import BLUE, INK, ORANGE, draw

    found = {
        (row, collection): [relative_change(evidence, row, collection, column) for column in columns]
        for row in evidence.figures
        for collection in sorted(evidence.centric, key=str.lower)  # before its finer one
    }
    cases = {case: changes for case, changes in found.items() if any(one is not None for one in changes)}
    if not cases:
        return ""
    # As wide as the printed one, so that both come out in letters of one size.
    width, height = _LEFT + _CELL * max(_CASES, len(cases)), _TOP + _ROW * len(columns) + 0.1
    with draw(name, size=(width, height)) as drawing:
        axes = drawing.axes
        axes.set_axis_off()
        axes.set_xlim(-_LEFT, width - _LEFT)
        axes.set_ylim(-_ROW * len(columns) - 0.1, _TOP)
        axes.text(-_LEFT, _TOP - 0.2, title, color=INK, fontsize=11, weight="bold", va="center")
        for line, column in enumerate(columns):
            axes.text(-0.1, -_ROW * (line + 0.5), column, color=INK, fontsize=8.5, ha="right", va="center")
        for place, ((row, collection), changes) in enumerate(cases.items()):
            left = _CELL * place
            axes.text(
                left + _CELL / 2,
                0.06,
                f"{labels.get(row, row)}\n{collection}",
                color=INK,
                fontsize=7.5,
                rotation=60,
                ha="left",
                va="bottom",
                linespacing=1.0,
                rotation_mode="anchor",
            )
            for line, change in enumerate(changes):
                if change is None:
                    continue
                bottom = -_ROW * (line + 1)
                share = min(1.0, abs(change) / _FULL)
                axes.add_patch(
                    Rectangle(
                        (left + 0.02, bottom + 0.02),
                        _CELL - 0.04,
                        _ROW - 0.04,
                        facecolor=ORANGE if change < 0 else BLUE,
                        alpha=0.08 + 0.72 * share if change else 0.0,
                        linewidth=0,
                    )
                )
                axes.text(
                    left + _CELL / 2,
                    bottom + _ROW / 2,
                    f"{100 * change:+.1f}" if change else "0",
                    color=INK,
                    fontsize=8,
                    ha="center",
                    va="center",
                )
        drawing.summary = _summary(title, cases, columns, labels)
    return drawing.svg


def _summary(
    title: str,
    cases: Mapping[tuple[str, str], Sequence[float | None]],
    columns: Sequence[str],
    labels: Mapping[str, str],
) -> str:
    """The panel in words, for those who do not see it."""
    parts = []
    for (row, collection), changes in cases.items():
        known = {column: one for column, one in zip(columns, changes, strict=True) if one is not None}
        worst = min(known, key=lambda column: known[column])
        parts.append(f"{labels.get(row, row)} on {collection}: {worst} {100 * known[worst]:+.1f} %")
    return f"Largest drops, {title}: {'; '.join(parts)}."
