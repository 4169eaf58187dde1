"""``diptych train``: from a recipe to a run, or on with an interrupted one."""

from pathlib import Path

from diptych.cli.console import is_main_process, next_step, show, stop_on_signal
from diptych.cli.sources import recipe_values
from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.data.source import DataSpec, OutOption


class TrainOptions(OutOption):
    """Options of training."""

    recipe: str | None = parameter(
        None, "A TOML file, or the name of a recipe that comes with diptych.", argument=True
    )
    set_: list[str] = parameter(
        [], "KEY=VALUE that replaces the recipe's, e.g. stages.0.epochs=5. Repeatable.", "--set"
    )
    resume: Path | None = parameter(None, "Resume this run, to the same final numbers.")
    devices: int = parameter(1, "Processes that share each batch.", ge=1)
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto.")
    features: Path | None = parameter(None, "Folder of cached backbone features.")


def train(data: DataSpec, options: TrainOptions) -> None:
    """Train a dual encoder.

    The run folder keeps the recipe, the metrics, the best encoder and everything needed to resume.
    Ctrl-C stops after the current step; kill -9 loses at most checkpoints.every_steps steps.

    Examples:
        diptych train scenes --out runs/scenes
        diptych train flickr8k --data flickr8k --out runs/flickr8k
        diptych train --resume runs/flickr8k
    """
    from diptych.training.fit import fit
    from diptych.training.recipe import collection_of, load_recipe, recipe_names
    from diptych.training.run import Run

    if options.resume is not None:
        if options.recipe is not None or options.set_:
            raise UsageError("--resume takes the run's own recipe", "leave the recipe and --set out")
        run = Run.open(options.resume)
        if run.finished:
            show(f"{options.resume} is finished")
            next_step(["diptych", "evaluate", options.resume])
            return
    elif options.recipe is None:
        raise UsageError("no recipe given", f"a TOML file, or one of: {', '.join(recipe_names())}")
    else:
        loaded = load_recipe(options.recipe, recipe_values(options.set_) | _data_values(data))
        folder = options.out or Path("runs") / loaded.name
        # Further processes of the same training may find the run that the first has begun.
        run = Run.prepare(folder, loaded) if is_main_process() else Run(folder, loaded)
    with stop_on_signal():
        collection = collection_of(run.recipe.data)
        show(collection.describe(), *collection.notes)
        how = options.model_dump(include={"devices", "accelerator"})
        place = fit(run, collection, features_root=options.features, **how)
    kept = ", the last is kept" if run.recipe.checkpoints.keep == "last" else ""
    best = f"best validation rsum {place.best:.1f} in epoch {place.best_epoch} of {place.epoch}"
    show(f"{best}{kept}; run in {run.folder}")
    next_step(["diptych", "evaluate", run.folder])


def _data_values(data: DataSpec) -> dict[str, object]:
    values: dict[str, object] = {"data.options": data.reader_options(), "data.reader": data.reader}
    values["data.skip_bad_images"] = data.skip_bad_images
    if data.data is not None:
        values |= {"data.path": data.section()["path"], "data.scenes": None}
    return {key: value for key, value in values.items() if value or key == "data.scenes"}
