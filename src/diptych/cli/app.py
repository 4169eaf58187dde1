"""The command ``diptych``: its verbs, and what happens to errors."""

from __future__ import annotations

import sys

import typer

from diptych.cli import console
from diptych.cli.adapt import adapt
from diptych.cli.audit import audit
from diptych.cli.categories import categories
from diptych.cli.cocos import cocos
from diptych.cli.compare import compare
from diptych.cli.data import data
from diptych.cli.demo import demo
from diptych.cli.embed import embed
from diptych.cli.evaluate import evaluate
from diptych.cli.explain import explain
from diptych.cli.granularity import granularity
from diptych.cli.index import index
from diptych.cli.info import info
from diptych.cli.intent import intent
from diptych.cli.perturb import perturb
from diptych.cli.protocol import protocol
from diptych.cli.report import report
from diptych.cli.resources import resources
from diptych.cli.scenes import scenes
from diptych.cli.search import search
from diptych.cli.shortcuts import shortcuts
from diptych.cli.sparsify import sparsify
from diptych.cli.stress import stress
from diptych.cli.study import study
from diptych.cli.terms import terms
from diptych.cli.train import train
from diptych.core.errors import DiptychError
from diptych.core.memory import keep_freed_memory

__all__ = ["app", "main"]

app = typer.Typer(
    name="diptych",
    help="Image–text retrieval: train dual encoders, measure what they learned, index and search.",
    epilog="Begin with: diptych demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

for verb in (
    demo,
    scenes,
    shortcuts,
    train,
    adapt,
    embed,
    evaluate,
    protocol,
    compare,
    cocos,
    audit,
    granularity,
    perturb,
    stress,
    sparsify,
    index,
    search,
    terms,
    explain,
    report,
    resources,
    info,
):
    app.command(verb.__name__)(verb)
app.add_typer(study)
app.add_typer(data)
app.add_typer(intent)
app.add_typer(categories)


def main() -> None:
    """Run the command line; errors of ours are one line and a hint, exit code 1 or 2."""
    keep_freed_memory()
    try:
        app(prog_name="diptych")
    except DiptychError as error:
        sys.exit(console.fail(error))
