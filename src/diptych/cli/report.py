"""``diptych report``: one self-contained page of a run, or of what stressed one."""

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, show
from diptych.cli.sources import encoded_of
from diptych.core.errors import UsageError
from diptych.data.source import DataSpec, OutOption, SplitOption

_RUN = "A run that was trained, or a folder of diptych analyse stress or diptych categories evaluate."


class ReportOptions(SplitOption, OutOption):
    """Of which part, and where."""


def report(
    run: Annotated[Path, typer.Argument(help=_RUN, show_default=False)], options: ReportOptions
) -> None:
    """Write a run's report: curves, the test table, best and worst retrievals with pictures, the recipe.

    Of a folder of diptych analyse stress: what each perturbation costs, heat maps, the worst hit. Of an evaluation of
    categories: its tables, levels, errors and examples again.

    Examples:
        diptych report runs/flickr8k
        diptych report runs/flickr8k/stress/flickr8k-test
    """
    from diptych.report import categories, stress

    found = stress.page_of(run) or categories.page_of(run)
    if found is not None and options.split is not None:
        raise UsageError(f"{run} is of one split already", "leave --split out")
    if found is None:
        from diptych.report.run import report_of
        from diptych.training.run import Run

        encoded, origin, _ = encoded_of(str(run), DataSpec(), options.split)
        found = report_of(Run.open(run), encoded, origin), []
    page, lines = found
    target = page.save(options.out or run / "report.html")
    show(*lines, f"report in {target} ({target.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(["open", str(target)])
