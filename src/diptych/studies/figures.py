"""A study's figures: one number of every row beside the paper's, and how trainings went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diptych.studies.published import published_table
from diptych.studies.results import per_query_of
from diptych.studies.verdict import Evidence, Trajectory, printed_evidence

if TYPE_CHECKING:
    from matplotlib.axis import Axis

    from diptych.studies.compare import Block


_GREEN, _PURPLE, _GREY = "#009e73", "#a8588c", "#8a929c"  # Okabe and Ito's, dark enough for paper
_POINTS = 500
_DECADES = 300  # from the lowest to the highest: more has no room for numbers between powers of ten


def charted_column(columns: Sequence[str]) -> str:
    """The column that stands for a row: the recall sum or the throughput where there is one, else the first."""
    return next((name for name in ("rsum", "throughput @10") if name in columns), columns[0])


def logarithmic(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis: at powers of ten, and at 2 and 5 of them where there is room."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(10, subs=(1.0,) if high > _DECADES * low else (1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,g}")  # powers would be drawn as formulas


def comparison_figure(
    block: Block, columns: Sequence[str], name: str = "comparison", on_log: Sequence[str] = ()
) -> str | None:
    """Measured and printed values of one column, a line per row, as an ``<svg>``; None without any.

    Columns in ``on_log`` are drawn on a logarithmic axis.
    """
    from diptych.report.drawing import BLUE, ORANGE, draw

    column = charted_column(columns)
    rows = []
    for row in block.rows:
        cell = next(cell for cell in row.cells if cell.column == column)
        if cell.measured is not None or cell.published is not None:
            rows.append((row.name, cell))
    if not any(cell.measured is not None for _, cell in rows):
        return None
    parts = []
    with draw(name, size=(7.2, 0.75 + 0.34 * len(rows))) as drawing:
        axes = drawing.axes
        places = range(len(rows) - 1, -1, -1)
        for place, (label, cell) in zip(places, rows, strict=True):
            if cell.published is not None and not cell.published.bound:  # a bound is no point
                axes.errorbar(
                    cell.published.value,
                    place + 0.13,
                    xerr=cell.published.seed_sd,
                    color=ORANGE,
                    marker="D",
                    markersize=5,
                    capsize=2.5,
                    linestyle="none",
                    label=f"printed, {block.on.dataset}",
                )
            if cell.measured is not None:
                axes.errorbar(
                    cell.measured.mean,
                    place - 0.13,
                    xerr=cell.measured.sd,
                    color=BLUE,
                    marker="o",
                    markersize=5.5,
                    capsize=2.5,
                    linestyle="none",
                    label="measured here",
                )
                parts.append(f"{label} {cell.measured.mean:.1f}")
        axes.set_yticks(list(places), [label for label, _ in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.set(title=f"{column}, mean and standard deviation over seeds", xlabel=column)
        if column in on_log:
            axes.set_xscale("log")
            logarithmic(axes.xaxis)
        handles, labels = axes.get_legend_handles_labels()
        once = dict(zip(labels, handles, strict=True))
        drawing.figure.legend(once.values(), once.keys(), loc="outside upper right", ncols=2)
        drawing.summary = f"{column} per row: {'; '.join(parts)}."
    return drawing.svg


@dataclass(frozen=True)
class Trajectories:
    """How the trainings of a study went, a panel per quantity."""

    name: str = "trajectories"
    title: str = "Trajectories"
    note: str = (
        "The first seed of each row. Losses are smoothed over a fiftieth of the training; dotted lines are "
        "the bounds."
    )
    wide: bool = False

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """Its panels; those without a line are left out."""
        return trajectory_figures(evidence, labels)


def trajectory_figures(evidence: Evidence, labels: Mapping[str, str], name: str = "trajectory") -> list[str]:
    """Validation rsum, λ and both losses over the steps of training, a line per row, as ``<svg>``\\ s."""
    panels: tuple[
        tuple[str, str, str, Callable[[Trajectory], tuple[Sequence[float], Sequence[float]]]], ...
    ] = (
        ("rsum", "Validation rsum", "linear", lambda t: (t.epoch_steps, t.rsum)),
        (
            "multiplier",
            "Multiplier λ",
            "symlog",
            lambda t: (t.steps if len(t.multiplier) else (), t.multiplier),
        ),
        (
            "reconstruction",
            "Reconstruction loss",
            "linear",
            lambda t: (t.steps if len(t.reconstruction) else (), t.reconstruction),
        ),
        ("contrastive", "Contrastive loss", "linear", lambda t: (t.steps, t.contrastive)),
    )
    found = []
    for key, title, scale, of in panels:
        svg = _panel(evidence, labels, f"{name}-{key}", title, scale, of, bounds=key == "reconstruction")
        if svg is not None:
            found.append(svg)
    return found


def _panel(
    evidence: Evidence,
    labels: Mapping[str, str],
    name: str,
    title: str,
    scale: str,
    of: Callable[[Trajectory], tuple[Sequence[float], Sequence[float]]],
    bounds: bool,
) -> str | None:
    import numpy as np

    from diptych.report.drawing import BLUE, INK, ORANGE, draw
    from diptych.report.html import thin
    from diptych.studies.observations import final, smoothed

    styles = [
        (BLUE, "-"),
        (_GREEN, "-"),
        (ORANGE, "-"),
        (_PURPLE, "-"),
        (INK, (0, (4, 2))),
        (_GREY, (0, (1, 1))),
    ]
    lines = []
    for style, (row, label) in zip(styles, labels.items(), strict=False):
        for trajectory in evidence.trajectories.get(row, ())[:1]:
            x, y = of(trajectory)
            if len(y):
                lines.append((style, label, x, y, trajectory.bound))
    if not lines:
        return None
    parts = []
    with draw(name, size=(5.2, 4.0)) as drawing:
        axes = drawing.axes
        for (colour, dashes), label, x, y, bound in lines:
            rough = len(x) > _POINTS / 10 and scale == "linear"
            values = smoothed(y) if rough else np.asarray(y)
            marker = "o" if len(y) == 1 else None
            axes.plot(
                *thin(np.asarray(x), values, _POINTS),
                color=colour,
                linestyle=dashes,
                linewidth=1.6,
                label=label,
                marker=marker,
            )
            if bounds and bound is not None:
                axes.axhline(bound, color=colour, linewidth=0.8, linestyle=(0, (1, 3)))
            parts.append(f"{label} ends at {final(y):.3g}")
        if scale == "symlog":
            axes.set_yscale("symlog", linthresh=0.01)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # powers would be drawn as formulas
        axes.set(title=title, xlabel="step")
        drawing.figure.legend(loc="outside lower left", ncols=2, fontsize=8.5)
        drawing.summary = f"{title} over the steps of training: {'; '.join(parts)}."
    return drawing.svg


_TRADEOFF_PURPLE = "#a8588c"
_LISTED = 10


@dataclass(frozen=True)
class TradeOff:
    """Three panels: retrieval against FLOPs here and as printed, and the overlap of the top 10."""

    rows: Sequence[str]
    dense: str
    printed: str
    name: str = "figure"
    title: str = "Figure 3.2"
    note: str = (
        "Captions asking for pictures, against the terms that a caption and a picture have in common on average; a "
        "point per η, the dense rows dashed. And in how many of the ten best pictures a head and its dense rows agree, "
        "share of captions; dotted: the mean."
    )
    wide: bool = False

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """Its panels; those without a point are left out."""
        tables = [published_table("d2s", name) for name in ("figure-3.2", "table-3.1")]
        as_printed = printed_evidence(tables, self.printed)
        panels = (
            self._trade(evidence, f"{self.name}-here", "Measured here", labels),
            self._trade(as_printed, f"{self.name}-printed", f"As printed, {self.printed}", labels),
            self._overlap(evidence, f"{self.name}-overlap", labels),
        )
        return [panel for panel in panels if panel is not None]

    def _trade(self, evidence: Evidence, name: str, title: str, labels: Mapping[str, str]) -> str | None:
        from diptych.report.drawing import BLUE, ORANGE, draw

        parts = []
        with draw(name, size=(5.2, 4.0)) as drawing:
            axes = drawing.axes
            for column, colour, marker in (("t2i R@1", BLUE, "o"), ("t2i MRR@10", ORANGE, "D")):
                points = self._points(evidence, column)
                if points:
                    axes.plot(
                        *zip(*points, strict=True), color=colour, marker=marker, markersize=5, label=column
                    )
                    parts += [f"{column} {y:.1f} at {x:.1f} FLOPs" for x, y in points]
                level = evidence.figure(self.dense, column)
                if level is not None:
                    axes.axhline(level.mean, color=colour, linewidth=1.0, linestyle=(0, (5, 3)))
                    parts.append(f"{column} {level.mean:.1f} dense")
            axes.set_xscale("log")
            logarithmic(axes.xaxis)
            axes.set(title=title, xlabel="FLOPs", ylabel="per cent")
            drawing.figure.legend(loc="outside lower left", ncols=2, fontsize=8.5)
            drawing.summary = f"{title}: {'; '.join(parts)}."
        return drawing.svg if any("at" in part for part in parts) else None

    def _points(self, evidence: Evidence, column: str) -> list[tuple[float, float]]:
        """(FLOPs, value) of every row that has both."""
        found = []
        for row in self.rows:
            cost, value = evidence.figure(row, "FLOPs"), evidence.figure(row, column)
            if cost is not None and value is not None and cost.mean > 0:
                found.append((cost.mean, value.mean))
        return found

    def _overlap(self, evidence: Evidence, name: str, labels: Mapping[str, str]) -> str | None:
        import numpy as np

        from diptych.report.drawing import BLUE, ORANGE, draw

        shares = {}
        for row in self.rows:
            kept = per_query_of(evidence, row, "overlap@10")
            if kept is not None:
                places = np.rint(kept[0] / 100 * _LISTED).astype(np.int64)
                shares[row] = np.bincount(places, minlength=_LISTED + 1) / len(places)
        if not shares:
            return None
        colours = (BLUE, ORANGE, "#009e73", _TRADEOFF_PURPLE)
        parts = []
        with draw(name, size=(5.2, 4.0)) as drawing:
            axes = drawing.axes
            for colour, (row, share) in zip(colours, shares.items(), strict=False):
                mean = float(share @ np.arange(_LISTED + 1))
                axes.plot(
                    range(_LISTED + 1), 100 * share, color=colour, marker="o", markersize=4, label=labels[row]
                )
                axes.axvline(mean, color=colour, linewidth=0.9, linestyle=(0, (1, 2)))
                parts.append(f"{labels[row]} {mean:.1f} of {_LISTED} on average")
            axes.set_xticks(range(0, _LISTED + 1, 2))
            axes.set(
                title="Overlap of the top 10", xlabel="pictures in both lists", ylabel="per cent of captions"
            )
            drawing.figure.legend(loc="outside lower left", ncols=2, fontsize=8.5)
            drawing.summary = f"Overlap of the top 10: {'; '.join(parts)}."
        return drawing.svg
