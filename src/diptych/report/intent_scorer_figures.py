"""One session under a scorer: its probability page by page, and the reasons for the last one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.report.drawing import BLUE, INK, ORANGE
from diptych.report.intent_discretion import percent, signed
from diptych.report.intent_page import Legend
from diptych.report.intent_series import PAPER, label, panel

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring.score import Reason, Score

__all__ = ["PATH_LEGEND", "odds_factor", "path_figure", "reasons_figure"]

PATH_LEGEND = Legend(
    (
        ("blue", "●", "probability of this session"),
        ("ink", "┄", "base rate of such sessions"),
        ("orange", "╌", "threshold, from which on it is taken for a purchase"),
    )
)


def path_figure(scores: Sequence[Score]) -> str:
    """Probability, base rate and threshold after every page, as ``<svg>``.

    Args:
        scores: of one session, by rising step; at least one.
    """
    steps = [one.step for one in scores]
    with panel("path", size=(4.8, 3.1)) as drawing:
        axes = drawing.axes
        axes.plot(steps, [100 * one.base_rate for one in scores], color=INK, linewidth=1.1, linestyle=":")
        axes.plot(steps, [100 * one.threshold for one in scores], color=ORANGE, linewidth=1.3, linestyle="--")
        axes.plot(steps, [100 * one.p for one in scores], color=BLUE, linewidth=1.9, marker="o", markersize=5)
        for one in scores:
            axes.annotate(percent(one.p), (one.step, 100 * one.p), xytext=(0, 7), textcoords="offset points",
                          ha="center", fontsize=9, color=BLUE,
                          bbox={"boxstyle": "round,pad=0.1", "facecolor": PAPER, "edgecolor": "none"})  # fmt: skip
        axes.set_ylim(0, 1.18 * max(100 * max(one.p, one.base_rate, one.threshold) for one in scores) or 1.0)
        axes.set_xlim(min(steps) - 0.4, max(steps) + 0.4)
        axes.set_xticks(steps)
        axes.set(title="Page by page", xlabel="pages that are open", ylabel="probability of a purchase (%)")
        drawing.summary = "Probability of a purchase in per cent: " + "; ".join(
            f"after {one.step} pages {percent(one.p)}, base rate {percent(one.base_rate)}, "
            f"threshold {percent(one.threshold)}"
            for one in scores
        )
    return drawing.svg


def reasons_figure(reasons: Sequence[Reason]) -> str:
    """What features do to the odds, as bars to either side on a scale of doublings, as ``<svg>``.

    Args:
        reasons: at least one.
    """
    doublings = [one.effect / math.log(2) for one in reasons]
    furthest = max(map(abs, doublings)) or 1.0
    with panel("reasons", size=(4.8, 1.0 + 0.4 * len(reasons))) as drawing:
        axes = drawing.axes
        for place, (one, value) in enumerate(zip(reasons, doublings, strict=True)):
            axes.barh(place, value, 0.62, color=BLUE if value >= 0 else ORANGE, alpha=0.85)
            axes.annotate(f"× {odds_factor(one.effect)}", (value, place), xytext=(4 if value >= 0 else -4, 0),
                          textcoords="offset points", va="center", ha="left" if value >= 0 else "right",
                          fontsize=9)  # fmt: skip
        axes.axvline(0, color=INK, linewidth=0.9)
        axes.set_yticks(range(len(reasons)), [label(one.label, 32) for one in reasons])
        axes.set_ylim(len(reasons) - 0.4, -0.6)
        room = 0.45 * furthest  # for the numbers behind the bars
        axes.set_xlim(min(0.0, *doublings) - room, max(0.0, *doublings) + room)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        axes.set_title("Reasons")
        axes.set_xlabel("doublings of the odds of a purchase", fontsize=9)
        drawing.summary = "What features do to the log-odds: " + "; ".join(
            f"{label(one.label, 32)} {signed(one.effect)}" for one in reasons
        )
    return drawing.svg


def odds_factor(effect: float) -> str:
    """What the odds are multiplied by."""
    return f"{math.exp(min(effect, 50.0)):.2g}"
