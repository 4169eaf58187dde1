"""The sections of an evaluation's page: settings, seen and unseen categories, errors, siblings, examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diptych.core.context import track
from diptych.report.categories_findings import evaluation_findings
from diptych.report.categories_page import Gallery, Shown
from diptych.report.categories_tables import (
    error_table,
    interval_table,
    measure_table,
    seen_table,
    setting_name,
    short_path,
    sibling_table,
)
from diptych.report.drawing import BLUE, INK, ORANGE
from diptych.report.intent_page import Block, Legend, Panels, Section
from diptych.report.intent_series import panel, series
from diptych.report.words import shorten

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.report.pictures import Thumbnails


Groups = Sequence[Mapping[str, Any]]


def model_legend(labels: Sequence[str]) -> Legend:
    """What the lines of :func:`level_figure` are."""
    return Legend([(series(place).name, series(place).glyph, label) for place, label in enumerate(labels)])


def level_figure(
    name: str,
    title: str,
    levels: Mapping[str, Groups],
    measure: str,
) -> str:
    """A line per model over the levels of the tree, as ``<svg>``.

    Args:
        measure: which one is drawn, in per cent.
    """
    depths = sorted({int(one["group"]) for groups in levels.values() for one in groups})
    highest, said = 0.0, []
    with panel(name) as drawing:
        axes = drawing.axes
        for place, (label, groups) in enumerate(levels.items()):
            way = series(place)
            x = [int(one["group"]) for one in groups]
            y = [100 * float(one["values"][measure]["mean"]) for one in groups]
            highest = max([highest, *y])
            axes.plot(
                x, y, color=way.colour, marker=way.marker, markersize=5.5, linestyle=way.dash, linewidth=1.6
            )
            said.append(
                f"{label} "
                + ", ".join(f"{value:.1f} at level {depth}" for depth, value in zip(x, y, strict=True))
            )
        counts = {int(one["group"]): one["categories"] for groups in levels.values() for one in groups}
        axes.set_xticks(depths, [f"{depth}\n{counts[depth]:,.0f}" for depth in depths])
        axes.set_xlim(depths[0] - 0.3, depths[-1] + 0.3)
        axes.set_ylim(0, 1.1 * highest or 1.0)
        axes.set_title(title)
        axes.set_xlabel("level of the category, and how many ask", fontsize=9)
        axes.set_ylabel(f"{measure} (%)")
        drawing.summary = f"{title}: {measure} in per cent by level of the tree: {'; '.join(said)}."
    return drawing.svg


def bars_figure(
    name: str, title: str, counts: Mapping[int, int], xlabel: str, *, zero: bool = False, runs: int = 1
) -> str:
    """Bars of counts by whole numbers, as ``<svg>``; shares are written above."""
    from matplotlib.ticker import MaxNLocator

    total = sum(counts.values())
    low, high = (-1, 1) if zero else (1, 3)
    values = list(range(min(low, *counts), max(high, *counts) + 1))
    with panel(name) as drawing:
        axes = drawing.axes
        for value in values:
            count = counts.get(value, 0)
            colour = BLUE if not zero or value < 0 else ORANGE if value > 0 else INK
            axes.bar(value, count / runs, 0.7, color=colour, alpha=0.88 if value or not zero else 0.55)
            if count:
                axes.annotate(
                    f"{100 * count / total:.0f} %" if 200 * count >= total else "<1 %",
                    (value, count / runs),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    fontsize=9 if len(values) < 10 else 7.5,
                )
        axes.set_xticks(values, [f"{value:+d}" if zero and value else str(value) for value in values])
        axes.set_xlim(values[0] - 0.7, values[-1] + 0.7)
        axes.set_ylim(0, 1.18 * max(counts.values()) / runs)
        axes.tick_params(axis="x", length=0)
        axes.set_title(title)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.set_xlabel(xlabel, fontsize=9)
        axes.set_ylabel("categories")
        shares = ", ".join(
            f"{100 * count / total:.0f} % at {value:+d}" for value, count in sorted(counts.items())
        )
        drawing.summary = f"{title}, {total:,} errors: {shares}."
    return drawing.svg


_MEASURE = "mAP@10"

Numbers = Mapping[str, Any]


def evaluated_sections(
    found: ModelsEvaluation, settings: Mapping[str, Numbers], test: Catalogue | None, thumbnails: Thumbnails
) -> list[Section]:
    """All of them, in order; errors, siblings and examples are the baseline's."""
    return [
        _overview(settings),
        *_settings(settings),
        *_seen(found, settings),
        _errors(found, settings),
        *_siblings(found, settings),
        *_examples(found, settings, test, thumbnails),
    ]


def _overview(settings: Mapping[str, Numbers]) -> Section:
    findings = [text for name, said in settings.items() for text in evaluation_findings(name, said)]
    return Section("overview", "Which model finds products", findings)


def _settings(settings: Mapping[str, Numbers]) -> list[Section]:
    sections = []
    for place, (name, said) in enumerate(settings.items()):
        blocks: list[Block] = [
            measure_table("Measures", said),
            interval_table("All measures with 95 % intervals over categories", said),
        ]
        levels = {row["label"]: said["levels"][row["model"]] for row in said["table"]}
        if any(len(groups) > 1 for groups in levels.values()):
            blocks += [
                model_legend(list(levels)),
                Panels(
                    [
                        level_figure(f"levels-{place}-{number}", f"{measure} by level", levels, measure)
                        for number, measure in enumerate((_MEASURE, "P@1"))
                    ]
                ),
            ]
        sections.append(
            Section(
                f"setting-{place}",
                setting_name(name).capitalize(),
                (),
                f"{said['line']}.",
                blocks,
            )
        )
    return sections


def _seen(found: ModelsEvaluation, settings: Mapping[str, Numbers]) -> list[Section]:
    with_both = {
        name: said
        for name, said in settings.items()
        if any(len(groups) > 1 for groups in said["seen"].values())
    }
    known = any(groups for said in settings.values() for groups in said["seen"].values())
    if not known:
        return []
    trained = [row["model"] for row in next(iter(settings.values()))["table"] if row["trained"]]
    model = found.baseline
    blocks: list[Block] = [
        seen_table("Categories that training saw, and others", settings, [model], folded=False)
    ]
    if len(trained) > 1:
        blocks.append(seen_table("The same of all trained models", settings, trained, folded=True))
    notes = (
        []
        if with_both
        else ["Training saw every category that asks: there is nothing unseen to compare with."]
    )
    return [
        Section(
            "seen",
            "Seen and unseen categories",
            (),
            "Seen: the category stood for some training product, whatever stood above or below it. In per cent; "
            "numbers of categories are means over seeds where training draws them.",
            blocks,
            notes,
        )
    ]


def _errors(found: ModelsEvaluation, settings: Mapping[str, Numbers]) -> Section:
    model = found.baseline
    blocks: list[Block] = [error_table("First products of another category", settings, [model], folded=False)]
    depths, distances = [], []
    for place, (name, said) in enumerate(settings.items()):
        errors = said["errors"][model]
        counts, runs = errors["all"], errors["runs"]
        of_depth = {int(key): value for key, value in counts["depths"].items()}
        of_edges = {int(key): value for key, value in counts["distances"].items()}
        if of_depth:
            depths.append(
                bars_figure(
                    f"depth-{place}",
                    setting_name(name).capitalize(),
                    of_depth,
                    "depth of the category found − depth of the one asked",
                    zero=True,
                    runs=runs,
                )
            )
        if of_edges:
            distances.append(
                bars_figure(
                    f"edges-{place}",
                    setting_name(name).capitalize(),
                    of_edges,
                    "edges between the two categories in the tree",
                    runs=runs,
                )
            )
    if depths:
        blocks.append(
            Panels(
                depths,
                after="Errors in the same tree; to the right of 0 the category found is more specific.",
            )
        )
    if distances:
        blocks.append(Panels(distances, after="All errors; different trees are joined above their roots."))
    if len(found.models) > 1:
        blocks.append(error_table("The same of all models", settings, found.models, folded=True))
    return Section(
        "errors",
        "Errors of the first product",
        (),
        f"{model.upper()}: a category asks, and the product that came first "
        + ("is of another category." if found.protocol.relevance == "label" else "is not in it or below it."),
        blocks,
    )


def _siblings(found: ModelsEvaluation, settings: Mapping[str, Numbers]) -> list[Section]:
    model = found.baseline
    blocks: list[Block] = [
        sibling_table(setting_name(name).capitalize(), said["siblings"][model], said["errors"][model]["runs"])
        for name, said in settings.items()
        if said["siblings"][model]
    ]
    if not blocks:
        return []
    return [
        Section(
            "siblings",
            "Siblings taken for each other",
            (),
            f"{model.upper()}: products whose nearest category is the one beside their own.",
            blocks,
        )
    ]


def _examples(
    found: ModelsEvaluation, settings: Mapping[str, Numbers], test: Catalogue | None, thumbnails: Thumbnails
) -> list[Section]:
    model = found.baseline
    blocks: list[Any] = []
    for name, said in track(settings.items(), "pictures", unit="settings"):
        shown = [_shown(one, test, thumbnails) for one in said["examples"][model]]
        for right, what in ((True, "right"), (False, "wrong")):
            items = [one for one in shown if one.right == right]
            if items:
                blocks.append(Gallery(f"{setting_name(name).capitalize()}, {what}", items))
    if not blocks:
        return []
    return [
        Section(
            "examples",
            "First products",
            (),
            f"{model.upper()}, the first seed: for a category, the product that came first. Right ones are the surest "
            "of each tree, wrong ones the surest of each kind of error.",
            blocks,
        )
    ]


def _shown(one: Mapping[str, Any], test: Catalogue | None, thumbnails: Thumbnails) -> Shown:
    picture = None
    row = int(one["row"])
    if test is not None and test.picture_rows[row] >= 0:
        item = int(test.picture_rows[row])
        collection = test.collection
        picture = thumbnails.make(lambda: collection.image(item), str(one["product"]))
    return Shown(
        short_path(one["category"]),
        short_path(one["found"]),
        bool(one["right"]),
        str(one["kind"]),
        shorten(str(one["product"]), 60),
        shorten(str(one["title"]), 120),
        f"{one['score']:.3f}",
        picture,
    )
