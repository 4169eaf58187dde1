"""``diptych categories evaluate``: how well models find products for categories, in every setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.categories.report import evaluated_models, evaluated_run
from diptych.cli.categories.sources import (
    AttributeForm,
    ProductsData,
    SplitBy,
    SplitOption,
    TaxonomyFile,
    TaxonomyFormatName,
    UnknownPaths,
    catalogue_from,
)
from diptych.cli.categories.train import image_options, training_options
from diptych.cli.console import next_step, print_table, progress, say, stop_on_signal
from diptych.cli.sources import Images, ReaderName, ReaderOptions, encoder_source
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation


_SHORT = "mAP@10"
"""The measure of the lines below a table."""

_BETTER, _WORSE = "▲", "▼"


def show_evaluation(found: ModelsEvaluation) -> None:
    """Print it; all numbers are in the folder."""
    for setting in found.settings:
        said = found.numbers["settings"][setting]
        _show_setting(setting, said)
        _show_groups(found, setting, said)
        _show_errors(found, setting, said)
    for model, reason in found.left_out.items():
        say(f"left out: {model}: {reason}")
    say(found.line())


def _show_setting(setting: str, said: Mapping[str, Any]) -> None:
    names = list(said["table"][0]["values"])
    marks = {(one["run"], one["measure"]): one["verdict"] for one in said["differences"]}
    best = {name: max(row["values"][name]["mean"] for row in said["table"]) for name in names}
    rows = []
    for row in said["table"]:
        cells = [
            _cell(row["values"][name], best[name], marks.get((row["model"], name), "")) for name in names
        ]
        rows.append([row["label"], *cells, _percent(row["products"]["R@1"]["mean"])])
    chance = {name: said["table"][0]["values"][name]["chance"] for name in names}
    rows.append(
        [
            "chance",
            *(_percent(chance[name]) for name in names),
            _percent(said["table"][0]["products"]["R@1"]["chance"]),
        ]
    )
    caption = f"{said['line']}; per cent, ± over seeds of training; * best"
    if said["comparison"]:
        caption += f"; {_BETTER} better, {_WORSE} worse than {said['baseline']}: {said['comparison']}"
    columns = ("model", *names, "right category")
    print_table(f"categories: {setting}", columns, rows, numbers=columns[1:], caption=caption)
    _show_intervals(said)


def _show_intervals(said: Mapping[str, Any]) -> None:
    ends = [
        f"{row['label']} {_percent(one['low'])}–{_percent(one['high'])}"
        for row in said["table"]
        if (one := row["values"][_SHORT])["low"] is not None
    ]
    if ends:
        say(f"  {_SHORT}, 95 % over categories: {', '.join(ends)}")


def _show_groups(found: ModelsEvaluation, setting: str, said: Mapping[str, Any]) -> None:
    model = found.baseline
    label = next(row["label"] for row in said["table"] if row["model"] == model)
    levels = said["levels"][model]
    if len(levels) > 1:
        parts = [
            f"level {one['group']} {_percent(one['values'][_SHORT]['mean'])} ({one['categories']:.0f})"
            for one in levels
        ]
        say(f"  {label}, {_SHORT} by level of the tree (categories): {', '.join(parts)}")
    seen = said["seen"][model]
    if seen:
        parts = [
            f"{'seen' if one['group'] else 'unseen'} {_percent(one['values'][_SHORT]['mean'])} "
            f"({one['categories']:.0f})"
            for one in reversed(seen)
        ]
        say(f"  {label}, {_SHORT} of categories that training saw: {', '.join(parts)}")


def _show_errors(found: ModelsEvaluation, setting: str, said: Mapping[str, Any]) -> None:
    model = found.baseline
    errors = said["errors"][model]
    counts = errors["all"]
    runs = "" if errors["runs"] == 1 else f" over {errors['runs']} seeds"
    text = (
        f"  first products of {model}{runs}: {counts['right']:,} of {counts['asked']:,} right, "
        f"{counts['same_tree']:,} wrong in the same tree, {counts['other_tree']:,} in another"
    )
    if counts["nothing"]:
        text += f", {counts['nothing']:,} found nothing"
    say(text)


def _cell(value: Mapping[str, Any], best: float, verdict: str) -> str:
    text = _percent(value["mean"])
    if value["sd"] is not None:
        text += f" ±{100 * value['sd']:.1f}"
    if value["mean"] == best and best > 0:
        text += " *"
    return text + {"better": f" {_BETTER}", "worse": f" {_WORSE}"}.get(verdict, "")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def evaluate(
    data: ProductsData,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="The evaluation's folder; an unfinished one goes on.", show_default=False
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="bm25, clip, sentence, clip-i … clip-ita; all that the encoders allow by default. Repeatable, or with "
            "commas.",
            show_default=False,
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            help="all, most-general, most-specific. Repeatable, or with commas.", show_default=False
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each model.")] = 3,
    relevance: Annotated[
        str, typer.Option(help="label: a product's own category; path: the categories above it as well.")
    ] = "label",
    query: Annotated[str, typer.Option(help="A category's text: its name, or its whole path.")] = "name",
    published: Annotated[
        bool, typer.Option("--published", help="Train as in the thesis: τ = 1, duplicates as negatives, …")
    ] = False,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE of training, e.g. epochs=10. Repeatable.", show_default=False),
    ] = None,
    image_encoder: Annotated[
        str,
        typer.Option(
            help="grid (colours and edges), backbone:NAME of timm, an encoder such as hf:NAME; none."
        ),
    ] = "grid",
    image_option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE for the image encoder, e.g. weights=FILE, size=96.", show_default=False),
    ] = None,
    text_encoder: Annotated[
        str,
        typer.Option(help="lsa (learned from the training products), sentence:NAME, or hf:NAME."),
    ] = "lsa",
    run: Annotated[
        Path | None,
        typer.Option(
            help="Measure a trained run on the products of DATA that it has not seen; nothing is fitted.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples of categories for 95 % intervals; 0 for none.")
    ] = 1000,
    judged_seed: Annotated[
        int, typer.Option(min=0, help="Of the category drawn for each test product in the setting all.")
    ] = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Processes; the numbers do not depend on it.")
    ] = 1,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    taxonomy: TaxonomyFile = None,
    taxonomy_format: TaxonomyFormatName = None,
    unknown_paths: UnknownPaths = "error",
    attribute_form: AttributeForm = "named",
    split_by: SplitBy = None,
    split_option: SplitOption = None,
) -> None:
    """Train and measure models of categories and products: tables, levels, unseen categories, errors, a page.

    Encoders run once; what is trained are heads over their rows. Ctrl-C stops within a step of training, and the same
    command goes on; so it does after kill -9. A finished folder may grow by models, settings and seeds.

    Examples:

      [bold]diptych categories evaluate shop --out evaluation[/bold]

      [bold]diptych categories evaluate shop --out thesis --published --seeds 5 --jobs 4[/bold]

      [bold]diptych categories evaluate shop --out few --model bm25,clip-i,clip-ita --setting most-specific[/bold]

      [bold]diptych categories evaluate new-products --out held-out --run runs/shop[/bold]
    """
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.categories_evaluation import write_categories_page

    if relevance not in ("label", "path"):
        raise UsageError(f"--relevance {relevance}", "one of label, path")
    if query not in ("name", "path"):
        raise UsageError(f"--query {query}", "one of name, path")
    if published and options:
        raise UsageError("--published trains as in the thesis", "leave out --set, or --published")
    fitting = model or published or options or image_option or query != "name" or seeds != 3 or jobs != 1
    if run is not None and (fitting or (image_encoder, text_encoder) != ("grid", "lsa")):
        raise UsageError("a run is measured as it is", "leave out what says how models are made or trained")
    with progress(), stop_on_signal():
        catalogue, source = catalogue_from(
            data,
            images=images,
            reader=reader,
            reader_option=reader_option,
            taxonomy=taxonomy,
            taxonomy_format=taxonomy_format,
            unknown=unknown_paths,
            attribute_form=attribute_form,
            split_by=split_by,
            split_option=split_option,
        )
        asked = [("image", image_encoder), ("text", text_encoder)]
        asked += [("image option", one) for one in image_option or ()]
        common: dict[str, Any] = {
            "settings": _split(setting),
            "relevance": relevance,
            "judged_seed": judged_seed,
            "bootstrap": Bootstrap(samples),
            "about": {
                "source": asdict(source),
                "encoders asked for": asked if run is None else [],
            },
        }
        if run is not None:
            found, test = evaluated_run(run, catalogue, out, **common)
        else:
            found, test = evaluated_models(
                catalogue,
                out,
                image_encoder=None if image_encoder == "none" else encoder_source(image_encoder),
                image_options=image_options(image_option),
                text_encoder=encoder_source(text_encoder),
                models=_split(model),
                query=query,
                seeds=tuple(range(seeds)),
                published=published,
                options=training_options(options, _NAMED) if options else None,
                jobs=jobs,
                **common,
            )
        page = write_categories_page(out / "report.html", found, test)
    show_evaluation(found)
    say(f"every value in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", str(page)])


_NAMED = {"modalities": "--model", "setting": "--setting", "query": "--query", "seed": "--seeds"}


def _split(given: list[str] | None) -> list[str] | None:
    """Names of an option that may be repeated or have commas; None when it was not given."""
    return None if given is None else [name for text in given for name in text.split(",") if name]
