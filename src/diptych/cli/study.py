"""``diptych study``: the papers' tables, run and compared with what the papers print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import field_validator, model_validator

from diptych.cli.console import messages, next_step, stop_on_signal
from diptych.cli.console import show as say
from diptych.cli.sources import OutOption, recipe_values
from diptych.cli.study_data import DataChoices
from diptych.commerce.purchase_intent.shown import Discretion, showing
from diptych.core.errors import UsageError
from diptych.core.options import command_line, parameter
from diptych.studies import STUDIES, Choices, Results, collect, compare, judged_in_the_paper, run_study
from diptych.studies.page import notes_of, study_page
from diptych.studies.results import STUDY, StudyFolder
from diptych.studies.rows import path_keys
from diptych.studies.tables import (
    claims_tables,
    compared_tables,
    measured_rows,
    papers_tables,
    published_tables,
    rows_table,
)

Name = Annotated[str, typer.Argument(help="A study; diptych study list names them.", show_default=False)]
_RUNS = typer.Argument(help="Folders of studies, or of runs in them.", metavar="FOLDER", show_default=False)
Runs = Annotated[list[Path], _RUNS]


def list_() -> None:
    """List the studies: what each asks and how long it takes.

    Examples:
        diptych study list
    """
    say(*papers_tables(STUDIES))
    name = next(iter(STUDIES)).name
    next_step(["diptych", "study", "show", name], ["diptych", "study", "run", name, "--quick"])


def show(name: Name) -> None:
    """Show a study: the printed table, its rows, its claims and whether the printed numbers support them.

    Examples:
        diptych study show ltd.table-1
    """
    one = STUDIES.get(name)
    say(f"{one.paper.authors}, “{one.paper.title}”, {one.paper.venue}", one.asks, *published_tables(one))
    say(*(f"setting {key}: {setting.description}; {setting.time}" for key, setting in one.settings.items()))
    say(rows_table(one))
    say(*claims_tables([(claim, None, printed) for claim, printed in judged_in_the_paper(one)]))
    say(*(f"note: {note}" for note in notes_of(one)))
    data = [] if one.without_data else ["--data", "LOG" if one.of_logs else "DATASET"]
    next_step(["diptych", "study", "run", name, "--quick"], ["diptych", "study", "run", name, *data])


class RunOptions(OutOption):
    """Which rows of a study are run, and how."""

    rows: str | None = parameter(None, "Names or the paper's numbers, with commas: 1.1,1.2.")
    seeds: str | None = parameter(None, "With commas: 0,1,2.", default="the setting's own")
    quick: bool = parameter(False, "On generated data, in minutes.")
    setting: Literal["paper", "data", "quick"] | None = parameter(
        None, "How rows are trained.", default="paper on the paper's datasets, data on others"
    )
    targets: str | None = parameter(
        None, "Latent targets: a sentence-transformers model's folder or name, or lsa."
    )
    regions: Path | None = parameter(None, "An .npy file of region features, for VSRN.")
    positives: str | None = parameter(None, "Further judgements to measure by, NAME:PATH, e.g. cxc:FOLDER.")
    set_: list[str] = parameter(
        [],
        "KEY=VALUE for the recipes of all rows, e.g. model.image.weights=FILE; or what a row is, e.g. "
        "clip=ENCODER. Repeatable.",
        "--set",
    )
    features: Path | None = parameter(None, "Folder of cached backbone features.")
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto.")

    @field_validator("seeds")
    @classmethod
    def _are_numbers(cls, seeds: str | None) -> str | None:
        if seeds is not None and not all(part.strip().isdecimal() for part in seeds.split(",")):
            raise ValueError("give whole numbers from 0 with commas, e.g. --seeds 0,1,2")
        return seeds

    @model_validator(mode="after")
    def _is_one_setting(self) -> RunOptions:
        if self.quick and self.setting not in (None, "quick"):
            raise ValueError(f"--quick and --setting {self.setting}: give one of them")
        return self


def run(name: Name, data: DataChoices, options: RunOptions, discretion: Discretion) -> None:
    """Train and measure a study's rows; finished ones are used as they are, interrupted ones resume.

    Examples:
        diptych study run metric-learning.table-1 --quick
        diptych study run metric-learning.table-1 --data flickr8k --seeds 0,1,2
        diptych study run ltd.table-1 --data flickr30k --targets all-MiniLM-L6-v2
        diptych study run intent.table-6.4 --data LOG
        diptych study run reproducibility.table-2.1 --data coco=COCO --set clip=RUN
    """
    one = STUDIES.get(name)
    setting = "quick" if options.quick else options.setting
    if not data.data and setting != "quick" and not one.without_data:
        what = "a log" if one.of_logs else "a dataset"
        raise UsageError(
            f"no data given for {name}", f"give {what} with --data, or --quick for generated data"
        )
    folder = options.out or Path("studies") / name
    choices = Choices(
        setting=setting,
        regions=None if options.regions is None else str(options.regions.resolve()),
        values=recipe_values(options.set_, path_keys(one)),
        **options.model_dump(include={"targets", "positives"}),
        **data.choices(one),
    )
    beside = ("out", "features", "accelerator")
    command = command_line(("diptych", "study", "run", name), data, options, left_out=beside)
    rows = [part.strip() for part in (options.rows or "").split(",") if part.strip()]
    with stop_on_signal(), messages():
        results = run_study(
            one,
            folder,
            choices,
            rows=rows or None,
            seeds=None if options.seeds is None else [int(part) for part in options.seeds.split(",")],
            features_root=options.features,
            accelerator=options.accelerator,
            command=command,
        )
    with showing(discretion):
        _report(results, folder / "report.html", command)
    next_step(["diptych", "study", "verdict", folder], ["open", folder / "report.html"])


def verdict(runs: Runs, options: OutOption, discretion: Discretion) -> None:
    """Compare what studies measured with what the papers print, cell by cell and claim by claim.

    The report is report.html in the first folder, or --out.

    Examples:
        diptych study verdict studies/metric-learning.table-1
    """
    found = collect(runs)
    if options.out is not None and len(found) > 1:
        names = ", ".join(results.study for results in found)
        raise UsageError(f"one report of {len(found)} studies ({names})", "leave out --out")
    folders = {StudyFolder.open(one / STUDY).study: one for one in runs[::-1] if (one / STUDY).is_file()}
    for results in found:
        folder = folders.get(results.study)
        command = "" if folder is None else StudyFolder.open(folder / STUDY).command
        # A run can belong to several studies: its reports are told apart by their names.
        usual = runs[0] / f"{results.study}.html" if folder is None else folder / "report.html"
        with showing(discretion):
            _report(results, options.out or usual, command)
        next_step(["open", options.out or usual])


def _report(results: Results, target: Path, command: str) -> None:
    """Print a study's comparison, and write its page."""
    comparison = compare(STUDIES.get(results.study), results)
    say(comparison.label, *compared_tables(comparison, measured_alone=True), *comparison.tables)
    measured = measured_rows(comparison)
    for name, row in measured:
        facts = [] if comparison.study.of_logs else [f"seeds {', '.join(map(str, row.seeds))}"]
        facts += [f"{row.cpu_seconds / 60:.1f} CPU minutes"] if row.cpu_seconds else []
        say(f"{name}: {'; '.join([*facts, *row.commands])}")
    say(*dict.fromkeys(f"protocol: {row.protocol}" for _, row in measured), *comparison.remarks)
    if comparison.reproduces and (counts := comparison.counts()):
        say("cells: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    say(*claims_tables(comparison.claims))
    study_page(comparison, command).save(target)
