"""The command ``diptych``: its verbs, and what happens to errors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.categories import categories
from diptych.cli.cocos import cocos
from diptych.cli.compare import compare
from diptych.cli.console import next_step, progress, say, show
from diptych.cli.data import data
from diptych.cli.embed import embed
from diptych.cli.evaluate import evaluate
from diptych.cli.granularity import granularity
from diptych.cli.index import index
from diptych.cli.info import info
from diptych.cli.intent import intent
from diptych.cli.perturb import perturb
from diptych.cli.protocol import protocol
from diptych.cli.report import report
from diptych.cli.resources import resources
from diptych.cli.scenes import scenes
from diptych.cli.search import search
from diptych.cli.shortcuts import shortcuts
from diptych.cli.sources import (
    Data,
    DataChoice,
    Images,
    Model,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    encoder_of,
)
from diptych.cli.sparsify import sparsify
from diptych.cli.stress import stress
from diptych.cli.study import study
from diptych.cli.terms import explain, terms
from diptych.cli.train import train
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import safe_name

if TYPE_CHECKING:
    from diptych.analysis.information import Audit
    from diptych.data.collection import Collection
    from diptych.encoders.adapted import LinearlyAdapted


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the run goes; a finished one is shown again.")
    ] = Path("demo"),
    quick: Annotated[bool, typer.Option(help="Half the training, and a lower score.")] = False,
) -> None:
    """Generate scenes, train, evaluate, index, search and report: the main job in one command.

    Example: [bold]diptych demo[/bold]
    """
    begun = time.monotonic()
    say("1/5  training a dual encoder on generated scenes")
    if (out / "run.json").is_file():
        train(resume=out)
    else:
        train("scenes", out=out, set_=["stages.0.epochs=1"] if quick else None)
    say("\n2/5  evaluating it on scenes it has not seen")
    evaluate(str(out))
    say("\n3/5  indexing their pictures")
    index(str(out))
    say("\n4/5  searching")
    search(out / "index-images-exact", "a green cross", k=5, sheet=out / "search.png")
    say("\n5/5  writing the report")
    report(out)
    say(f"\nthe demo took {time.monotonic() - begun:.0f} s")
    next_step(
        ["open", out / "report.html"], ["diptych", "search", out / "index-images-exact", "a red triangle"]
    )


def audit(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Runs, saved encoders, or names such as hf:NAME; several are printed side by side.",
            metavar="RUN...",
            show_default=False,
        ),
    ],
    data: Data = None,
    scenes: Annotated[
        bool, typer.Option("--scenes", help="Generated scenes, whose facts are known, as the data.")
    ] = False,
    probe: Annotated[str, typer.Option(help="linear, mlp or both.")] = "both",
    most: Annotated[
        int, typer.Option(min=10, help="Training images that probes are trained on, at most.")
    ] = 4000,
    samples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples for 95 % intervals; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of probes, control tasks and the images drawn.")] = 0,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Say how much of what images and captions say their rows hold: shared, caption-specific, shortcuts.

    Small probes try to predict each fact from frozen rows; what they save of the fact's bits on test
    images is held. On data without facts, the presence of words takes their place. A run that was
    trained with shortcuts is audited with and without them, on its own data and on any other.

    Examples:

      [bold]diptych audit runs/scenes[/bold]

      [bold]diptych audit runs/infonce runs/ltd runs/ifm --probe linear[/bold]

      [bold]diptych audit hf:openai/clip-vit-base-patch32 --scenes --out clip[/bold]
    """
    from diptych.analysis.information import PROBES, READING
    from diptych.analysis.information.tables import HELD, audit_summary, kinds_tables
    from diptych.report.analysis import audit_page

    if probe != "both" and probe not in PROBES:
        raise UnknownNameError("probe", probe, [*PROBES, "both"])
    if scenes and data is not None:
        raise UsageError("both --data and --scenes are given", "give one of them")
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    _check_choice(choice)
    options = {"probes": tuple(PROBES) if probe == "both" else (probe,), "most": most, "samples": samples}
    other = "scenes" if scenes else data.stem if data is not None else None
    targets = _targets(sources, out, other)
    found: dict[str, Audit] = {}
    with progress():
        for source, (name, target) in zip(sources, targets.items(), strict=True):
            found[name] = _audited(source, target, choice, scenes, seed=seed, **options)
            found[name].save(target / "audit.json")
            audit_page(found[name], name).save(target / "report.html")
    show(*kinds_tables(found))
    say(HELD)
    for name, one in found.items():
        for line in (audit_summary(one), one.protocol.line()):
            say(f"{name}: {line}" if len(found) > 1 else line)
        for note in one.notes():
            say(note)
    for content in dict.fromkeys(one.protocol.content for one in found.values()):
        say(READING[content])
    pages = [target / "report.html" for target in targets.values()]
    next_step(["open", *pages])


def _check_choice(choice: DataChoice) -> None:
    """Whether options about data have data that they are about."""
    given = {
        "--images": choice.images is not None,
        "--reader": choice.reader is not None,
        "--reader-option": bool(choice.reader_option),
        "--skip-bad-images": choice.skip_bad_images,
    }
    if choice.data is None and any(given.values()):
        named = " and ".join(name for name, there in given.items() if there)
        raise UsageError(f"{named} without --data", "give --data: they say how it is read")


def _targets(sources: list[str], out: Path | None, other: str | None) -> dict[str, Path]:
    """A name and a folder for every source: in the source itself where it is a folder.

    What a run holds of ``other`` data than its own has a folder of its own beside what it holds of that.
    """
    from diptych.encoders.family import resolve

    targets: dict[str, Path] = {}
    if twice := [source for number, source in enumerate(sources) if source in sources[:number]]:
        raise UsageError(f"{twice[0]} is given twice", "name each once")
    for source in sources:
        folder = Path(source)
        name = folder.resolve().name if folder.is_dir() else source.rpartition("/")[2]
        if name in targets:
            name = source
        if not folder.is_dir():
            resolve(source)
        if out is None and not folder.is_dir():
            raise UsageError("nowhere to write", f"{source} is no folder: name one with --out")
        place = folder if out is None else out if len(sources) == 1 else out / safe_name(name)
        targets[name] = place / "audit"
        if other is not None and out is None and (folder / "run.json").is_file():
            targets[name] /= other
    return targets


def _audited(source: str, target: Path, choice: DataChoice, scenes: bool, **options: Any) -> Audit:
    from diptych.cli.sources import encoder_of
    from diptych.evaluation.auditing import audit_encoder
    from diptych.training.evaluations import audit_run

    encoder, run = encoder_of(source)
    if run is not None and choice.data is None and not scenes:
        return audit_run(run, folder=run.folder / "embeddings", **options)
    collection = _collection(choice, scenes)
    if run is not None:
        return audit_run(run, collection, target / "embeddings", **options)
    return audit_encoder(encoder, collection, target / "embeddings", **options)


def _collection(choice: DataChoice, scenes: bool) -> Collection:
    from diptych.training.recipe import collection_of
    from diptych.training.sections import Data as DataSection

    if scenes:
        from diptych.data.scenes import scenes as made

        return made()
    return collection_of(DataSection.model_validate(choice.section(None)))


def adapt(
    model: Model,
    data: Data = None,
    pairs: Annotated[
        int, typer.Option(min=0, help="How many pictures with a caption are learned from.")
    ] = 16,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the draw; fewer pairs of a seed are among more of it.")
    ] = 0,
    split: Annotated[str, typer.Option(help="The part of the data that pairs are drawn from.")] = "train",
    captions: Annotated[str, typer.Option(help="Of each picture: one caption, or all it has.")] = "one",
    method: Annotated[
        str, typer.Option(help="gaussian: in closed form; infonce: by descent on that loss.")
    ] = "gaussian",
    strength: Annotated[
        float | None,
        typer.Option(
            help="The pull towards the encoder as it is: pairs that it is worth (gaussian), or weight of the "
            "penalty (infonce).",
            show_default="chosen by the pairs",
        ),
    ] = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Adapt an encoder to other data with a few pairs: a linear map per side, in seconds.

    The encoder's weights stay as they are. Where the pairs say that it is best as it is, its rows stay so
    too. Test on another split than pairs are drawn from.

    Examples:

      [bold]diptych adapt runs/flickr8k --data fashion --pairs 64 --out adapted[/bold]

      [bold]diptych adapt hf:openai/clip-vit-base-patch32 --data cub --pairs 16 --seed 1 --out adapted[/bold]
    """
    from diptych.core.files import check_replaceable
    from diptych.encoders.dual_encoder import CONFIG_FILE
    from diptych.encoders.embeddings import Origin
    from diptych.training.adaptation import adapt_linear

    if out is None:
        raise UsageError("nowhere to write", "name a folder with --out")
    if out.resolve() == Path(model).resolve():
        raise UsageError(f"{out} is what is adapted", "name another folder with --out")
    check_replaceable(out, CONFIG_FILE)  # before the work, not after it
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    with progress():
        encoder, run = encoder_of(model)
        section = choice.section(run)
        part = Origin(model, section, split).collection()
        adapted = adapt_linear(
            encoder,
            part,
            pairs=pairs,
            seed=seed,
            captions=captions,  # type: ignore[arg-type]  # checked there
            method=method,  # type: ignore[arg-type]
            strength=strength,
        )
        adapted.save(out)
    if run is not None and split == run.recipe.data.train and section["path"] == run.recipe.data.path:
        say(f"{model} was trained on these pairs: what it knows by heart says little about new pairs")
    for line in _lines(adapted):
        say(line)
    next_step(["diptych", "evaluate", out, "--data", data or section["path"] or "DATA"])


def _lines(adapted: LinearlyAdapted) -> list[str]:
    about = adapted.about
    which = f"{about['pairs']:,} pairs of {about['dataset']} {about['split']} (seed {about['seed']})"
    losses = about["held_out_losses"]
    lines = []
    if losses:
        said = ", ".join(f"{strength} {loss:.3f}" for strength, loss in losses.items())
        lines.append(f"held-out InfoNCE by strength of the pull: {said}")
    if adapted.maps.is_identity:
        lines.append(f"{which} change nothing: the encoder stays as it is")
    else:
        lines.append(f"adapted on {which}, {about['method']}, strength {about['strength']:g}")
    return lines


app = typer.Typer(
    name="diptych",
    help="Image–text retrieval: train dual encoders, measure what they learned, index and search.",
    epilog="Begin with: diptych demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

for verb in (
    demo,
    scenes,
    shortcuts,
    train,
    adapt,
    embed,
    evaluate,
    protocol,
    compare,
    cocos,
    audit,
    granularity,
    perturb,
    stress,
    sparsify,
    index,
    search,
    terms,
    explain,
    report,
    resources,
    info,
):
    app.command(verb.__name__)(verb)
app.add_typer(study)
app.add_typer(data)
app.add_typer(intent)
app.add_typer(categories)
