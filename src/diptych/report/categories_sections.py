"""The sections of an evaluation's page: settings, seen and unseen categories, errors, siblings, examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from diptych.core.progress import track
from diptych.report.categories_figures import bars_figure, level_figure, model_legend
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
from diptych.report.intent_page import Block, Panels, Section
from diptych.report.words import shorten

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.report.pictures import Thumbnails

__all__ = ["evaluated_sections"]

_MEASURE = "mAP@10"

Numbers = Mapping[str, Any]


def evaluated_sections(
    found: ModelsEvaluation, settings: Mapping[str, Numbers], test: Catalogue | None, thumbnails: Thumbnails
) -> list[Section]:
    """All of them, in order; errors, siblings and examples are the baseline's.

    Args:
        found: the evaluation.
        settings: its numbers.
        test: the products, for pictures.
        thumbnails: makes them and counts those that cannot be read.
    """
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
