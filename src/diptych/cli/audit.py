"""``diptych analyse audit``: what images and captions say, and what embeddings hold of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
)
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import safe_name

if TYPE_CHECKING:
    from diptych.analysis.information import Audit
    from diptych.data.collection import Collection


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

      [bold]diptych analyse audit runs/scenes[/bold]

      [bold]diptych analyse audit runs/infonce runs/ltd runs/ifm --probe linear[/bold]

      [bold]diptych analyse audit hf:openai/clip-vit-base-patch32 --scenes --out clip[/bold]
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
