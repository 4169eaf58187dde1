"""A stress run as a page: verdicts, table, heat maps, preferences, who is hurt, and the worst hit with pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.analysis.perturbations import GROUPS
from diptych.core.files import write_bytes
from diptych.core.progress import track
from diptych.data.collection import Collection
from diptych.evaluation.changes import CHANGE_GROUPS
from diptych.report.palette import DARK, LIGHT
from diptych.report.pictures import Thumbnails
from diptych.report.stress_hits import Lookup, drawn_hit, wanted_ids
from diptych.training.stress import StressResult, StressRow, sayings
from diptych.training.stress.asking import RSUM
from diptych.training.stress.sayings import shown, shown_difference

__all__ = ["SHOWN_EXAMPLES", "render_stress", "write_stress_page"]

SHOWN_EXAMPLES = 2
"""Queries of each perturbation that are shown with their pictures; the result has a few more."""

_SIDE = 200
_DIRECTIONS = {"t2i": "captions ask for pictures", "i2t": "pictures ask for captions"}


def render_stress(result: StressResult, collection: Collection | None = None, name: str = "") -> str:
    """The text of one self-contained HTML page.

    Args:
        result: what was found.
        collection: the gallery's pictures and captions, to be shown; without it ids stand for them.
        name: what to call the encoder; its own name when not given.
    """
    from diptych.report.templating import templates

    thumbnails = Thumbnails(_SIDE)
    hit = [row for row in result.rows if row.examples]
    shown_rows = track(hit, "showing the worst hit", unit="perturbations")
    lookup = Lookup(collection, wanted_ids(result, SHOWN_EXAMPLES))
    examples = [
        {
            "row": row,
            "hits": [drawn_hit(row, one, lookup, thumbnails) for one in row.examples[:SHOWN_EXAMPLES]],
        }
        for row in shown_rows
    ]
    notes = [*result.notes, *([thumbnails.note()] if thumbnails.note() else [])]
    gains = [one for one in result.measures if one.startswith("DCG")][:1]
    main = RSUM if RSUM in result.measures else result.measures[0]
    return (
        templates()
        .get_template("stress.html.j2")
        .render(
            name=name or result.model,
            result=result,
            says=sayings(result),
            headlines=_headlines(result, main),
            main=main,
            gains=gains,
            groups=_groups(result, main, gains),
            directions=_DIRECTIONS,
            clean={way: _clean(values) for way, values in result.clean.items()},
            figures=_figures(result),
            agreements=_agreements(result),
            examples=examples,
            notes=notes,
            light=LIGHT,
            dark=DARK,
        )
    )


def write_stress_page(
    result: StressResult, path: Path | str, collection: Collection | None = None, name: str = ""
) -> Path:
    """Write the page as one HTML file, whole or not at all; arguments as of :func:`render_stress`.

    Raises:
        StorageError: the file cannot be written; an older one is untouched.
    """
    write_bytes(path, render_stress(result, collection, name).encode("utf-8", "replace"))
    return Path(path)


def _headlines(result: StressResult, main: str) -> list[dict[str, str]]:
    """The clean value of each direction that was stressed, and what costs it the most."""
    found = []
    for way, words in _DIRECTIONS.items():
        rows = [row for row in result.rows if row.direction == way]
        if not rows:
            continue
        clean = rows[0].drops[main].clean
        found.append({"label": f"{main}, {words}", "value": shown(main, clean), "note": "clean"})
        worst = min(rows, key=lambda row: row.drops[main].difference)
        drop = worst.drops[main]
        if drop.verdict == "worse":
            value = shown_difference(main, drop.difference).replace("-", "−")
            note = "" if drop.relative is None else f"{100 * abs(drop.relative):.0f} % of it"
            found.append({"label": worst.name, "value": value, "note": note})
    return found


def _clean(values: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(name, shown(name, value)) for name, value in values.items()]


def _groups(result: StressResult, main: str, gains: list[str]) -> list[dict[str, Any]]:
    """The rows of the table, group by group."""
    found = []
    for group, meaning in GROUPS.items():
        rows = [_table_row(row, main, gains) for row in result.rows if row.group == group]
        if rows:
            found.append({"name": group, "meaning": meaning, "rows": rows})
    return found


def _table_row(row: StressRow, main: str, gains: list[str]) -> dict[str, Any]:
    drop, one = row.drops[main], row.changed_drops.get(main)
    ends = "" if drop.low is None or drop.high is None else _ends(main, drop.low, drop.high)
    relative_ends = ""
    if drop.relative_low is not None and drop.relative_high is not None:
        relative_ends = f"{100 * drop.relative_low:+.1f} to {100 * drop.relative_high:+.1f}"
    return {
        "row": row,
        "changed": f"{100 * row.changed_share:.1f}",
        "same": f"{100 * row.same_share:.1f}" if sum(row.same) else "",
        "perturbed": shown(main, drop.perturbed),
        "spread": "" if drop.spread is None or row.draws == 1 else f"± {shown(main, drop.spread)}",
        "difference": shown_difference(main, drop.difference),
        "ends": ends,
        "relative": _relative(drop.relative),
        "relative_ends": relative_ends,
        "of_changed": shown_difference(main, one.difference) if one else "–",
        "of_changed_relative": f"{_relative(one.relative)} %" if one and one.relative is not None else "",
        "gains": [shown_difference(gain, row.drops[gain].difference) for gain in gains],
        "p": "<0.001" if drop.corrected < 0.001 else f"{drop.corrected:.3f}",
        "verdict": drop.verdict,
        "sizes": {group: f"{100 * row.sizes[group]:.1f}" for group in CHANGE_GROUPS},
        "options": ", ".join(f"{key} {_short(value)}" for key, value in row.options.items()),
    }


def _relative(share: float | None) -> str:
    if share is None:
        return "–"
    return "0" if share == 0 else f"{100 * share:+.1f}"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _ends(main: str, low: float, high: float) -> str:
    return f"{shown_difference(main, low)} to {shown_difference(main, high)}"


def _figures(result: StressResult) -> dict[str, Any]:
    from markupsafe import Markup

    from diptych.report.stress_figures import drop_figure, length_figure, preference_figure

    drawn: dict[str, Any] = {"drops": "", "preference": "", "lengths": ""}
    if result.rows:
        drawn["drops"] = Markup(drop_figure(result))
    if any(row.preference is not None for row in result.rows):
        drawn["preference"] = Markup(preference_figure(result.rows))
    if any(row.lengths for row in result.rows):
        drawn["lengths"] = Markup(length_figure(result.rows))
    return drawn


def _agreements(result: StressResult) -> list[dict[str, Any]]:
    from markupsafe import Markup

    from diptych.report.stress_figures import agreement_figure

    found = []
    for way, agreement in result.agreement.items():
        names = [row.name for row in result.rows if row.direction == way]
        found.append(
            {
                "title": _DIRECTIONS[way],
                "means": {
                    group: "–" if (mean := getattr(agreement, group)) is None else f"{mean:.4f}"
                    for group in CHANGE_GROUPS
                },
                "pairs": len(agreement.pairs),
                "left_out": ", ".join(
                    f"{count:,} that is {group}" for group, count in agreement.left_out.items() if count
                ),
                "figure": Markup(agreement_figure(agreement, names, "decreased", f"agreement-{way}")),
            }
        )
    return found
