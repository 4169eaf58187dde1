"""``diptych demo``: the whole way once, on the embedded scenes, in two to three minutes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.cli.evaluate import evaluate
from diptych.cli.index import index
from diptych.cli.report import report
from diptych.cli.search import search
from diptych.cli.train import train

__all__ = ["demo"]


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the run goes; a finished one is shown again.")
    ] = Path("demo"),
    quick: Annotated[bool, typer.Option(help="Half the training, and a lower score.")] = False,
) -> None:
    """Generate scenes, train, evaluate, index, search and report: the main job in one command.

    Example: [bold]diptych demo[/bold]
    """
    begun = time.monotonic()
    say("1/5  training a dual encoder on generated scenes")
    if (out / "run.json").is_file():
        train(resume=out)
    else:
        train("scenes", out=out, set_=["stages.0.epochs=1"] if quick else None)
    say("\n2/5  evaluating it on scenes it has not seen")
    evaluate(str(out))
    say("\n3/5  indexing their pictures")
    index(str(out))
    say("\n4/5  searching")
    search(out / "index-images-exact", "a green cross", k=5, sheet=out / "search.png")
    say("\n5/5  writing the report")
    report(out)
    say(f"\nthe demo took {time.monotonic() - begun:.0f} s")
    next_step(f'open {out / "report.html"}, or: diptych search {out / "index-images-exact"} "a red triangle"')
