"""A stress run as a page: verdicts, table, heat maps, preferences, who is hurt, and the worst hit with pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.analysis.perturbations import GROUPS, PERTURBATIONS, PicturePerturbation
from diptych.analysis.perturbations.pictures import perturbed_pictures
from diptych.core.context import track
from diptych.core.errors import DataError
from diptych.core.files import write_bytes
from diptych.data.collection import Collection
from diptych.evaluation.stress import Agreement, Example, StressResult, StressRow, summarise
from diptych.evaluation.stress.queries import RSUM
from diptych.evaluation.stress.summary import CHANGE_GROUPS
from diptych.evaluation.stress.summary_text import shown, shown_difference
from diptych.report.document import CAPTION_LIMIT
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.page import DARK, LIGHT, shorten
from diptych.report.pictures import PictureSource, Thumbnails
from diptych.report.stress_comparison import FIGURE_WIDTH, add_cell, bare, heat_figure

_MOST = 400
"""Words of a caption that are compared; what lies behind is one piece."""


class Piece(NamedTuple):
    """A few words in order."""

    text: str
    differs: bool


def differing(one: str, other: str) -> tuple[list[Piece], list[Piece]]:
    """The words of two captions in pieces, those that differ marked; blanks between words are not compared."""
    left, right = one.split(), other.split()
    tails = left[_MOST:], right[_MOST:]
    left, right = left[:_MOST], right[:_MOST]
    pieces: tuple[list[Piece], list[Piece]] = ([], [])
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for kind, begin, end, other_begin, other_end in matcher.get_opcodes():
        for found, words in ((pieces[0], left[begin:end]), (pieces[1], right[other_begin:other_end])):
            if words:
                found.append(Piece(" ".join(words), kind != "equal"))
    for found, tail in zip(pieces, tails, strict=True):
        if tail:
            found.append(Piece(" ".join(tail), tails[0] != tails[1]))
    return pieces


def wanted_ids(result: StressResult, most: int) -> set[str]:
    """Ids of what is shown of the worst hit, at most ``most`` of a perturbation."""
    return {
        name
        for row in result.rows
        for one in row.examples[:most]
        for name in (one.query, one.first_before, one.first_after, one.expected)
    }


class Lookup:
    """From ids to what they name."""

    def __init__(self, collection: Collection | None, wanted: set[str]) -> None:
        self.collection = collection
        self._images = {} if collection is None else _places(collection.image_ids, wanted)
        self._captions = {} if collection is None else _places(collection.caption_ids, wanted)

    def picture(self, name: str) -> PictureSource | None:
        """A picture, where there is one of that id."""
        if self.collection is None or name not in self._images or self.collection.holds != "pictures":
            return None
        return partial(self.collection.image, self._images[name])

    def perturbed(self, row: StressRow, one: Example) -> PictureSource | None:
        """A picture as the perturbation changed it."""
        kind = PERTURBATIONS.get(row.name)
        if self.collection is None or one.query not in self._images:
            return None
        assert isinstance(kind, PicturePerturbation)
        place = self._images[one.query]
        view = perturbed_pictures(self.collection.subset([place]), kind, seed=one.seed, options=row.options)
        return partial(view.image, 0)

    def caption(self, name: str) -> str:
        """A caption; empty without one of that id."""
        if self.collection is None or name not in self._captions:
            return ""
        return str(self.collection.captions[self._captions[name]])


def _places(ids: Iterable[str], wanted: set[str]) -> dict[str, int]:
    return {name: row for row, name in enumerate(ids) if name in wanted}


def drawn_hit(row: StressRow, one: Example, lookup: Lookup, thumbnails: Thumbnails) -> dict[str, Any]:
    """One of the worst hit, as the template draws it."""

    def drawn(source: PictureSource | None, name: str) -> dict[str, Any] | None:
        return None if source is None else {"thumbnail": thumbnails.make(source, name)}

    def shown_picture(label: str, name: str, mark: str, rank: float | None = None) -> dict[str, Any]:
        return {
            "label": label,
            "name": name,
            "mark": mark,
            "rank": None if rank is None else _rank(rank),
            "picture": drawn(lookup.picture(name), name),
        }

    found: dict[str, Any] = {
        "name": shorten(one.query, CAPTION_LIMIT),
        "seed": one.seed,
        "before": _rank(one.before),
        "after": _rank(one.after),
        "clean": [],
        "changed": [],
        "captions": [],
    }
    if row.direction == "t2i":
        clean, changed = differing(shorten(one.clean, CAPTION_LIMIT), shorten(one.changed, CAPTION_LIMIT))
        pictures = [shown_picture("its picture", one.expected, "right")]
        for label, name in (("first, clean", one.first_before), ("first, perturbed", one.first_after)):
            pictures.append(shown_picture(label, name, "right" if name == one.expected else "wrong"))
        return {**found, "clean": clean, "changed": changed, "pictures": pictures}

    def said(name: str) -> str:
        return shorten(lookup.caption(name) or name, CAPTION_LIMIT)

    found["pictures"] = [
        {"label": label, "name": one.query, "mark": "unknown", "picture": drawn(source, one.query)}
        for label, source in (
            ("clean", lookup.picture(one.query)),
            ("perturbed", lookup.perturbed(row, one)),
        )
    ]
    found["captions"] = [
        ("one of its captions", said(one.expected)),
        ("first, clean", said(one.first_before)),
        ("first, perturbed", said(one.first_after)),
    ]
    return found


def _rank(rank: float) -> str:
    return f"{rank:,.0f}" if rank == int(rank) else f"{rank:,.1f}"


SHOWN_EXAMPLES = 2
"""Queries of each perturbation that are shown with their pictures; the result has a few more."""

_SIDE = 200
_DIRECTIONS = {"t2i": "captions ask for pictures", "i2t": "pictures ask for captions"}


def render_stress(result: StressResult, collection: Collection | None = None, name: str = "") -> str:
    """The text of one self-contained HTML page."""
    from diptych.report.page import templates

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
            says=summarise(result),
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
    """Write the page as one HTML file, whole or not at all; arguments as of :func:`render_stress`."""
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
