"""``diptych study``: the papers' tables, run and compared with what the papers print."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import messages, next_step, stop_on_signal
from diptych.cli.console import show as say
from diptych.cli.verbs import completion
from diptych.commerce.purchase_intent.shown import Discretion, showing
from diptych.core.errors import DiptychError, Interrupted, UsageError
from diptych.core.files import write_json
from diptych.data.source import OutOption
from diptych.studies import STUDIES, Results, collect, compare, judged_in_the_paper
from diptych.studies.compare import Comparison
from diptych.studies.page import (
    comparison_shown,
    content_of,
    matrix_page,
    matrix_table,
    notes_of,
    study_page,
)
from diptych.studies.results import StudyFolder
from diptych.studies.runner import RunOptions, StudyData, run_chosen
from diptych.studies.tables import claims_tables, papers_tables, printed_table, rows_table, settings_table

_NAMES = completion("diptych.studies:STUDIES")
Name = Annotated[str, typer.Argument(help="diptych study list names them.", autocompletion=_NAMES)]
_SOME = typer.Argument(help="diptych study list names them.", autocompletion=_NAMES, show_default=False)
_RUNS = typer.Argument(help="Folders of studies, or of runs in them.", metavar="FOLDER", show_default=False)


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
    discretion: Discretion,
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
            wrong = "no study given" if name is None else f"--all and {name}"
            raise UsageError(wrong, "name a study of diptych study list, or give --all alone")
        if data.data or not (options.quick or options.setting == "quick") or options.rows:
            raise UsageError("--all runs every study as --quick does", "diptych study run --all --quick")
        _run_all(data, out.out or Path("studies"), options, discretion)
        return
    folder = out.out or Path("studies") / name
    with stop_on_signal(), messages():
        results = run_chosen(STUDIES.get(name), folder, data, options)
    _, page = _report(results, folder, folder / "report.html", discretion)
    next_step(["diptych", "study", "verdict", folder], ["open", page])


def _run_all(data: StudyData, folder: Path, options: RunOptions, discretion: Discretion) -> None:
    compared: list[tuple[Comparison, Path]] = []
    failed: dict[str, str] = {}
    with stop_on_signal(), messages():
        for study in STUDIES:
            own = folder / study.name
            say(f"{study.name}: {study.topic}")
            try:
                results = run_chosen(study, own, data, options)
                compared.append(_report(results, own, own / "report.html", discretion, quiet=True))
            except Interrupted:
                raise
            except DiptychError as error:
                failed[study.name] = str(error)
    _matrix(compared, failed, folder / "matrix.html")
    if failed:
        raise UsageError(f"{len(failed)} studies failed: {', '.join(failed)}", "run each alone to see why")


def verdict(runs: Annotated[list[Path], _RUNS], out: OutOption, discretion: Discretion) -> None:
    """Compare what studies measured with what the papers print, cell by cell and claim by claim.

    The report is report.html in the first folder, or --out; of several studies --out is the page over all.

    Examples:
        diptych study verdict studies/metric-learning.table-1
        diptych study verdict studies/* --out studies/matrix.html
    """
    marker = StudyFolder.marker()
    if len(runs) > 1:  # beside studies there is what they share, and pages
        own = (marker, "studies")
        runs = [one for one in runs if not one.exists() or any((one / name).exists() for name in own)] or runs
    found = collect(runs)
    folders = {StudyFolder.open(one / marker).study: one for one in runs[::-1] if (one / marker).is_file()}
    matrix = out.out if len(found) > 1 else None
    compared = []
    for results in found:
        folder = folders.get(results.study)
        # A run can belong to several studies: its reports are told apart by their names.
        page = runs[0] / f"{results.study}.html" if folder is None else folder / "report.html"
        if matrix is None:
            page = out.out or page
        compared.append(_report(results, folder, page, discretion, quiet=matrix is not None))
        if matrix is None:
            next_step(["open", page])
    if matrix is not None:
        _matrix(compared, {}, matrix)


def _matrix(reports: list[tuple[Comparison, Path]], failed: dict[str, str], page: Path) -> None:
    """Print and write the page over several studies."""
    compared = [(comparison, Path(os.path.relpath(one, page.parent))) for comparison, one in reports]
    table = matrix_table(compared, failed)
    say(table)
    write_json(page.with_suffix(".json"), table.content())
    commands = [f"diptych study verdict {page.parent}/* --out {page}"]
    next_step(["open", matrix_page(compared, failed, commands).save(page)])


def _report(
    results: Results, folder: Path | None, page: Path, discretion: Discretion, quiet: bool = False
) -> tuple[Comparison, Path]:
    """Print a study's comparison, and write it: its page, with the command that its folder was begun with, and JSON."""
    command = "" if folder is None else StudyFolder.open(folder / StudyFolder.marker()).command
    with showing(discretion):
        comparison = compare(STUDIES.get(results.study), results)
        if not quiet:
            say(*comparison_shown(comparison))
        write_json(page.with_suffix(".json"), content_of(comparison))
        return comparison, study_page(comparison, command).save(page)
