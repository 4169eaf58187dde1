"""A stress run as a page: verdicts, table, heat maps, preferences, who is hurt, and the worst hit with pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from diptych.analysis.perturbations import GROUPS, PERTURBATIONS, PicturePerturbation
from diptych.analysis.perturbations.pictures import perturbed_pictures
from diptych.core.files import write_bytes
from diptych.core.progress import track
from diptych.data.collection import Collection
from diptych.evaluation.stress import Example, StressResult, StressRow, summarise
from diptych.evaluation.stress.changes import CHANGE_GROUPS
from diptych.evaluation.stress.queries import RSUM
from diptych.evaluation.stress.summary_text import shown, shown_difference
from diptych.report.html import CAPTION_LIMIT
from diptych.report.palette import DARK, LIGHT
from diptych.report.pictures import PictureSource, Thumbnails
from diptych.report.words import shorten

_MOST = 400
"""Words of a caption that are compared; what lies behind is one piece."""


class Piece(NamedTuple):
    """A few words in order.

    Attributes:
        text: they.
        differs: whether the other caption lacks them at this place.
    """

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
