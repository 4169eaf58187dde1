"""An exploration of protocols as a page: the verdict, single changes, the nearest variants, the digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from diptych.core.files import write_bytes
from diptych.evaluation.printed import DigitReport, Target
from diptych.evaluation.variants import AXES, Exploration, Variant, explain
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.page import DARK, LIGHT

SHOWN_VARIANTS = 25
"""Variants in the table of a page; the artefact has all."""


def shown_variants(found: Exploration, most: int) -> list[Variant]:
    """The default, what explains, and the nearest others, none with the values of one before."""
    shown: list[Variant] = []
    seen: set[tuple[float, ...]] = set()
    for one in (found.as_given, *found.exact_explanations[:1], *found.explanations, *found.variants):
        values = tuple(round(value, 6) for value in one.values.values())
        # The same numbers with the digits cut off are another print.
        key = (*values, float(len(one.exact)))
        if key not in seen and len(shown) < most:
            seen.add(key)
            shown.append(one)
    return shown


def render_protocol(
    target: Target,
    digits: DigitReport,
    found: Exploration | None = None,
    *,
    name: str = "",
    lines: Sequence[str] = (),
) -> str:
    """The text of one self-contained HTML page."""
    from markupsafe import Markup

    from diptych.report.page import templates

    figure: Any = ""
    if found is not None:
        figure = Markup(distance_figure(found))
    return (
        templates()
        .get_template("protocol.html.j2")
        .render(
            name=name,
            target=target if found is None else found.target,
            found=found,
            says=[] if found is None else explain(found),
            shown=[] if found is None else shown_variants(found, SHOWN_VARIANTS),
            descriptions={axis.name: axis.description for axis in AXES},
            figure=figure,
            digits=digits.sentences(),
            lines=lines,
            light=LIGHT,
            dark=DARK,
        )
    )


def write_protocol_page(
    path: Path | str, target: Target, digits: DigitReport, found: Exploration | None = None, **options: Any
) -> Path:
    """Write the page as one HTML file, whole or not at all; options as of :func:`render_protocol`."""
    write_bytes(path, render_protocol(target, digits, found, **options).encode("utf-8", "replace"))
    return Path(path)


_ROW = 0.36  # inches of a bar
_LINE = 0.17  # inches of every further line of a label
_LONG = 40  # characters of such a line


def distance_figure(found: Exploration) -> str:
    """Bars of the mean relative distance of the default, of the best explanation, and of every axis's best choice
    alone, as ``<svg>``."""
    bars = [("default protocol", found.as_given.mean_error, INK)]
    singles = [one.best for one in found.single_changes]
    best = found.explanations[0] if found.explanations else found.as_given
    if best.changes and best not in singles:
        singles.insert(0, best)
    bars += [(one.line(), one.mean_error, ORANGE if one.explains else BLUE) for one in singles]
    labels = ["\n".join(wrap(label, _LONG, break_long_words=False)) for label, _, _ in bars]
    further = sum(label.count("\n") for label in labels)
    with draw("distances", size=(8.8, 0.9 + _ROW * len(bars) + _LINE * further)) as drawing:
        axes = drawing.axes
        for place, (_, error, colour) in enumerate(bars):
            axes.barh(place, 100 * error, 0.7, color=colour, alpha=0.85 if colour != INK else 0.4)
            axes.annotate(
                f"{100 * error:.1f} %",
                (100 * error, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9.5,
            )
        axes.axvline(100 * found.as_given.mean_error, color=INK, linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(bars)), labels)
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.set_xlim(0, 112 * max(max(error for _, error, _ in bars), found.tolerance))
        axes.set(xlabel="mean relative distance from what is printed (%)")
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        drawing.summary = "Mean relative distance in per cent: " + "; ".join(
            f"{label} {100 * error:.1f}" for label, error, _ in bars
        )
    return drawing.svg
