"""The information audit as a page: kinds of information, Theorem 1's gap, every question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.analysis.information import CONDITIONS, GROUPS, READING, SIDES, Audit, gap_of
from diptych.core.files import write_bytes
from diptych.report.information_figures import (
    MOST_BARS,
    SUMS,
    gap_figure,
    kinds_figure,
    questions_figure,
    shown_questions,
)
from diptych.report.palette import DARK, LIGHT

__all__ = ["render_audit", "write_audit_page"]


def render_audit(audit: Audit, name: str) -> str:
    """The text of one self-contained HTML page.

    Args:
        audit: what was found.
        name: what to call the run or encoder.
    """
    from markupsafe import Markup

    from diptych.report.templating import templates

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
    """Write tables, figures and protocol as one HTML file, whole or not at all.

    Raises:
        StorageError: the file cannot be written; an older one is untouched.
    """
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
