"""Figure 3.2: retrieval against FLOPs as η falls, and how much of the top 10 is the dense rows'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diptych.studies.evidence import Evidence, printed_evidence
from diptych.studies.figures import logarithmic
from diptych.studies.published import published_table
from diptych.studies.results import per_query_of

_PURPLE = "#a8588c"
_LISTED = 10


@dataclass(frozen=True)
class TradeOff:
    """Three panels: retrieval against FLOPs here and as printed, and the overlap of the top 10.

    Attributes:
        rows: from the sparsest on.
        dense: the row of the dense rows: a dashed line.
        printed: whose printed numbers have a panel of their own.
        name, title, note, wide: of the figure's place on the page.
    """

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
        colours = (BLUE, ORANGE, "#009e73", _PURPLE)
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
