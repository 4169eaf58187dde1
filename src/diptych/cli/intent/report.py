"""``diptych intent report``: a page of a description, an evaluation or a scorer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say
from diptych.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from diptych.report.intent_content import Discretion

_PAGE = "report.html"
_MAKERS = {
    "description.json": "diptych intent describe LOG --out DESCRIPTION",
    "intent_evaluation.json": "diptych intent evaluate FEATURES --out EVALUATION",
    "scorer.json": "diptych intent train FEATURES --out SCORER",
}


def report(
    folder: Annotated[
        Path,
        typer.Argument(help="A description, an evaluation or a scorer: the folder.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help=f"The page; {_PAGE} in the folder when not given.", show_default=False
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="Of a description: the log, to say what its import dropped.", show_default=False),
    ] = None,
    hide_rates: Annotated[
        bool,
        typer.Option(
            "--hide-rates", help="Of a description: standardised rates and shares alone, as in the thesis."
        ),
    ] = False,
    least_count: Annotated[
        int,
        typer.Option(
            min=1, help="Of a description: smaller counts, and what follows from them, are not shown."
        ),
    ] = 5,
) -> None:
    """Write a page with figures, tables and the protocol: one HTML file that needs no other.

    Of a description: what sets sessions with a purchase apart. Of an evaluation: measures by step, gains,
    probabilities, importance. Of a scorer: how well it does on sessions it has not seen, and an example's reasons.

    Examples:

      [bold]diptych intent report description[/bold]

      [bold]diptych intent report description --log log[/bold]

      [bold]diptych intent report description --hide-rates --out for-others.html[/bold]

      [bold]diptych intent report evaluation[/bold]
    """
    from diptych.report.intent_content import Discretion

    discretion = Discretion(least_count, hide_rates)
    target = out or folder / _PAGE
    with progress():
        page = _write(folder, target, discretion, log)
    say(f"report in {page} ({page.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(["open", page])


def _write(folder: Path, target: Path, discretion: Discretion, log: Path | None) -> Path:
    """The page of whatever the folder is."""
    found = [marker for marker in _MAKERS if (folder / marker).is_file()]
    if not found:
        raise DataError(
            f"{folder} is no description, evaluation or scorer ({', '.join(_MAKERS)})",
            f"make one, e.g. {_MAKERS['description.json']}",
        )
    if found[0] == "description.json":
        from diptych.commerce.purchase_intent.statistics import Description
        from diptych.data.logs import Log
        from diptych.report.intent_description import write_description_page

        opened = None if log is None else Log.open(log)
        return write_description_page(target, Description.open(folder), discretion, opened)
    if discretion != type(discretion)() or log is not None:
        raise UsageError(
            f"--log, --hide-rates and --least-count are of descriptions, {folder} has {found[0]}",
            "leave them out: the page is about models and their rates",
        )
    if found[0] == "intent_evaluation.json":
        from diptych.commerce.purchase_intent.evaluation import Evaluation
        from diptych.report.intent_evaluation import write_evaluation_page

        return write_evaluation_page(target, Evaluation.open(folder))
    from diptych.report.intent_scorer import write_scorer_page

    return write_scorer_page(target, folder)
