"""``diptych intent``: purchase intent, from raw shop logs to an explained probability."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.intent.report import HideRates, LeastCount, discretion_of
from diptych.cli.sources import OutFolder
from diptych.core.errors import DataError

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
    hide_rates: HideRates = False,
    least_count: LeastCount = 5,
) -> None:
    """Make sessions of a log and describe them: lengths, times, channels, devices, switches, queries.

    Everything is by class: sessions with a purchase, and others. The sessions are kept with the log, for whatever
    comes next. What the CSV files hold is never hidden.

    Examples:

      [bold]diptych intent describe log --out description[/bold]

      [bold]diptych intent describe log --by visitor --memory-limit 2GB --out description[/bold]

      [bold]diptych intent describe log --statistic channels --statistic devices --out channels-and-devices[/bold]
    """
    from diptych.commerce.purchase_intent.engine import open_engine
    from diptych.commerce.purchase_intent.sessions import SessionOptions, sessionise
    from diptych.commerce.purchase_intent.shown import Discretion
    from diptych.commerce.purchase_intent.statistics import DescribeOptions, choose_statistics
    from diptych.commerce.purchase_intent.statistics import describe as describe_sessions
    from diptych.commerce.purchase_intent.statistics.describe import Description, check_options
    from diptych.commerce.purchase_intent.statistics.shown import description_tables
    from diptych.core.errors import UsageError
    from diptych.core.files import check_replaceable
    from diptych.data.logs import Log
    from diptych.report.intent import description_page

    discretion = discretion_of(hide_rates, least_count)
    opened, options = Log.open(log), DescribeOptions(ddof=ddof, journey=journey, confidence=confidence)
    names = [one.name for one in choose_statistics(statistic or None)]
    check_options(options)
    check_replaceable(out, Description.marker())
    if opened.folder.resolve() in out.resolve().parents:
        raise UsageError(
            f"{out} lies in {log}, which the next import replaces with all that is in it",
            "write it elsewhere",
        )
    with progress(), open_engine(engine, memory_limit=memory_limit) as runs:
        wanted = SessionOptions(gap_minutes=gap, by=by)  # type: ignore[arg-type]
        tables = sessionise(opened, wanted, engine=runs)
        description = describe_sessions(tables, engine=runs, options=options, names=names)
    with discretion:
        page = description_page(description, opened)
        description.save(out, also=lambda inside: page.save(inside / _PAGE))
        show(*description_tables(description))
        notes = Discretion.current().notes(description.about["notes"])
    for note in (*notes, description.line()):
        say(note)
    say(f"written to {out}; sessions are kept in {tables.folder}; the page is {out / _PAGE}")
    features = out.with_name("features")
    next_step(["diptych", "intent", "features", str(log), "--out", str(features)])


def audit(
    features: Annotated[
        Path, typer.Argument(metavar="FEATURES", help="A folder of features.", show_default=False)
    ],
    log: Annotated[
        Path | None,
        typer.Option(help="The log that they were made of; the shift test needs it.", show_default=False),
    ] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            help="shift, known-columns, single-column, permuted-labels, drift; all by default. Repeatable.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="The classifier that looks for leaks; diptych info lists them.")
    ] = "hist-gradient-boosting",
    feature_set: Annotated[str, typer.Option("--set", help="Features: baseline or extended.")] = "extended",
    step: Annotated[
        list[int] | None,
        typer.Option(
            help="Where models are fitted; 0, 1, 5 and 10 by default. Repeatable.", show_default=False
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=2, help="How many times labels are permuted.")] = 6,
    most: Annotated[int, typer.Option(min=100, help="Sessions in a part, at most; drawn.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Of everything drawn.")] = 0,
    every: Annotated[bool, typer.Option("--all", help="Show every finding, not the foremost.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when there is an alarm.")] = False,
    out: OutFolder = None,
) -> None:
    """Look for leaks: features that know the future, labels that are found without being told, columns too good.

    The audit is written into the features' folder when no other is named; a scorer trained on the features carries
    it in its model card.

    Examples:

      [bold]diptych intent audit features --log log[/bold]

      [bold]diptych intent audit features --check single-column --strict --out audit[/bold]
    """
    from diptych.commerce.purchase_intent.auditing import AuditOptions
    from diptych.commerce.purchase_intent.auditing import audit as run
    from diptych.commerce.purchase_intent.features.table import open_features
    from diptych.data.logs.log import Log

    table = open_features(features)
    options = AuditOptions(
        feature_set=feature_set,
        steps=tuple(step) if step else None,
        model=model,
        repeats=repeats,
        most=most,
        seed=seed,
    )
    target = features / "audit" if out is None else out
    with progress():
        found = run(table, None if log is None else Log.open(log), options=options, checks=check or None)
        found.save(target)
    show(found.table(every))
    say(found.line())
    say(f"all findings in {target}")
    if found.alarms and strict:
        raise DataError(f"{len(found.alarms)} alarms", "see what the columns are computed from, and when")
    next_step(["diptych", "intent", "train", str(features), "--out", "scorer"])
