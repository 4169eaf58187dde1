"""``diptych intent describe``: what sets a log's purchase sessions apart."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.cli.intent.description_tables import show_description
from diptych.cli.progress import progress

__all__ = ["describe"]

_PAGE = "report.html"


def describe(
    log: Annotated[Path, typer.Argument(help="A log that diptych intent ingest wrote.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the description.", show_default=False)
    ],
    engine: Annotated[str, typer.Option(help="What computes it: duckdb, or spark.")] = "duckdb",
    gap: Annotated[float, typer.Option(help="Idle minutes after which a session has ended.")] = 30.0,
    by: Annotated[
        str, typer.Option(help="Whose events make a session: client, visitor, or given by the log.")
    ] = "client",
    ddof: Annotated[
        int,
        typer.Option(
            help="Of standardised conversion rates: 0 as in the thesis's worked example and Table 6.4; 1 as its "
            "Table 6.2."
        ),
    ] = 0,
    journey: Annotated[
        str,
        typer.Option(
            help="Transitions between devices that count: pair, from the session before a purchase session to it; or "
            "journey, all since the visitor's purchase session before."
        ),
    ] = "pair",
    confidence: Annotated[float, typer.Option(help="Of intervals.")] = 0.95,
    memory_limit: Annotated[
        str | None, typer.Option(help="Of the engine, e.g. 1GB; it spills to disk.", show_default=False)
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(help="A statistic; all by default. Repeatable.", show_default=False),
    ] = None,
) -> None:
    """Make sessions of a log and describe them: lengths, times, channels, devices, switches, queries.

    Everything is by class: sessions with a purchase, and others. The sessions are kept with the log, for whatever
    comes next.

    Examples:

      [bold]diptych intent describe log --out description[/bold]

      [bold]diptych intent describe log --by visitor --memory-limit 2GB --out description[/bold]

      [bold]diptych intent describe log --statistic channels --statistic devices --out channels-and-devices[/bold]
    """
    from diptych.commerce.purchase_intent.engine import open_engine
    from diptych.commerce.purchase_intent.sessions import SessionOptions, sessionise
    from diptych.commerce.purchase_intent.statistics import DescribeOptions, choose_statistics
    from diptych.commerce.purchase_intent.statistics import describe as describe_sessions
    from diptych.commerce.purchase_intent.statistics.choose import check_options
    from diptych.commerce.purchase_intent.statistics.description import MARKER
    from diptych.core.errors import UsageError
    from diptych.core.files import check_replaceable
    from diptych.data.logs import Log
    from diptych.report.intent_description import write_description_page

    opened, options = Log.open(log), DescribeOptions(ddof=ddof, journey=journey, confidence=confidence)
    names = [one.name for one in choose_statistics(statistic or None)]
    check_options(options)
    check_replaceable(out, MARKER)
    if opened.folder.resolve() in out.resolve().parents:
        raise UsageError(
            f"{out} lies in {log}, which the next import replaces with all that is in it",
            "write it elsewhere",
        )
    with progress(), open_engine(engine, memory_limit=memory_limit) as runs:
        wanted = SessionOptions(gap_minutes=gap, by=by)  # type: ignore[arg-type]
        tables = sessionise(opened, wanted, engine=runs)
        description = describe_sessions(tables, engine=runs, options=options, names=names)
    description.save(out)
    page = write_description_page(out / _PAGE, description, log=opened)
    show_description(description)
    say(f"written to {out}; sessions are kept in {tables.folder}; the page is {page}")
    features = out.with_name("features")
    next_step(shlex.join(["diptych", "intent", "features", str(log), "--out", str(features)]))
