"""``diptych intent features``: what is known of every session at every step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import TargetOption
from diptych.commerce.purchase_intent.options import EngineOptions, FeatureOptions, SessionOptions
from diptych.core.errors import UsageError


class TableOptions(TargetOption):
    """What is written."""

    export: bool = Field(False, description="Also write steps.parquet: one row per session and step.")
    keep_leaking: bool = Field(
        False, description="Of whole sessions: keep columns that are computed from the outcome."
    )


def features(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="A log that diptych intent ingest wrote; or a CSV of whole sessions, such as UCI's shoppers.",
            show_default=False,
        ),
    ],
    wanted: TableOptions,
    options: FeatureOptions,
    sessions: SessionOptions,
    engine: EngineOptions,
) -> None:
    """Make the features of thesis Table 6.7: what is known before any page and after each of ten.

    Only sessions count that have pages for the last step and two more; at each step only those whose purchase, if
    any, is at least two pages away.

    Examples:
        diptych intent features log --out features
        diptych intent features log --compat published --out features-published
        diptych intent features online_shoppers_intention.csv --out features-uci
    """
    out, whole = wanted.out, source.is_file()
    if whole and (options.compat != "none" or options.also or wanted.export):
        raise UsageError(
            f"{source} is a table of whole sessions, without steps",
            "leave --compat, --feature and --export out",
        )
    if wanted.keep_leaking and not whole:
        raise UsageError("--keep-leaking is for tables of whole sessions", "leave it out")
    with progress():
        if whole:
            from diptych.commerce.purchase_intent.features.whole import make_whole_features

            table = make_whole_features(source, folder=out, keep_leaking=wanted.keep_leaking)
        else:
            from diptych.commerce.purchase_intent.features import make_features
            from diptych.commerce.purchase_intent.features.export import STEPS_FILE, export_steps
            from diptych.commerce.purchase_intent.sessions import sessionise
            from diptych.data.logs import Log

            log = Log.open(source)
            with engine.open() as runs:
                tables = sessionise(log, sessions, engine=runs)
                table = make_features(tables, options=options, engine=runs, folder=out)
            if wanted.export:
                export_steps(table, out / STEPS_FILE)
    for line in table.lines():
        say(line)
    show(*table.tables())
    say(f"written to {out}")
    if not table.labels.any():
        say("no session ends in a purchase: there is nothing to be learned from them")
        next_step("import more of the log: diptych intent ingest --help")
        return
    evaluation = out.with_name(f"{out.name}-evaluation")
    next_step(["diptych", "intent", "evaluate", out, "--out", evaluation])
