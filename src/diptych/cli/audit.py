"""``diptych analyse audit``: what images and captions say, and what embeddings hold of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import typer
from pydantic import model_validator

from diptych.cli.console import next_step, say, show
from diptych.cli.sources import DataSpec, OutOption, SamplesOption, SeedOption, run_of
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.options import parameter

if TYPE_CHECKING:
    from diptych.analysis.information import Audit


class AuditOptions(DataSpec, SamplesOption, SeedOption, OutOption):
    """Which data is audited, and how."""

    scenes: bool = parameter(False, "Generated scenes, whose facts are known, as the data.")
    probe: Literal["linear", "mlp", "both"] = parameter("both", "What predicts facts.")
    own_probes: bool = parameter(False, "Probes of a run's own data; --data is tested alone.")
    most: int = parameter(4000, "Training images that probes are trained on, at most.", ge=10)

    @model_validator(mode="after")
    def _one_dataset(self) -> Self:
        if self.scenes and self.data is not None:
            raise UsageError("both --data and --scenes are given", "give one of them")
        if self.own_probes and not self.scenes and self.data is None:
            raise UsageError("--own-probes without --data", "name the data that they are tested on")
        self.check_used()
        return self


def audit(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Runs, saved encoders, or names such as hf:NAME; several are printed side by side.",
            metavar="RUN",
        ),
    ],
    options: AuditOptions,
) -> None:
    """Measure how much of what images and captions say embeddings hold: shared, specific, shortcuts.

    Probes predict each fact from frozen embeddings; what they save of the fact's bits on test images is held.
    On data without facts, the presence of words takes their place. A run that was trained with shortcuts is
    audited with and without them.

    Examples:
        diptych analyse audit runs/infonce runs/ltd runs/ifm --probe linear
        diptych analyse audit hf:openai/clip-vit-base-patch32 --scenes --out clip
    """
    from diptych.analysis.information import READING
    from diptych.analysis.information.tables import HELD, audit_summary, kinds_tables
    from diptych.report.analysis import audit_page

    targets = _targets(sources, options)
    found: dict[str, Audit] = {}
    for source, (name, target) in zip(sources, targets.items(), strict=True):
        found[name] = _audited(source, target, options)
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
    next_step(["open", *(target / "report.html" for target in targets.values())])


def _targets(sources: list[str], options: AuditOptions) -> dict[str, Path]:
    """Return a name and a folder for every source: in the source itself where it is a folder.

    An audit of a run on other data than its own has a folder of its own beside that on its own.
    """
    from diptych.encoders.family import resolve

    if twice := [source for number, source in enumerate(sources) if source in sources[:number]]:
        raise UsageError(f"{twice[0]} is given twice", "name each once")
    out, targets = options.out, dict[str, Path]()
    other = "scenes" if options.scenes else options.data.stem if options.data is not None else None
    for source in sources:
        folder = Path(source)
        if not folder.is_dir():
            resolve(source)
            if out is None:
                raise UsageError("nowhere to write", f"{source} is no folder: name one with --out")
        name = folder.resolve().name if folder.is_dir() else source.rpartition("/")[2]
        name = source if name in targets else name
        place = folder if out is None else out if len(sources) == 1 else out / safe_name(name)
        targets[name] = place / "audit"
        if other is not None and out is None and (folder / "run.json").is_file():
            targets[name] /= other
    return targets


def _audited(source: str, target: Path, options: AuditOptions) -> Audit:
    from diptych.data.scenes import scenes
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import read_data
    from diptych.encoders.family import resolve
    from diptych.evaluation.auditing import audit_encoder
    from diptych.training.evaluations import audit_run

    run = run_of(source)  # a wrong name is found before the data is read, the data before weights are
    resolve(source)
    how: dict[str, Any] = options.model_dump(include={"most", "samples", "seed"})
    how["probes"] = ("linear", "mlp") if options.probe == "both" else (options.probe,)
    if run is not None and options.data is None and not options.scenes:
        return audit_run(run, folder=run.folder / "embeddings", **how)
    collection = scenes() if options.scenes else read_data(options.section(None))
    if run is not None:
        return audit_run(run, collection, target / "embeddings", options.own_probes, **how)
    if options.own_probes:
        raise UsageError(f"{source} is no run: it has no data of its own", "leave --own-probes out")
    return audit_encoder(DualEncoder.load(source), collection, target / "embeddings", **how)
