"""The information audit as a page: kinds of information, Theorem 1's gap, every question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.analysis.information import CONDITIONS, GROUPS, READING, SIDES, Audit, Held, gap_of
from diptych.core.errors import DataError
from diptych.core.files import write_bytes
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.page import DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from diptych.analysis.information.audit_report import QuestionFigure, Side


SUMS = ("one caption", "task-relevant")
"""Groups that are sums of others: the gap is about them, tables and bars of kinds are not."""

MOST_BARS = 40
"""Questions that a figure shows; the table has all."""

_COLOURS = {"without": BLUE, "with": ORANGE}
_ROW = 0.34  # inches of a question with one bar


def kinds_figure(audit: Audit) -> str:
    """Bars of what the first probe finds of each kind, both sides and conditions, as ``<svg>``.

    A further probe is a diamond beside its bar. Whiskers are intervals.
    """
    content, parts = audit.protocol.content, []
    kinds = {
        side: [
            kind
            for kind in GROUPS[content][side]
            if kind not in SUMS and any(sides[side].group(kind) for sides in audit.conditions.values())
        ]
        for side in SIDES
    }
    height = 0.9 + 0.42 * max(len(names) for names in kinds.values()) * (
        1 + 0.35 * (len(audit.conditions) - 1)
    )
    with draw("kinds", size=(8.8, height)) as drawing:
        drawing.axes.remove()
        grid = drawing.figure.add_gridspec(1, 2)
        for column, (side, names) in enumerate(kinds.items()):
            axes = drawing.figure.add_subplot(grid[0, column], facecolor="none")
            for condition, sides in audit.conditions.items():
                bars = {}
                for place, kind in enumerate(names):
                    group = sides[side].group(kind)
                    if group is not None:
                        bars[float(place)] = group.held
                        first = next(iter(group.held.values()))
                        parts.append(f"{SIDES[side]} {CONDITIONS[condition]} {kind} {first.show()}")
                _bars(axes, bars, condition, len(audit.conditions))
            axes.set_yticks(range(len(names)), names)
            _finish(axes, SIDES[side], len(names))
        _legend(drawing.figure)
        drawing.summary = f"Per cent of each kind of information held: {'; '.join(parts)}."
    return drawing.svg


def gap_figure(audit: Audit) -> str:
    """Bits per image there and held, against one caption's and all captions' bits, as ``<svg>``.

    Above, one box per kind, as wide as its bits, filled as far as they are held; below, all that is
    held as one bar with its interval.
    """
    probe = next(iter(audit.protocol.probes))
    gaps = {
        condition: gap
        for condition, sides in audit.conditions.items()
        if (gap := gap_of(sides["image"], probe)) is not None
    }
    if not gaps:
        raise DataError("without facts there is no gap to draw", "leave the figure out")
    summaries, widest = [], max(gap.optimal for gap in gaps.values())
    with draw("gap", size=(8.8, 0.8 + 1.5 * len(gaps))) as drawing:
        axes = drawing.axes
        places, words = [], []
        for number, (condition, gap) in enumerate(gaps.items()):
            colour, top = _COLOURS[condition], 2.6 * number
            left = 0.0
            for kind in ("shared", "partial", "specific", "shortcut"):
                group = audit.conditions[condition]["image"].group(kind)
                if group is None:
                    continue
                held = group.held[probe]
                # of digits those that a caption has: others are no part of any caption's task
                there = gap.shortcut if kind == "shortcut" else held.there
                if there == 0:
                    continue
                axes.barh(top, there, 0.7, left=left, facecolor="none", edgecolor=INK, linewidth=0.8)
                axes.barh(top, there * held.percent / 100, 0.7, left=left, color=colour, alpha=0.85)
                if there > 0.06 * gap.optimal:
                    axes.annotate(
                        kind,
                        (left + there / 2, top - 0.42),
                        ha="center",
                        va="bottom",
                        fontsize=9,
                    )
                left += there
            value, low, high = gap.held
            axes.barh(top + 0.95, value, 0.5, color=colour, alpha=0.85)
            axes.errorbar(
                value, top + 0.95, xerr=_whiskers(value, low, high), color=INK, capsize=3, linewidth=1.2
            )
            axes.annotate(
                f"held {value:.1f}",
                (max(value, high), top + 0.95),
                (6, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
            # side by side, or away from each other where there is no room for both between them
            near = gap.optimal - gap.minimal < 0.25 * widest
            one, every = ("right", "left") if near else ("center", "right")
            for bits, label, side in (
                (gap.minimal, "one caption", one),
                (gap.optimal, "all captions", every),
            ):
                axes.plot(
                    [bits, bits], [top - 0.38, top + 1.25], color=INK, linewidth=1.4, linestyle=(0, (3, 2))
                )
                axes.annotate(
                    f"{label} {bits:.1f}",
                    (bits, top + 1.28),
                    (0, -2),
                    textcoords="offset points",
                    ha=side,
                    va="top",
                    fontsize=9,
                )
            places += [top, top + 0.95]
            words += [f"there, {CONDITIONS[condition]}" if len(gaps) > 1 else "there", "held"]
            summaries.append(
                f"{CONDITIONS[condition]} {value:.1f} of {gap.optimal:.1f} bits per image are held; one caption states "
                f"{gap.minimal:.1f}"
            )
        axes.set_yticks(places, words)
        axes.set_ylim(2.6 * len(gaps) - 0.75, -0.85)
        axes.set_xlim(0, widest * 1.01)
        axes.set(xlabel="bits per image")
        axes.tick_params(axis="y", length=0)
        axes.grid(False)
        axes.spines["left"].set_visible(False)
        drawing.summary = f"Theorem 1's gap: {'; '.join(summaries)}."
    return drawing.svg


def shown_questions(side: Side) -> list[QuestionFigure]:
    """The questions that a figure shows: those with the most bits, when there are too many."""
    asked = [one for one in side.questions if not one.key.startswith("unstated ")]
    most = sorted(asked, key=lambda one: -one.entropy * one.rows[1])[:MOST_BARS]
    kept = {one.key for one in most}
    return [one for one in asked if one.key in kept]


def questions_figure(audit: Audit, side: str) -> str:
    """Bars of every question of one side, the best held first, as ``<svg>``."""
    conditions = audit.conditions
    order: dict[str, float] = {}
    for sides in conditions.values():
        for one in shown_questions(sides[side]):
            first = next(iter(one.probes.values())).held.percent
            order.setdefault(one.key, first)
    keys = sorted(order, key=lambda key: (-order[key], key))
    with draw(
        f"questions-{side}", size=(8.8, 0.9 + _ROW * len(keys) * (1 + 0.4 * (len(conditions) - 1)))
    ) as drawing:
        for condition, sides in conditions.items():
            found = {one.key: one for one in sides[side].questions}
            bars = {
                float(place): {probe: one.held for probe, one in found[key].probes.items()}
                for place, key in enumerate(keys)
                if key in found
            }
            _bars(drawing.axes, bars, condition, len(conditions))
        drawing.axes.set_yticks(range(len(keys)), keys)
        _finish(drawing.axes, "", len(keys))
        _legend(drawing.figure)
        drawing.summary = f"Per cent of each question's bits held by {SIDES[side]}: " + "; ".join(
            f"{key} {order[key]:.1f}" for key in keys
        )
    return drawing.svg


def _bars(axes: Axes, bars: dict[float, dict[str, Held]], condition: str, n_conditions: int) -> None:
    """One condition's bars at their places: the first probe as a bar, others as diamonds."""
    if not bars:
        return
    height = 0.76 / n_conditions
    shift = 0.0 if n_conditions == 1 else (-0.5 if condition == "without" else 0.5) * height
    colour, probes = _COLOURS[condition], list(next(iter(bars.values())))
    said = f", {CONDITIONS[condition]}" if n_conditions > 1 else ""
    places = [place + shift for place in bars]
    first = [held[probes[0]] for held in bars.values()]
    axes.barh(
        places,
        [one.percent for one in first],
        height * 0.92,
        color=colour,
        alpha=0.85,
        label=f"{probes[0]} probe{said}",
    )
    for place, one in zip(places, first, strict=True):
        low, high = one.ends
        axes.errorbar(
            one.percent,
            place,
            xerr=_whiskers(one.percent, low, high),
            color=INK,
            capsize=2,
            linewidth=1.0,
        )
    for probe in probes[1:]:
        axes.plot(
            [held[probe].percent for held in bars.values()],
            places,
            linestyle="none",
            marker="D",
            markersize=4.5,
            markerfacecolor="none",
            markeredgecolor=INK,
            label=f"{probe} probe" if condition == "without" else None,
            clip_on=False,
        )


def _whiskers(value: float, low: float, high: float) -> list[list[float]]:
    """How far whiskers go to either side; an interval of few resamples may lie beside its figure."""
    return [[max(0.0, value - low)], [max(0.0, high - value)]]


def _legend(figure: Figure) -> None:
    """Bars first, as they are read."""
    named = dict(
        (label, handle)
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    )
    labels = sorted(named, key=lambda label: "," not in label and not label.startswith("linear"))
    figure.legend([named[label] for label in labels], labels, loc="outside lower left", ncols=len(labels))


def _finish(axes: Axes, title: str, n_places: int) -> None:
    axes.set_ylim(n_places - 0.45, -0.55)
    axes.set_xlim(0, 100)
    axes.set(title=title, xlabel="held (% of the bits there)")
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.grid(True, axis="x")


def render_audit(audit: Audit, name: str) -> str:
    """The text of one self-contained HTML page."""
    from markupsafe import Markup

    from diptych.report.page import templates

    conditions = {key: words for key, words in CONDITIONS.items() if key in audit.conditions}
    probes = list(audit.protocol.probes)
    gaps = {
        condition: {probe: gap_of(audit.conditions[condition]["image"], probe) for probe in probes}
        for condition in conditions
    }
    has_gap = any(gap is not None for by_probe in gaps.values() for gap in by_probe.values())
    return (
        templates()
        .get_template("information.html.j2")
        .render(
            name=name,
            audit=audit,
            probes=probes,
            conditions=conditions,
            columns=[(condition, probe) for condition in conditions for probe in probes],
            sides={side: {"title": SIDES[side], "kinds": _kinds(audit, side)} for side in SIDES},
            kinds_figure=Markup(kinds_figure(audit)),
            gaps=gaps if has_gap else {},
            gap_figure=Markup(gap_figure(audit)) if has_gap else "",
            question_figures={side: Markup(questions_figure(audit, side)) for side in SIDES},
            left_out={side: _left_out(audit, side) for side in SIDES},
            most_bars=MOST_BARS,
            reading=READING[audit.protocol.content],
            notes=audit.notes(),
            light=LIGHT,
            dark=DARK,
        )
    )


def write_audit_page(audit: Audit, path: Path | str, name: str) -> Path:
    """Write tables, figures and protocol as one HTML file, whole or not at all."""
    write_bytes(path, render_audit(audit, name).encode("utf-8", "replace"))
    return Path(path)


def _kinds(audit: Audit, side: str) -> list[dict[str, Any]]:
    """One row per kind: name, meaning, bits there, and per condition and probe what is held."""
    rows = []
    for kind, meaning in GROUPS[audit.protocol.content][side].items():
        figures = {
            (condition, probe): audit.held(condition, side, kind, probe)
            for condition in audit.conditions
            for probe in audit.protocol.probes
        }
        there = next((one.there for one in figures.values() if one is not None), None)
        if there is not None and kind not in SUMS:
            rows.append({"name": kind, "meaning": meaning, "there": there, "figures": figures})
    return rows


def _left_out(audit: Audit, side: str) -> int:
    """How many questions of the condition with the most have no bar."""
    return max(
        sum(not one.key.startswith("unstated ") for one in sides[side].questions)
        - len(shown_questions(sides[side]))
        for sides in audit.conditions.values()
    )
