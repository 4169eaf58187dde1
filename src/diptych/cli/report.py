"""``diptych report``: one self-contained page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.cli.options import OutFolder, Split
from diptych.cli.progress import progress
from diptych.cli.sources import DataChoice, Origin, encoded_of

if TYPE_CHECKING:
    from diptych.evaluation import Result

__all__ = ["report"]


def report(
    run: Annotated[Path, typer.Argument(help="A run that was trained.", show_default=False)],
    split: Split = None,
    out: OutFolder = None,
) -> None:
    """Write a run's report: curves, the test table, best and worst retrievals with pictures, the recipe.

    Example: [bold]diptych report runs/flickr8k[/bold]
    """
    from diptych.report import content_of_run, write_report
    from diptych.training.run import Run
    from diptych.training.testing import evaluate_encoded

    opened = Run.open(run)
    with progress():
        encoded, origin, _ = encoded_of(str(run), DataChoice(), split)
        # Measured anew: it takes a moment, and cannot be of other weights or other measures.
        result = evaluate_encoded(encoded)
        content = content_of_run(opened, result, encoded, origin.collection(), _with_shortcuts(run, origin))
        target = write_report(content, out or run / "report.html")
    say(f"report in {target} ({target.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(f"open {target}")


def _with_shortcuts(run: Path, origin: Origin) -> Result | None:
    """What ``diptych evaluate`` measured with the shortcuts of training, where it did."""
    from diptych.evaluation import Result
    from diptych.training.shortcut_testing import WITH

    folder = run / "evaluation" / f"{origin.collection().name}-{origin.split}-{WITH}"
    return Result.open(folder) if (folder / "evaluation.json").is_file() else None
