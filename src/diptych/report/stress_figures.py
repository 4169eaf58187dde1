"""Figures of a stress run: heat maps of what is lost and who loses it, and bars of what is preferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from diptych.core.errors import DataError
from diptych.evaluation.stress import Agreement, StressResult, StressRow
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.heat import FIGURE_WIDTH, add_cell, bare, heat_figure


def drop_figure(result: StressResult) -> str:
    """Perturbations × measures: what is lost, in per cent of the clean value, as ``<svg>``.

    What is significant is bold. A gain is blue.
    """
    if not result.rows:
        raise DataError("no perturbation was run, so there is nothing to draw", "leave the figure out")
    values = np.array(
        [
            [np.nan if (part := row.drops[name].relative) is None else 100 * part for name in result.measures]
            for row in result.rows
        ]
    )
    strong = np.array([[bool(row.drops[name].verdict) for name in result.measures] for row in result.rows])
    texts = [[_percent(value) for value in line] for line in values]
    return heat_figure(
        "drops",
        [row.name for row in result.rows],
        list(result.measures),
        -values,
        texts,
        strong,
        [row.group for row in result.rows],
        "Relative change in per cent of the clean value",
    )


def length_figure(rows: Sequence[StressRow]) -> str:
    """Perturbations × lengths of captions: the share of captions that got worse, as ``<svg>``."""
    rows = [row for row in rows if row.lengths]
    if not rows:
        raise DataError("no captions were perturbed, so there are no lengths", "leave the figure out")
    columns = [
        f"{one.low}–{one.high} words" if one.low < one.high else f"{one.low} words" for one in rows[0].lengths
    ]
    values = np.array([[100 * one.decreased for one in row.lengths] for row in rows])
    return heat_figure(
        "lengths",
        [row.name for row in rows],
        columns,
        values,
        [[f"{value:.1f}" for value in line] for line in values],
        np.zeros(values.shape, dtype=bool),
        [row.group for row in rows],
        "Captions that got worse, in per cent, by their number of words",
    )


def agreement_figure(agreement: Agreement, names: Sequence[str], group: str, name: str = "agreement") -> str:
    """Perturbations × perturbations: Jaccard similarity of the queries that ``group``, as ``<svg>``."""
    if len(names) < 2:
        raise DataError(f"{len(names)} perturbation has nothing to agree with", "leave the figure out")
    of = {(pair["first"], pair["second"]): pair[group] for pair in agreement.pairs}
    size, parts = len(names), []
    with draw(f"{name}-{group}", size=(FIGURE_WIDTH, 1.9 + 0.25 * size)) as drawing:
        axes = drawing.axes
        for row in range(1, size):
            for column in range(row):
                value = of.get((names[column], names[row]), of.get((names[row], names[column])))
                if value is None:
                    continue
                text = f"{value:.2f}"[1:] if value < 0.995 else "1"
                add_cell(axes, column, row, value, BLUE, text, fontsize=8 if size <= 16 else 6.5)
                parts.append(f"{names[row]} and {names[column]} {value:.2f}")
        axes.set_xlim(-0.5, size - 1.5)
        axes.set_ylim(size - 0.5, 0.5)
        axes.set_yticks(range(1, size), names[1:], fontsize=9)
        axes.set_xticks(
            range(size - 1), names[:-1], fontsize=9, rotation=45, ha="right", rotation_mode="anchor"
        )
        bare(axes)
        drawing.summary = f"Jaccard similarity of queries that {group}: {'; '.join(parts)}."
    return drawing.svg


def preference_figure(rows: Sequence[StressRow]) -> str:
    """How often the clean caption is preferred, with intervals, beside the 50 % of the blind, as ``<svg>``."""
    rows = [row for row in rows if row.preference is not None]
    if not rows:
        raise DataError("no perturbation has a preference", "leave the figure out")
    shown: Mapping[str, str] = {
        row.name: f"{100 * row.preference.share:.1f} %" for row in rows if row.preference
    }
    with draw("preference", size=(FIGURE_WIDTH, 0.9 + 0.36 * len(rows))) as drawing:
        axes = drawing.axes
        for place, row in enumerate(rows):
            one = row.preference
            assert one is not None
            share = 100 * one.share
            seen = one.corrected <= 0.05
            axes.barh(place, share - 50, 0.6, left=50, color=BLUE if share >= 50 else ORANGE,
                      alpha=0.8 if seen else 0.35)  # fmt: skip
            if one.low is not None and one.high is not None:
                axes.errorbar(
                    share,
                    place,
                    xerr=[[max(0.0, share - 100 * one.low)], [max(0.0, 100 * one.high - share)]],
                    color=INK,
                    capsize=3,
                    linewidth=1.1,
                )
            axes.annotate(
                shown[row.name],
                (100, place),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=9.5,
                annotation_clip=False,
            )
        axes.axvline(50, color=INK, linewidth=0.9, linestyle=":")
        axes.set_yticks(range(len(rows)), [row.name for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        least = min(50.0, *(100 * row.preference.share for row in rows if row.preference))
        axes.set_xlim(min(40.0, 10 * np.floor(least / 10)), 100)
        axes.set(xlabel="pairs in which the own picture scores the clean caption higher (%); 50 is blind")
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        drawing.summary = "Clean caption preferred: " + "; ".join(
            f"{name} {share}" for name, share in shown.items()
        )
    return drawing.svg


def _percent(value: float) -> str:
    if np.isnan(value):
        return "–"
    return "0" if value == 0 else f"{value:+.1f}"
