"""``diptych report``: one self-contained page of a run, or of what stressed one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.categories.report import is_of_categories, write_categories_report
from diptych.cli.console import next_step, say
from diptych.cli.sources import DataSpec, OutOption, SplitOption, encoded_of
from diptych.core.errors import UsageError
from diptych.core.files import safe_name


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
    from diptych.encoders.embeddings import Origin
    from diptych.evaluation import Result
    from diptych.evaluation.evaluate_encoder import evaluate_encoded
    from diptych.evaluation.shortcuts import WITH
    from diptych.evaluation.stress import StressResult
    from diptych.report.run import run_page
    from diptych.report.stress import stress_page
    from diptych.training.run import Run

    target, stressed = options.out or run / "report.html", (run / "stress.json").is_file()
    finished = stressed or is_of_categories(run)
    if finished and options.split is not None:
        raise UsageError(f"{run} is of one split already", "leave --split out")
    opened = None if finished else Run.open(run)
    if stressed:
        found, origin = StressResult.open(run), Origin.read(run)
        shown = None if origin is None else replace(origin, split=None).collection()
        target = stress_page(found, shown).save(target)
    elif opened is None:
        target = write_categories_report(run, target)
    else:
        encoded, origin, _ = encoded_of(str(run), DataSpec(), options.split)
        # Measured anew: it takes a moment, and cannot be of other weights or other measures.
        result, collection = evaluate_encoded(encoded), origin.collection()
        beside = run / "evaluation" / f"{safe_name(f'{collection.name}-{origin.split}')}-{WITH}"
        both = Result.open(beside) if (beside / "evaluation.json").is_file() else None
        target = run_page(opened, result, encoded, collection, both).save(target)
    say(f"report in {target} ({target.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(["open", str(target)])
