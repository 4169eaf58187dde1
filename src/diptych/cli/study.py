"""``diptych study``: the papers' tables, run and compared with what the papers print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import messages, next_step, stop_on_signal
from diptych.cli.console import show as say
from diptych.cli.verbs import completion
from diptych.commerce.purchase_intent.shown import Discretion, showing
from diptych.core.errors import UsageError
from diptych.data.source import OutOption
from diptych.studies import STUDIES, Results, collect, compare, judged_in_the_paper
from diptych.studies.choices import RunOptions, StudyData, run_chosen
from diptych.studies.page import notes_of, study_page
from diptych.studies.results import STUDY, StudyFolder
from diptych.studies.tables import (
    claims_tables,
    comparison_shown,
    papers_tables,
    published_tables,
    rows_table,
)

_NAMES = completion("diptych.studies:STUDIES")
Name = Annotated[str, typer.Argument(help="diptych study list names them.", autocompletion=_NAMES)]
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
    say(f"{one.paper.authors}, “{one.paper.title}”, {one.paper.venue}", one.asks, *published_tables(one))
    say(*(f"setting {key}: {setting.description}; {setting.time}" for key, setting in one.settings.items()))
    judged = [(claim, None, printed) for claim, printed in judged_in_the_paper(one)]
    say(rows_table(one), *claims_tables(judged), *(f"note: {note}" for note in notes_of(one)))
    run = ["diptych", "study", "run", name]
    next_step([*run, "--quick"], *([run] if one.without_data else []))


def run(name: Name, data: StudyData, out: OutOption, options: RunOptions, discretion: Discretion) -> None:
    """Train and measure a study's rows; finished ones are used as they are, interrupted ones resume.

    Examples:
        diptych study run metric-learning.table-1 --quick
        diptych study run metric-learning.table-1 --data flickr8k --seeds 0,1,2
        diptych study run ltd.table-1 --data flickr30k --targets all-MiniLM-L6-v2
        diptych study run intent.table-6.4 --data log
        diptych study run reproducibility.table-2.1 --data coco=coco -o table
    """
    folder = out.out or Path("studies") / name
    with stop_on_signal(), messages():
        results = run_chosen(STUDIES.get(name), folder, data, options)
    page = _report(results, folder, folder / "report.html", discretion)
    next_step(["diptych", "study", "verdict", folder], ["open", page])


def verdict(runs: Annotated[list[Path], _RUNS], out: OutOption, discretion: Discretion) -> None:
    """Compare what studies measured with what the papers print, cell by cell and claim by claim.

    The report is report.html in the first folder, or --out.

    Examples:
        diptych study verdict studies/metric-learning.table-1
    """
    found = collect(runs)
    if out.out is not None and len(found) > 1:
        names = ", ".join(results.study for results in found)
        raise UsageError(f"one report of {len(found)} studies ({names})", "leave out --out")
    folders = {StudyFolder.open(one / STUDY).study: one for one in runs[::-1] if (one / STUDY).is_file()}
    for results in found:
        folder = folders.get(results.study)
        # A run can belong to several studies: its reports are told apart by their names.
        usual = runs[0] / f"{results.study}.html" if folder is None else folder / "report.html"
        next_step(["open", _report(results, folder, out.out or usual, discretion)])


def _report(results: Results, folder: Path | None, page: Path, discretion: Discretion) -> Path:
    """Print a study's comparison, and write its page, with the command that its folder was begun with."""
    command = "" if folder is None else StudyFolder.open(folder / STUDY).command
    with showing(discretion):
        comparison = compare(STUDIES.get(results.study), results)
        say(*comparison_shown(comparison))
        return study_page(comparison, command).save(page)
