"""``diptych intent report``: a page of a description, an evaluation or a scorer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say
from diptych.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from diptych.report.document import Page

_PAGE = "report.html"
_MAKERS = {
    "description.json": "diptych intent describe LOG --out DESCRIPTION",
    "intent_evaluation.json": "diptych intent evaluate FEATURES --out EVALUATION",
    "scorer.json": "diptych intent train FEATURES --out SCORER",
}

HideRates = Annotated[
    bool,
    typer.Option("--hide-rates", help="Show standardised rates and shares alone, as in the thesis."),
]
LeastCount = Annotated[
    int, typer.Option(min=1, help="Smaller counts, and what follows from them, are not shown.")
]


def discretion_of(hide_rates: bool, least_count: int) -> AbstractContextManager[None]:
    """Return a block inside which every table and chart shows what these options let it."""
    from diptych.commerce.purchase_intent.shown import Discretion, showing

    return showing(Discretion(least_count, hide_rates))


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
    hide_rates: HideRates = False,
    least_count: LeastCount = 5,
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
    target = out or folder / _PAGE
    with progress(), discretion_of(hide_rates, least_count):
        page = _page(folder, log, hide_rates or least_count != 5).save(target)
    say(f"report in {page} ({page.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(["open", page])


def _page(folder: Path, log: Path | None, discreet: bool) -> Page:
    """Return the page of whatever the folder is."""
    from diptych.report import intent

    found = [marker for marker in _MAKERS if (folder / marker).is_file()]
    if not found:
        raise DataError(
            f"{folder} is no description, evaluation or scorer ({', '.join(_MAKERS)})",
            f"make one, e.g. {_MAKERS['description.json']}",
        )
    if found[0] == "description.json":
        from diptych.commerce.purchase_intent.statistics import Description
        from diptych.data.logs import Log

        return intent.description_page(Description.open(folder), None if log is None else Log.open(log))
    if discreet or log is not None:
        raise UsageError(
            f"--log, --hide-rates and --least-count are of descriptions, {folder} has {found[0]}",
            "leave them out: the page is about models and their rates",
        )
    if found[0] == "intent_evaluation.json":
        from diptych.commerce.purchase_intent.evaluation import Evaluation

        return intent.evaluation_page(Evaluation.open(folder))
    from diptych.commerce.purchase_intent.scoring import Scorer

    return intent.scorer_page(Scorer.open(folder))
