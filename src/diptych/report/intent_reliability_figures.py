"""Reliability diagrams: what probabilities say beside what happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.report.drawing import BLUE, INK, ORANGE
from diptych.report.intent_discretion import percent
from diptych.report.intent_page import Legend
from diptych.report.intent_series import panel

Row = Mapping[str, Any]

RELIABILITY_LEGEND = Legend(
    (
        ("blue", "●", "calibrated"),
        ("orange", "■", "as the model gives them"),
        ("ink", "┄", "as many as are said"),
    )
)

_SAID = (("reliability", "raw", ORANGE, "s", "--"), ("reliability_calibrated", "calibrated", BLUE, "o", "-"))


def reliability_figure(name: str, title: str, cell: Row) -> str:
    """Mean probability and share of purchases of every bin, raw and calibrated, as ``<svg>``; empty for neither."""
    curves: list[tuple[Sequence[Row], str, str, str, str]] = [
        (cell[key], said, colour, marker, dash) for key, said, colour, marker, dash in _SAID if cell.get(key)
    ]
    if not curves:
        return ""
    most = max(value for bins, *_ in curves for one in bins for value in (one["mean_score"], one["share"]))
    top = 100 * min(1.0, 1.06 * most or 1.0)
    parts = []
    with panel(name, size=(4.8, 3.7)) as drawing:
        axes = drawing.axes
        axes.plot([0, top], [0, top], color=INK, linewidth=1.1, linestyle=":")
        for bins, said, colour, marker, dash in curves:
            axes.plot(
                [100 * one["mean_score"] for one in bins],
                [100 * one["share"] for one in bins],
                color=colour,
                marker=marker,
                markersize=4.5,
                linewidth=1.5,
                linestyle=dash,
                clip_on=False,
            )
            parts.append(
                f"{said} "
                + ", ".join(
                    f"{percent(one['mean_score'])} said {percent(one['share'])} bought" for one in bins
                )
            )
        axes.set_xlim(0, top)
        axes.set_ylim(0, top)
        axes.set_aspect("equal")
        axes.grid(True, axis="both")
        axes.set(title=title, xlabel="mean probability (%)", ylabel="purchases (%)")
        drawing.summary = f"Reliability, {title}, in per cent: {'; '.join(parts)}."
    return drawing.svg
