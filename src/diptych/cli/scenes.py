"""``diptych scenes``: generate the embedded dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.cli.options import OutFolder
from diptych.cli.progress import progress

__all__ = ["scenes"]


def scenes(
    out: OutFolder = None,
    train: Annotated[int, typer.Option(help="Pictures to train on.")] = 4000,
    val: Annotated[int, typer.Option(help="Pictures to validate on.")] = 300,
    test: Annotated[int, typer.Option(help="Pictures to test on.")] = 500,
    captions: Annotated[int, typer.Option("--captions", "-k", help="Captions per picture.")] = 5,
    size: Annotated[int, typer.Option(help="Side of a picture, in pixels.")] = 64,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; as many as there are processors.", show_default=False)
    ] = None,
) -> None:
    """Generate pictures of coloured objects with captions whose every fact is known.

    Without --out they go to the cache and are made once.

    Example: [bold]diptych scenes --train 3000 --out scenes[/bold]
    """
    from diptych.data.scenes import make_scenes, read_scenes

    with progress():
        folder = make_scenes(
            out, n_train=train, n_val=val, n_test=test, seed=seed, k=captions, size=size, workers=workers
        )
    say(read_scenes(folder).describe())
    say(f"in {folder}")
    next_step(f"diptych train scenes --data {folder}")
