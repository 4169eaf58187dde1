"""``diptych intent``: purchase intent, from raw shop logs to an explained probability."""

from __future__ import annotations

import typer

from diptych.cli.intent.audit import audit
from diptych.cli.intent.describe import describe
from diptych.cli.intent.evaluate import evaluate
from diptych.cli.intent.features import features
from diptych.cli.intent.ingest import ingest
from diptych.cli.intent.report import report
from diptych.cli.intent.score import score
from diptych.cli.intent.train import train

__all__ = ["intent"]

intent = typer.Typer(
    name="intent",
    help="Purchase intent: from raw shop logs to an explained probability.",
    epilog="Begin with: diptych scenes --shop-log --out shop, then diptych intent ingest shop --out log",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

intent.command("ingest")(ingest)
intent.command("describe")(describe)
intent.command("evaluate")(evaluate)
intent.command("features")(features)
intent.command("audit")(audit)
intent.command("report")(report)
intent.command("score")(score)
intent.command("train")(train)
