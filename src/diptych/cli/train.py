"""``diptych train``: from a recipe to a run, or on with an interrupted one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import is_main_process, next_step, progress, say, stop_on_signal
from diptych.cli.sources import (
    Data,
    Images,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    parse_values,
    recipe_values,
)
from diptych.core.errors import UsageError


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A recipe: a TOML file, or the name of one that comes with diptych.", show_default=False
        ),
    ] = None,
    data: Data = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="KEY=VALUE that replaces the recipe's, e.g. stages.0.epochs=5. Repeatable.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with this run, to the same final numbers.", show_default=False)
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Processes that share each batch.")] = 1,
    accelerator: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    features: Annotated[
        Path | None, typer.Option(help="Folder of cached backbone features.", show_default=False)
    ] = None,
) -> None:
    """Train a dual encoder.

    The run folder keeps the recipe, the metrics, the best encoder and everything needed to go on.
    Ctrl-C stops after the current step; kill -9 loses at most checkpoints.every_steps steps.

    Examples:

      [bold]diptych train scenes --out runs/scenes[/bold]

      [bold]diptych train recipes/flickr8k.toml --data flickr8k --out runs/flickr8k[/bold]

      [bold]diptych train --resume runs/flickr8k[/bold]
    """
    from diptych.training.fit import fit
    from diptych.training.recipe import collection_of, load_recipe, recipe_names
    from diptych.training.run import Run

    if resume is not None:
        if recipe is not None or set_:
            raise UsageError("--resume takes the run's own recipe", "leave the recipe and --set out")
        run = Run.open(resume)
        if run.finished:
            say(f"{resume} is finished")
            next_step(["diptych", "evaluate", resume])
            return
    else:
        if recipe is None:
            raise UsageError("no recipe given", f"a TOML file, or one of: {', '.join(recipe_names())}")
        overrides = recipe_values(set_)
        if data is not None:
            overrides |= {
                "data.path": str(data.resolve()) if data.exists() else str(data),
                "data.scenes": None,
            }
        options = parse_values(reader_option, "--reader-option")
        if images is not None:
            options["images"] = str(images.resolve())
        if options:
            overrides["data.options"] = options
        if reader is not None:
            overrides["data.reader"] = reader
        if skip_bad_images:
            overrides["data.skip_bad_images"] = True
        loaded = load_recipe(recipe, overrides)
        folder = out or Path("runs") / loaded.name
        # Further processes of the same training may find the run that the first has begun.
        run = Run.prepare(folder, loaded) if is_main_process() else Run(folder, loaded)
    with progress(), stop_on_signal():
        collection = collection_of(run.recipe.data)
        for line in (collection.describe(), *collection.notes):
            say(line)
        place = fit(
            run,
            collection,
            devices=devices,
            accelerator=accelerator,
            features_root=features,
        )
    kept = ", the last is kept" if run.recipe.checkpoints.keep == "last" else ""
    best = f"best validation rsum {place.best:.1f} in epoch {place.best_epoch} of {place.epoch}"
    say(f"{best}{kept}; run in {run.folder}")
    next_step(["diptych", "evaluate", run.folder])
