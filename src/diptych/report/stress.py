"""The page of a stress run, and of several runs compared."""

from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

from diptych.analysis.perturbations import PERTURBATIONS, PicturePerturbation, perturbed_pictures
from diptych.data.collection import Collection
from diptych.encoders.embeddings import Origin
from diptych.evaluation.stress.comparison import StressComparison
from diptych.evaluation.stress.result import Example, StressResult, StressRow
from diptych.evaluation.stress.tables import (
    COMPARISON_LEGEND,
    COST_LEGEND,
    WAYS,
    agreement_tables,
    change_tables,
    comparison_summary,
    comparison_tables,
    cost_tables,
    length_tables,
    main_measure,
    preference_tables,
    shown,
    shown_difference,
    stress_charts,
    stress_summary,
)
from diptych.report.document import Card, Gallery, Headline, Page, Section
from diptych.report.pictures import PictureSource

_SHOWN = 2  # queries of each perturbation; the result has a few more
_SIDE = 220
_MOST = 400  # words of a caption that are compared
_PREFERENCE = (
    "These changes alter what a caption says, or the order of its words. How often does the image that it was written "
    "for score the clean caption higher than the changed one?"
)


def page_of(folder: Path) -> tuple[Page, list[str]] | None:
    """Return the page of what ``diptych analyse stress`` wrote, and lines to print; None of another folder."""
    if not (folder / "stress.json").is_file():
        return None
    found, origin = StressResult.open(folder), Origin.read(folder)
    return stress_page(found, None if origin is None else replace(origin, split=None).collection()), []


def stress_page(found: StressResult, collection: Collection | None = None) -> Page:
    """Return the page of a stress run; without ``collection`` ids stand for images."""
    main, headlines = main_measure(found), []
    for way, words in WAYS.items():
        rows = [row for row in found.rows if row.direction == way]
        if not rows:
            continue
        headlines.append(Headline(f"{main}, {words}", shown(main, rows[0].drops[main].clean), "clean"))
        worst = min(rows, key=lambda row: row.drops[main].difference)
        drop = worst.drops[main]
        if drop.verdict == "worse":
            share = "" if drop.relative is None else f"{100 * abs(drop.relative):.0f} % of it"
            value = shown_difference(main, drop.difference).replace("-", "−")
            headlines.append(Headline(f"{worst.name}, the most", value, share))
    sections = [
        Section("What it costs", cost_tables(found), COST_LEGEND),
        Section("Clean or changed", [*stress_charts(found), *preference_tables(found.rows)], _PREFERENCE),
        Section("Who is hurt", [*length_tables(found.rows), *agreement_tables(found)]),
        Section(
            "Worst hit",
            list(_worst_hit(found, collection)),
            "Queries whose right answer's rank grew by the greatest factor, at most one of an image. [Brackets]: words "
            "that differ.",
        ),
        Section("What was changed", change_tables(found)),
    ]
    return Page(
        title=f"Stress of {found.model}",
        summary=stress_summary(found),
        headlines=headlines,
        sections=[section for section in sections if section.blocks],
        protocol={
            **{name: str(value) for name, value in found.protocol.items()},
            "intervals and tests": found.method,
        },
        notes=found.notes,
    )


def comparison_page(found: StressComparison) -> Page:
    name, headlines = found.measures[0], []
    rows = found.of(name)
    for way, words in WAYS.items():
        for row in [row for row in rows if row.direction == way][:1]:
            headlines += [
                Headline(f"{model}, {words}", shown(name, row.own(model).clean), f"{name}, clean")
                for model in found.models
            ]
    for model in found.others:
        significant = [row for row in rows if row.differences[model].verdict]
        if significant:
            most = max(significant, key=lambda row: abs(row.differences[model].difference))
            one = most.differences[model]
            value = shown_difference(name, one.difference, 4).replace("-", "−")
            headlines.append(Headline(f"{most.name}, the most", value, f"{model} {one.verdict}"))
    return Page(
        title=f"{' and '.join(found.models)} under stress",
        summary=comparison_summary(found),
        headlines=headlines,
        sections=[Section("What each loses", comparison_tables(found), COMPARISON_LEGEND)],
        protocol={
            **found.encoders,
            **{key: str(value) for key, value in found.protocol.items()},
            "intervals and tests": found.method,
        },
        notes=found.notes,
    )


def marked(clean: str, changed: str) -> tuple[str, str]:
    """Return two captions with the words that differ in brackets."""
    sides, texts = (clean.split(), changed.split()), ([], [])  # type: tuple[list[str], list[str]], tuple[list[str], list[str]]
    matcher = SequenceMatcher(None, sides[0][:_MOST], sides[1][:_MOST], autojunk=False)
    for kind, *ends in matcher.get_opcodes():
        for words, text, low, high in zip(sides, texts, ends[::2], ends[1::2], strict=True):
            if low < high:
                piece = " ".join(words[low:high])
                text.append(piece if kind == "equal" else f"[{piece}]")
    first, second = (" ".join([*text, *words[_MOST:]]) for text, words in zip(texts, sides, strict=True))
    return first, second


def _worst_hit(found: StressResult, collection: Collection | None) -> Iterator[Gallery]:
    hits = [(row, number, one) for row in found.rows for number, one in enumerate(row.examples[:_SHOWN])]
    shown_ids = {
        name for _, _, one in hits for name in (one.query, one.expected, one.first_before, one.first_after)
    }
    images: dict[str, int] = {}
    captions: dict[str, str] = {}
    if collection is not None:
        images = {name: place for place, name in enumerate(collection.image_ids) if name in shown_ids}
        captions = {
            name: collection.captions[place]
            for place, name in enumerate(collection.caption_ids)
            if name in shown_ids
        }

    def card(label: str, name: str, state: str, source: PictureSource | None = None) -> Card:
        if collection is not None and collection.holds == "pictures" and name in images:
            source = source or partial(collection.image, images[name])
        return Card(name, source, "" if source else name, label, state)

    for row, number, one in hits:
        firsts = {"first, clean": one.first_before, "first, perturbed": one.first_after}
        if row.direction == "t2i":
            facts = dict(zip(("clean", "perturbed"), marked(one.clean, one.changed), strict=True))
            cards = [
                card(label, name, "right" if name == one.expected else "wrong")
                for label, name in {"its image": one.expected, **firsts}.items()
            ]
        else:
            named = {"one of its captions": one.expected, **firsts}
            facts = {label: captions.get(name, name) for label, name in named.items()}
            cards = [
                card("clean", one.query, ""),
                card("perturbed", one.query, "", _perturbed(row, one, collection, images)),
            ]
        facts |= {
            "rank": f"{_rank(one.before)} → {_rank(one.after)}",
            "query": f"{one.query}, seed {one.seed}",
        }
        yield Gallery("" if number else row.name, cards, Card(one.query, facts=facts), side=_SIDE)


def _perturbed(
    row: StressRow, one: Example, collection: Collection | None, images: dict[str, int]
) -> PictureSource | None:
    kind = PERTURBATIONS.get(row.name)
    if collection is None or one.query not in images or not isinstance(kind, PicturePerturbation):
        return None
    part = collection.subset([images[one.query]])
    return partial(perturbed_pictures(part, kind, seed=one.seed, options=row.options).image, 0)


def _rank(rank: float) -> str:
    return f"{rank:,.0f}" if rank == int(rank) else f"{rank:,.1f}"
