"""``diptych intent describe``: sessions of a log, and what sets those with a purchase apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import TargetOption
from diptych.commerce.purchase_intent.options import DescribeOptions, EngineOptions, SessionOptions
from diptych.commerce.purchase_intent.shown import Discretion, showing


class DescriptionOptions(TargetOption):
    """What is described."""

    statistic: list[str] = Field(
        [],
        description="A statistic; all by default. Repeatable.",
        json_schema_extra={"names": "diptych.commerce.purchase_intent.statistics:STATISTICS"},
    )


def describe(
    log: Annotated[
        Path,
        typer.Argument(metavar="LOG", help="A log that diptych intent ingest wrote.", show_default=False),
    ],
    wanted: DescriptionOptions,
    sessions: SessionOptions,
    options: DescribeOptions,
    engine: EngineOptions,
    discretion: Discretion,
) -> None:
    """Make sessions of a log and describe them: lengths, times, channels, devices, switches, queries.

    Everything is by class: sessions with a purchase, and others. The sessions are kept with the log, for whatever
    comes next. What the CSV files hold is never hidden.

    Examples:
        diptych intent describe log --out description
        diptych intent describe log --by visitor --memory-limit 2GB --out visitors
        diptych intent describe log --statistic channels --out channels
    """
    from diptych.commerce.purchase_intent.sessions import sessionise
    from diptych.commerce.purchase_intent.statistics import Description, choose_statistics
    from diptych.commerce.purchase_intent.statistics import describe as describe_sessions
    from diptych.commerce.purchase_intent.statistics.shown import description_tables
    from diptych.core.files import check_replaceable
    from diptych.data.logs import Log
    from diptych.report.intent import PAGE, description_page

    opened, out = Log.open(log), wanted.out
    names = [one.name for one in choose_statistics(wanted.statistic or None)]
    check_replaceable(out, Description.marker())
    opened.check_outside(out)
    with progress(), engine.open() as runs:
        tables = sessionise(opened, sessions, engine=runs)
        description = describe_sessions(tables, engine=runs, options=options, names=names)
    with showing(discretion):
        page = description_page(description, opened)
        description.save(out, also=lambda inside: page.save(inside / PAGE))
        show(*description_tables(description))
    for line in (*discretion.notes(description.about["notes"]), description.line()):
        say(line)
    say(f"written to {out}; sessions are kept in {tables.folder}; the page is {out / PAGE}")
    next_step(["diptych", "intent", "features", log, "--out", out.with_name("features")])
