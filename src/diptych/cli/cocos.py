"""``diptych analyse cocos``: which candidates of a training batch move a query, counted over the training set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import (
    Data,
    DataChoice,
    Images,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Source,
    encoded_of,
    parse_values,
)
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import safe_name

if TYPE_CHECKING:
    from diptych.data.batches import Batch
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.objectives import Objective
    from diptych.training.run import Run


def cocos(
    source: Source,
    data: Data = None,
    split: Annotated[
        str | None,
        typer.Option(help="The part of the data; what the run was trained on, or train.", show_default=False),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="A loss, see diptych info; the run's own when not given.", show_default=False),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="KEY=VALUE for the objective, e.g. temperature=0.1. Repeatable.", show_default=False
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=2, help="As the plan counts it; the run's own, or 128.", show_default=False),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(help="captions, distinct or grouped; the run's own, or distinct.", show_default=False),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="ε: a candidate counts when its weight is above it.")] = 0.01,
    unit: Annotated[
        str, typer.Option(help="A weight is τ·|∂L/∂s| (temperature) or |∂L/∂s| (score).")
    ] = "temperature",
    compat: Annotated[
        str,
        typer.Option(
            help="none, equations (as Eq. 9–13 read), published (as the published code, faults included)."
        ),
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Of the order in which batches are drawn.")] = 0,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Count contributing samples (COCOS): which candidates of a batch move a query, for any loss.

    Batches of the training split are drawn once through, as in training but without dropout and
    augmentation; every count is a mean over them.

    Examples:

      [bold]diptych analyse cocos runs/flickr8k[/bold]

      [bold]diptych analyse cocos runs/flickr8k --objective triplet --option margin=0.2 --batch-size 128[/bold]

      [bold]diptych analyse cocos hf:openai/clip-vit-base-patch32 --data flickr30k --objective infonce --out clip[/bold]
    """
    from diptych.analysis import cocos_over
    from diptych.analysis.cocos import unit_factor
    from diptych.analysis.cocos_report import check_compat, check_epsilon
    from diptych.analysis.paper_counts import paper_loss
    from diptych.objectives.similarity import similarity_of
    from diptych.report.analysis import cocos_page
    from diptych.report.figures import write_picture

    run = _run_of(source)
    options = parse_values(option, "--option")
    # Both before anything is embedded: what cannot be said, is said at once.
    built = _objective(run, objective, options)
    check_epsilon(epsilon)
    if check_compat(compat) != "none":
        paper_loss(built)
    unit_factor(built, unit)  # type: ignore[arg-type]
    embedded = (Path(source) / "origin.json").is_file()
    if split is None and not embedded:
        split = "train" if run is None else run.recipe.data.train
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    with progress():
        encoded, origin, _ = encoded_of(source, choice, split, None if out is None else out / "embeddings")
        batches, drawn = _batches(run, encoded, plan, batch_size, seed)
        found = cocos_over(
            encoded.images.rows,
            encoded.texts.rows,
            batches,
            _objective(run, objective, options, encoded.about["encoder"].get("temperature")),
            epsilon,
            unit=unit,  # type: ignore[arg-type]
            compat=check_compat(compat),
            similarity=similarity_of(encoded.similarity),
            about={
                "dataset": encoded.about["dataset"],
                "split": origin.split or "all",
                "encoder": encoded.images.encoder,
                "data": encoded.about["data"],
                **_without_shortcuts(run),
                **drawn,
            },
        )
        counted = "" if compat == "none" else f"-{compat}"
        name = f"{encoded.about['dataset']}-{origin.split or 'all'}-{found.protocol.objective}{counted}"
        target = Path(source) / "cocos" / safe_name(name) if out is None else out / "cocos"
        written = found.save(target / "cocos.json")
        page = cocos_page(found).save(target / "cocos.html")
        table = found.tables()[0]
        counts = ["  ".join(row) for row in (table.columns, *table.texts)]
        words = "\n".join([*counts, found.protocol.line(), *found.notes()])
        picture = write_picture(target / "cocos.png", found.charts(), words)
    show(*found.tables())
    say(found.protocol.line())
    for note in found.notes():
        say(note)
    say(f"with the distribution of weights in {written}, drawn in {picture}")
    next_step(["open", page])


def _run_of(source: str) -> Run | None:
    """The run that ``source`` is, or whose embeddings it is."""
    from diptych.core.reading import read_json
    from diptych.training.run import Run

    folder = Path(source)
    if (folder / "origin.json").is_file():
        folder = Path(read_json(folder / "origin.json")["model"])
    return Run.open(folder) if (folder / "run.json").is_file() else None


def _without_shortcuts(run: Run | None) -> dict[str, str]:
    """Said of a run that was trained with shortcuts: its rows are of pictures and captions as they are."""
    options = None if run is None else run.recipe.shortcuts
    if options is None or options.setup == "none":
        return {}
    return {"shortcuts": f"none, trained with {options.setup}"}


def _objective(
    run: Run | None, name: str | None, given: dict[str, Any], temperature: float | None = None
) -> Objective:
    """The objective that was asked for; the run's own, with what it learned, when it is that one."""
    from diptych.objectives import OBJECTIVES
    from diptych.training.run import trained_objective

    if run is not None and name in (None, run.recipe.objective["name"]):
        return trained_objective(run, **given)
    if name is None:
        raise UsageError("no objective given", f"--objective with one of: {', '.join(OBJECTIVES.names())}")
    kind = OBJECTIVES.get(name)
    # An encoder from elsewhere was trained with a loss that learns its temperature; a run was not, with this.
    if run is None and temperature is not None and "learn_temperature" in kind.options:
        given = {"temperature": temperature, **given}
    return kind(**given)


def _batches(
    run: Run | None, encoded: EncodedCollection, plan: str | None, size: int | None, seed: int
) -> tuple[list[Batch], dict[str, Any]]:
    """One epoch of batches, as the run drew them where nothing else was asked, and how they were drawn."""
    from diptych.data.batches import BatchPlan, PlanName

    own = None if run is None else run.recipe.batches
    name: Any = plan or ("distinct" if own is None else own.plan)
    if name not in get_args(PlanName):
        raise UnknownNameError("plan", name, get_args(PlanName))
    captions_per_image = 5 if own is None else own.captions_per_image
    drawn = {
        "plan": name,
        "captions per image": captions_per_image if name == "grouped" else None,
        "seed": seed,
    }
    made = BatchPlan(
        encoded.caption_image,
        len(encoded.images),
        size or (128 if own is None else own.size),
        name,
        captions_per_image,
        seed,
    )
    return made.epoch(0), drawn
