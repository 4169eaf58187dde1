"""``diptych report``: one self-contained page of a run, or of what stressed one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.categories.report import is_of_categories, write_categories_report
from diptych.cli.console import next_step, progress, say
from diptych.cli.sources import DataSpec, OutOption, SplitOption, encoded_of
from diptych.core.errors import UsageError
from diptych.core.files import safe_name

if TYPE_CHECKING:
    from diptych.encoders.embeddings import Origin
    from diptych.evaluation import Result


class ReportOptions(SplitOption, OutOption):
    """Of which part, and where."""


def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run that was trained, or a folder of diptych analyse stress or diptych categories evaluate.",
            show_default=False,
        ),
    ],
    options: ReportOptions,
) -> None:
    """Write a run's report: curves, the test table, best and worst retrievals with pictures, the recipe.

    Of a folder of diptych analyse stress: what each perturbation costs, heat maps, the worst hit. Of an evaluation of
    categories: its tables, levels, errors and examples again.

    Examples:
        diptych report runs/flickr8k
        diptych report runs/flickr8k/stress/flickr8k-test
    """
    split, out = options.split, options.out
    stressed = (run / "stress.json").is_file()
    if stressed or is_of_categories(run):
        if split is not None:
            raise UsageError(f"{run} is of one split already", "leave --split out")
        target = out or run / "report.html"
        if stressed:
            _say(_stress_page(run, target))
            return
        with progress():
            target = write_categories_report(run, target)
        _say(target)
        return
    from diptych.evaluation.evaluate_encoder import evaluate_encoded
    from diptych.report.run import run_page
    from diptych.training.run import Run

    opened = Run.open(run)
    with progress():
        encoded, origin, _ = encoded_of(str(run), DataSpec(), split)
        # Measured anew: it takes a moment, and cannot be of other weights or other measures.
        result = evaluate_encoded(encoded)
        page = run_page(opened, result, encoded, origin.collection(), _with_shortcuts(run, origin))
        target = page.save(out or run / "report.html")
    _say(target)


def _say(target: Path) -> None:
    say(f"report in {target} ({target.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(["open", str(target)])


def _stress_page(folder: Path, target: Path) -> Path:
    """The page of a stress run, with pictures where it says what data it was made of."""
    from diptych.encoders.embeddings import Origin
    from diptych.evaluation.stress import StressResult
    from diptych.report.stress import stress_page

    found, origin = StressResult.open(folder), Origin.read(folder)
    with progress():
        shown = None if origin is None else replace(origin, split=None).collection()
        return stress_page(found, shown).save(target)


def _with_shortcuts(run: Path, origin: Origin) -> Result | None:
    """What ``diptych evaluate`` measured with the shortcuts of training, where it did."""
    from diptych.evaluation import Result
    from diptych.evaluation.shortcuts import WITH

    folder = run / "evaluation" / f"{safe_name(f'{origin.collection().name}-{origin.split}')}-{WITH}"
    return Result.open(folder) if (folder / "evaluation.json").is_file() else None
