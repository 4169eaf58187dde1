"""An exploration of protocols as a page: the verdict, single changes, the nearest variants, the digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diptych.core.files import write_bytes
from diptych.evaluation.printed import DigitReport, Target
from diptych.evaluation.variants import AXES, Exploration, Variant, explain
from diptych.report.palette import DARK, LIGHT

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
    """The text of one self-contained HTML page.

    Args:
        found: what was tried; None where there are no embeddings.
    """
    from markupsafe import Markup

    from diptych.report.templating import templates

    figure: Any = ""
    if found is not None:
        from diptych.report.protocol_figures import distance_figure

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
