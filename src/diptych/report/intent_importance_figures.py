"""What features are worth: impurity beside permutation, and static features by step (thesis Figure 6.6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from diptych.report.drawing import BLUE, INK, ORANGE
from diptych.report.intent_discretion import number, percent
from diptych.report.intent_grid import step_text
from diptych.report.intent_page import Cell, Legend, Table
from diptych.report.intent_series import label, panel, series
from diptych.report.words import shorten

Row = Mapping[str, Any]

MOST_FEATURES = 15

KINDS: Mapping[str, str] = {
    "permutation": "average precision lost when a feature is permuted",
    "impurity": "share of the decrease of impurity",
}

IMPORTANCE_LEGEND = Legend(
    (("blue", "■", "dynamic: may change while the session runs"), ("orange", "■", "static"))
)


def feature_order(rows: Sequence[Row]) -> list[str]:
    """Features by their mean over steps: of permutation, where there is one, else of impurity."""
    kind = next((kind for kind in KINDS if any(row[kind] is not None for row in rows)), "")
    means = _means(rows, kind) if kind else {}
    names = dict.fromkeys(row["feature"] for row in rows)
    return sorted(names, key=lambda name: (-means.get(name, (0.0,))[0], name))


def _means(rows: Sequence[Row], kind: str) -> dict[str, tuple[float, float, float]]:
    """Feature → mean, least and greatest over steps."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row[kind] is not None:
            values[row["feature"]].append(row[kind])
    return {name: (fmean(found), min(found), max(found)) for name, found in values.items()}


def importance_figure(name: str, title: str, rows: Sequence[Row], kind: str) -> str:
    """Bars of the mean over steps, lines from the least to the greatest, as ``<svg>``; empty for none."""
    means = _means(rows, kind)
    names = [one for one in feature_order(rows) if one in means][:MOST_FEATURES]
    if not names:
        return ""
    dynamic = {row["feature"]: row["dynamic"] for row in rows}
    shown = percent if kind == "impurity" else lambda value: number(value, 3)
    scale = 100 if kind == "impurity" else 1
    with panel(name, size=(4.8, 0.95 + 0.31 * len(names))) as drawing:
        axes = drawing.axes
        for place, one in enumerate(names):
            mean, low, high = (scale * value for value in means[one])
            axes.barh(place, mean, 0.66, color=BLUE if dynamic[one] else ORANGE, alpha=0.85)
            if high > low:
                axes.plot([low, high], [place, place], color=INK, linewidth=1.1, zorder=3)
            axes.annotate(shown(means[one][0]), (max(mean, high, 0.0), place), xytext=(4, 0),
                          textcoords="offset points", va="center", fontsize=9)  # fmt: skip
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(names)), [label(one, 26) for one in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        axes.margins(x=0.14)
        axes.set_title(title)
        axes.set_xlabel(f"{KINDS[kind]}{' (%)' if kind == 'impurity' else ''}", fontsize=9)
        drawing.summary = f"{title}, {KINDS[kind]}, mean over steps: " + "; ".join(
            f"{label(one, 26)} {shown(means[one][0])}" for one in names
        )
    return drawing.svg


def importance_table(title: str, rows: Sequence[Row], kind: str) -> Table:
    """Features × steps, the stronger the darker."""
    steps = sorted({row["step"] for row in rows})
    found = {(row["feature"], row["step"]): row for row in rows}
    greatest = max((row[kind] for row in rows if row[kind] is not None), default=0.0)
    lines = []
    for name in feature_order(rows):
        line = [Cell(shorten(name, 60))]
        for step in steps:
            row = found.get((name, step))
            if row is None or row[kind] is None:
                line.append(Cell(""))
                continue
            value, spread = row[kind], row.get("permutation_sd") if kind == "permutation" else None
            line.append(
                Cell(
                    percent(value) if kind == "impurity" else number(value, 3),
                    "" if spread is None else f"± {number(spread, 3)}",
                    max(0.0, value / greatest) if greatest > 0 else 0.0,
                    "blue" if row["dynamic"] else "orange",
                )
            )
        lines.append(tuple(line))
    unit = " in %" if kind == "impurity" else ", ± standard deviation over folds and repeats"
    return Table(
        f"{title}: {KINDS[kind]}, by step{unit}",
        ("Feature", *(step_text(step) for step in steps)),
        lines,
        folded=True,
    )


def static_shares(rows: Sequence[Row], kind: str) -> dict[int, float]:
    """Step → what static features have of the importance of all; what is lost by none is none."""
    shares = {}
    for step in sorted({row["step"] for row in rows}):
        mine = [
            (max(0.0, row[kind]), row["dynamic"])
            for row in rows
            if row["step"] == step and row[kind] is not None
        ]
        total = sum(value for value, _ in mine)
        if total > 0:
            shares[step] = sum(value for value, dynamic in mine if not dynamic) / total
    return shares


def static_legend(settings: Sequence[str]) -> Legend:
    """A colour per setting; dashes are permutation."""
    entries = [
        (series(place).name, f"{series(place).glyph}━", f"{setting}, by impurity")
        for place, setting in enumerate(settings)
    ]
    entries += [
        (series(place).name, f"{series(place).glyph}╌", f"{setting}, by permutation")
        for place, setting in enumerate(settings)
    ]
    return Legend(entries)


def static_figure(of_settings: Mapping[str, Sequence[Row]]) -> str:
    """What static features have of all importance, by step, as ``<svg>``; empty where there is one step."""
    lines = [
        (setting, kind, place, shares)
        for place, (setting, rows) in enumerate(of_settings.items())
        for kind in ("impurity", "permutation")
        if len(shares := static_shares(rows, kind)) > 1
    ]
    if not lines:
        return ""
    with panel("static", size=(4.8, 3.0)) as drawing:
        axes = drawing.axes
        for _, kind, place, shares in lines:
            way = series(place)
            axes.plot(list(shares), [100 * share for share in shares.values()], color=way.colour, marker=way.marker,
                      markersize=4.2, linewidth=1.6, linestyle="-" if kind == "impurity" else "--")  # fmt: skip
        axes.set_ylim(0, 104)
        axes.set_xticks(sorted({step for *_, shares in lines for step in shares}))
        axes.set(
            title="Static features", xlabel="pages opened before the prediction", ylabel="% of all importance"
        )
        drawing.summary = "Static features' share of all importance by step in per cent: " + "; ".join(
            f"{setting}, {kind} "
            + ", ".join(f"step {step} {percent(share)}" for step, share in shares.items())
            for setting, kind, _, shares in lines
        )
    return drawing.svg
