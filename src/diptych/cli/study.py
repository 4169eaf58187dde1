"""``diptych study``: the papers' tables, run and compared with what the papers print."""

import os
from pathlib import Path
from typing import Annotated, Any, Self

import typer
from pydantic import field_validator, model_validator

from diptych.cli.console import messages, next_step, stop_on_signal
from diptych.cli.console import show as say
from diptych.cli.verbs import completion
from diptych.commerce.purchase_intent.shown import DisclosureControl, disclosing
from diptych.core.errors import DiptychError, Interrupted, UsageError
from diptych.core.files import write_json
from diptych.core.options import Options, command_line, parameter, parse_values
from diptych.data.several import DataChoices
from diptych.data.source import OutOption
from diptych.studies import STUDIES, Choices, Results, Study, collect, compare, judged_in_the_paper
from diptych.studies.compare import Comparison
from diptych.studies.page import (
    claims_tables,
    content_of,
    matrix_page,
    matrix_table,
    notes_of,
    papers_tables,
    printed_table,
    rows_table,
    settings_table,
    study_page,
)
from diptych.studies.plan import POSITIVES_OPTION
from diptych.studies.results import StudyFolder
from diptych.studies.runner import run_study
from diptych.studies.study import SettingName

_NAMES = completion("diptych.studies:STUDIES")
Name = Annotated[str, typer.Argument(help="diptych study list names them.", autocompletion=_NAMES)]
_SOME = typer.Argument(help="diptych study list names them.", autocompletion=_NAMES, show_default=False)
_RUNS = typer.Argument(help="Folders of studies, or of runs in them.", metavar="FOLDER", show_default=False)


class StudyData(DataChoices):
    """The data that a study is run on."""

    def choices(self, study: Study) -> dict[str, Any]:
        if study.several:
            return {"collections": self.several()}
        if study.of != "log":
            return {"data": self.one()}
        if self.images or self.skip_bad_images:
            flag = "--images" if self.images else "--skip-bad-images"
            raise UsageError(f"{flag}: {study.name} is of a shop's log", f"leave {flag} out")
        return {"data": self.one(f"{study.name} is of one log")}


class RunOptions(Options):
    """Options of running the rows of a study."""

    rows: str | None = parameter(None, "Names or the paper's numbers, with commas: 1.1,1.2.")
    seeds: str | None = parameter(None, "With commas: 0,1,2.", default="the setting's own")
    quick: bool = parameter(False, "On generated data, in minutes.")
    all_: bool = parameter(False, "Every study, and one page over all of them.", "--all")
    setting: SettingName | None = parameter(
        None,
        "How rows are trained: as the paper says, or as its code does (published).",
        default="paper on the paper's datasets, data on others",
    )
    targets: str | None = parameter(
        None, "Latent targets: a sentence-transformers model's folder or name, or lsa."
    )
    regions: Path | None = parameter(None, "An .npy file of region features, for VSRN.")
    positives: str | None = parameter(None, "Further judgements to measure by, NAME:PATH, e.g. cxc:FOLDER.")
    positives_option: list[str] = parameter([], "KEY=VALUE, e.g. originals=true. Repeatable.")
    set_: list[str] = parameter(
        [],
        "KEY=VALUE for the recipes of all rows, e.g. model.image.weights=FILE; or what a row is, e.g. "
        "clip=ENCODER. Repeatable.",
        "--set",
    )
    features: Path | None = parameter(None, "Folder of cached backbone features.")
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto.")
    devices: int = parameter(1, "Processes that share each batch.", ge=1)

    @field_validator("seeds")
    @classmethod
    def _are_numbers(cls, seeds: str | None) -> str | None:
        if seeds is not None and not all(part.strip().isdecimal() for part in seeds.split(",")):
            raise ValueError("give whole numbers from 0 with commas, e.g. --seeds 0,1,2")
        return seeds

    @model_validator(mode="after")
    def _is_one_setting(self) -> Self:
        if self.quick and self.setting not in (None, "quick"):
            raise ValueError(f"--quick and --setting {self.setting}: give one of them")
        return self


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
    say(f"{one.paper.authors}, “{one.paper.title}”, {one.paper.venue}", one.asks, printed_table(one))
    judged = [(claim, None, printed) for claim, printed in judged_in_the_paper(one)]
    say(settings_table(one), rows_table(one), *claims_tables(judged))
    say(*(f"note: {note}" for note in notes_of(one)))
    run = ["diptych", "study", "run", name]
    next_step([*run, "--quick"], *([run] if one.of == "nothing" else []))


def run(
    data: StudyData,
    out: OutOption,
    options: RunOptions,
    control: DisclosureControl,
    name: Annotated[str | None, _SOME] = None,
) -> None:
    """Train and measure a study's rows; finished ones are used as they are, interrupted ones resume.

    Examples:
        diptych study run metric-learning.table-1 --quick
        diptych study run metric-learning.table-1 --data flickr8k --seeds 0,1,2
        diptych study run ltd.table-1 --data flickr30k --targets all-MiniLM-L6-v2
        diptych study run intent.table-6.4 --data log
        diptych study run reproducibility.table-2.1 --data coco=coco -o table
        diptych study run --all --quick
    """
    if name is None or options.all_:
        if name is not None or not options.all_:
            raise UsageError(
                "no study given" if name is None else f"--all and {name}",
                "name a study of diptych study list, or give only --all",
            )
        if data.data or not (options.quick or options.setting == "quick") or options.rows:
            raise UsageError("--all runs every study as --quick does", "diptych study run --all --quick")
        _run_all(data, out.out or Path("studies"), options, control)
        return
    folder = out.out or Path("studies") / name
    with stop_on_signal(), messages(), disclosing(control):
        results = run_chosen(STUDIES.get(name), folder, data, options)
    _, page = _report(results, folder, folder / "report.html", control)
    next_step(["diptych", "study", "verdict", folder], ["open", page])


def run_chosen(study: Study, folder: Path, data: StudyData, options: RunOptions) -> Results:
    from diptych.training.recipe import PATHS, whole_paths

    setting = "quick" if options.quick else options.setting
    if not data.data and setting != "quick" and study.of != "nothing":
        what = "log" if study.of == "log" else "dataset"
        raise UsageError(
            f"no data given for {study.name}", f"give a {what} with --data, or --quick for generated data"
        )
    given = {row.given for row in study.all_rows if row.given}
    choices = Choices(
        setting=setting,
        regions=None if options.regions is None else str(options.regions.resolve()),
        values=whole_paths(parse_values(options.set_, "--set"), {*PATHS, *given, *study.paths}),
        targets=options.targets,
        positives=options.positives and POSITIVES_OPTION.join([options.positives, *options.positives_option]),
        **data.choices(study),
    )
    words, apart = ("diptych", "study", "run", study.name), ("features", "accelerator", "devices")
    rows = [part.strip() for part in (options.rows or "").split(",") if part.strip()]
    return run_study(
        study,
        folder,
        choices,
        rows=rows or None,
        seeds=None if options.seeds is None else [int(part) for part in options.seeds.split(",")],
        features_root=options.features,
        accelerator=options.accelerator,
        devices=options.devices,
        command=command_line(words, data, options, left_out=apart),
    )


def _run_all(data: StudyData, folder: Path, options: RunOptions, control: DisclosureControl) -> None:
    compared: list[tuple[Comparison, Path]] = []
    failed: dict[str, str] = {}
    with stop_on_signal(), messages(), disclosing(control):
        for study in STUDIES:
            own = folder / study.name
            say(f"{study.name}: {study.topic}")
            try:
                results = run_chosen(study, own, data, options)
                compared.append(_report(results, own, own / "report.html", control, quiet=True))
            except Interrupted:
                raise
            except DiptychError as error:
                failed[study.name] = str(error)
    _matrix(compared, failed, folder / "matrix.html")
    if failed:
        raise UsageError(
            f"{len(failed)} studies failed: {', '.join(failed)}", "run each by itself to see why"
        )


def verdict(runs: Annotated[list[Path], _RUNS], out: OutOption, control: DisclosureControl) -> None:
    """Compare what studies measured with what the papers print, cell by cell and claim by claim.

    The report is report.html in the first folder, or --out; of several studies --out is the page over all.

    Examples:
        diptych study verdict studies/metric-learning.table-1
        diptych study verdict studies/* --out studies/matrix.html
    """
    marker = StudyFolder.marker()
    if len(runs) > 1:  # next to studies there is what they share, and pages
        own = (marker, "studies")
        runs = [one for one in runs if not one.exists() or any((one / name).exists() for name in own)] or runs
    found = collect(runs)
    folders = {StudyFolder.open(one / marker).study: one for one in runs[::-1] if (one / marker).is_file()}
    matrix = out.out if len(found) > 1 else None
    compared = []
    for results in found:
        folder = folders.get(results.study)
        # A run can belong to several studies: its reports are distinguished by their names.
        page = runs[0] / f"{results.study}.html" if folder is None else folder / "report.html"
        if matrix is None:
            page = out.out or page
        compared.append(_report(results, folder, page, control, quiet=matrix is not None))
        if matrix is None:
            next_step(["open", page])
    if matrix is not None:
        _matrix(compared, {}, matrix)


def _matrix(reports: list[tuple[Comparison, Path]], failed: dict[str, str], page: Path) -> None:
    compared = [(comparison, Path(os.path.relpath(one, page.parent))) for comparison, one in reports]
    table = matrix_table(compared, failed)
    say(table)
    write_json(page.with_suffix(".json"), table.content())
    commands = [f"diptych study verdict {page.parent}/* --out {page}"]
    next_step(["open", matrix_page(compared, failed, commands).save(page)])


def _report(
    results: Results, folder: Path | None, page: Path, control: DisclosureControl, quiet: bool = False
) -> tuple[Comparison, Path]:
    """Print a study's comparison, and write it: its page, with the command that its folder was begun with, and JSON."""
    command = "" if folder is None else StudyFolder.open(folder / StudyFolder.marker()).command
    with disclosing(control):
        comparison = compare(STUDIES.get(results.study), results)
        if not quiet:
            say(*comparison.shown())
        write_json(page.with_suffix(".json"), content_of(comparison))
        return comparison, study_page(comparison, command).save(page)
