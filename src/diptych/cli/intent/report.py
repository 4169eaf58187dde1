"""``diptych intent report``: a page of a description, an evaluation or a scorer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say
from diptych.cli.sources import OutOption
from diptych.commerce.purchase_intent.shown import Discretion, showing


class ReportOptions(OutOption):
    """What a page is of."""

    log: Path | None = Field(
        None, description="Of a description: the log, to report what its import dropped."
    )


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="A description, an evaluation or a scorer.", show_default=False
        ),
    ],
    options: ReportOptions,
    discretion: Discretion,
) -> None:
    """Write a page with figures, tables and the protocol: one HTML file that needs no other.

    Of a description: what sets sessions with a purchase apart. Of an evaluation: measures by step, gains,
    probabilities, importance. Of a scorer: how well it does on sessions it has not seen, and an example's reasons.
    Without --out it is report.html in the folder.

    Examples:
        diptych intent report description --log log
        diptych intent report description --hide-rates --out for-others.html
        diptych intent report evaluation
    """
    from diptych.report.intent import PAGE, page_of

    with progress(), showing(discretion):
        page = page_of(folder, options.log).save(options.out or folder / PAGE)
    say(f"report in {page} ({page.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(["open", page])
