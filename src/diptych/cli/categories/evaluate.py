"""``diptych categories evaluate``: how well models find products for categories, in every setting."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from diptych.cli.categories.sources import Encoders, ProductData, training_options, with_groups
from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.core.errors import UsageError


@with_groups
def evaluate(
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
    *,
    encoders: Encoders,
    products: ProductData,
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
    from diptych.commerce.category_to_image.application import evaluate_catalogue, evaluate_run
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.commerce.category_to_image.tables import evaluation_tables
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.categories import evaluation_page

    for name, value, known in (
        ("relevance", relevance, ("label", "path")),
        ("query", query, ("name", "path")),
    ):
        if value not in known:
            raise UsageError(f"--{name} {value}", f"one of {', '.join(known)}")
    if published and options:
        raise UsageError("--published trains as in the thesis", "leave out --set, or --published")
    is_fitted = model or published or options or query != "name" or seeds != 3 or jobs != 1
    if run is not None and (is_fitted or encoders != Encoders()):
        raise UsageError("a run is measured as it is", "leave out what says how models are made or trained")
    common: dict[str, Any] = {
        "settings": _names(setting),
        "relevance": relevance,
        "judged_seed": judged_seed,
        "bootstrap": Bootstrap(samples),
    }
    with progress(), stop_on_signal():
        catalogue, source = products.read()
        about = {"source": asdict(source), "encoders asked for": encoders.given if run is None else []}
        if run is not None:
            found, test = evaluate_run(CategoryRun.open(run), catalogue, out, about=about, **common)
        else:
            found, test = evaluate_catalogue(
                catalogue,
                encoders.maker(catalogue),
                out,
                models=_names(model),
                query=query,
                seeds=tuple(range(seeds)),
                published=published,
                options=training_options(options, _NAMED) if options else None,
                jobs=jobs,
                about=about,
                **common,
            )
        page = evaluation_page(found, test).save(out / "report.html")
    show(*(table for part in evaluation_tables(found).values() for table in part if not table.folded))
    for name, reason in found.left_out.items():
        say(f"left out: {name}: {reason}")
    say(found.line())
    say(f"every value in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", str(page)])


_NAMED = {"modalities": "--model", "setting": "--setting", "query": "--query", "seed": "--seeds"}


def _names(given: list[str] | None) -> list[str] | None:
    """Return the names of an option that may be repeated or have commas; None when it was not given."""
    return None if given is None else [name for text in given for name in text.split(",") if name]
