"""``diptych intent features``: what is known of every session at every step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features import FeatureTable


def features(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="A log that diptych intent ingest wrote; or a CSV of whole sessions, such as UCI's shoppers.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write.", show_default=False)],
    compat: Annotated[
        str,
        typer.Option(
            help="none, or published: also sessions whose purchase came before the step, and everybody who logs in at "
            "any page identified from the beginning, as in the thesis."
        ),
    ] = "none",
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="A feature besides those of the extended set: hour-cyclic, previous-device, previous-device-rate or "
            "history-days. Repeatable.",
            show_default=False,
        ),
    ] = None,
    page_types: Annotated[
        int, typer.Option(min=1, help="Page types told apart, the most frequent; all others are one.")
    ] = 200,
    gap: Annotated[float, typer.Option(help="Idle minutes after which a session has ended.")] = 30.0,
    by: Annotated[
        str, typer.Option(help="Whose events make a session: client, visitor, or given by the log.")
    ] = "client",
    engine: Annotated[str, typer.Option(help="What computes it: duckdb, or spark.")] = "duckdb",
    memory_limit: Annotated[
        str | None, typer.Option(help="Of the engine, e.g. 1GB; it spills to disk.", show_default=False)
    ] = None,
    export: Annotated[
        bool, typer.Option("--export", help="Also write steps.parquet: one row per session and step.")
    ] = False,
    keep_leaking: Annotated[
        bool,
        typer.Option(
            "--keep-leaking", help="Of whole sessions: keep columns that are computed from the outcome."
        ),
    ] = False,
) -> None:
    """Make the features of thesis Table 6.7: what is known of a session before any page and after each of ten.

    Only sessions count that have pages for the last step and two more; at each step only those whose purchase, if
    any, is at least two pages away.

    Examples:

      [bold]diptych intent features log --out features[/bold]

      [bold]diptych intent features log --compat published --out features-published[/bold]

      [bold]diptych intent features online_shoppers_intention.csv --out features-uci[/bold]
    """
    whole = source.is_file()
    if whole and (compat != "none" or feature or export):
        raise UsageError(
            f"{source} is a table of whole sessions, without steps",
            "leave --compat, --feature and --export out",
        )
    if keep_leaking and not whole:
        raise UsageError("--keep-leaking is for tables of whole sessions", "leave it out")
    with progress():
        if whole:
            from diptych.commerce.purchase_intent.features.whole import make_whole_features

            table = make_whole_features(source, folder=out, keep_leaking=keep_leaking)
        else:
            table = _of_log(
                source, out, compat, feature or [], page_types, gap, by, engine, memory_limit, export
            )
    say(table.describe())
    if whole:
        _show_whole(table)
    else:
        _show_steps(table)
    say(f"written to {out}")
    if not table.labels.any():
        say("no session ends in a purchase: there is nothing to be learned from them")
        next_step("import more of the log: diptych intent ingest --help")
        return
    evaluation = out.with_name(f"{out.name}-evaluation")
    next_step(["diptych", "intent", "evaluate", str(out), "--out", str(evaluation)])


def _of_log(
    source: Path,
    out: Path,
    compat: str,
    also: list[str],
    types: int,
    gap: float,
    by: str,
    engine: str,
    memory_limit: str | None,
    export: bool,
) -> FeatureTable:
    from diptych.commerce.purchase_intent.engine import open_engine
    from diptych.commerce.purchase_intent.features import FeatureOptions, make_features
    from diptych.commerce.purchase_intent.features.export import STEPS_FILE, export_steps
    from diptych.commerce.purchase_intent.sessions import sessionise
    from diptych.commerce.purchase_intent.sessions.tables import SessionOptions
    from diptych.data.logs import Log

    options = FeatureOptions(compat, tuple(also), types)
    log = Log.open(source)
    with open_engine(engine, memory_limit=memory_limit) as runs:
        tables = sessionise(log, SessionOptions(gap_minutes=gap, by=by), engine=runs)  # type: ignore[arg-type]
        table = make_features(tables, options=options, engine=runs, folder=out)
    if export:
        export_steps(table, out / STEPS_FILE)
    return table


def _show_steps(table: FeatureTable) -> None:
    about = table.about
    counts, pages = about["counts"], about["session_options"]["pages"]
    say(
        f"of {counts['sessions']:,} sessions {counts['too_short']:,} are too short (fewer than {pages + 2} pages); "
        f"{counts['population']:,} are left"
    )
    show(table.populations())


def _show_whole(table: FeatureTable) -> None:
    for left in table.about["left_out"]:
        say(f"the column {left['column']} is left out: {left['why']} (--keep-leaking keeps it)")
    for name in table.about["kept_leaking"]:
        say(f"warning: {name} is kept, which is computed from the outcome; no number with it says anything")
    for note in table.about["notes"]:
        say(f"note: {note}")
