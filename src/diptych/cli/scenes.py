"""``diptych scenes``: generate the embedded dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.cli.options import OutFolder
from diptych.cli.progress import progress
from diptych.core.errors import UsageError

__all__ = ["scenes"]


def scenes(
    out: OutFolder = None,
    train: Annotated[int, typer.Option(help="Pictures to train on.")] = 4000,
    val: Annotated[int, typer.Option(help="Pictures to validate on.")] = 300,
    test: Annotated[int, typer.Option(help="Pictures to test on.")] = 500,
    captions: Annotated[int, typer.Option("--captions", "-k", help="Captions per picture.")] = 5,
    size: Annotated[int, typer.Option(help="Side of a picture, in pixels.")] = 64,
    objects: Annotated[
        str | None,
        typer.Option(help="Objects per picture, e.g. 1 or 1-3; 2-4 when not given.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; as many as there are processors.", show_default=False)
    ] = None,
) -> None:
    """Generate pictures of coloured objects with captions whose every fact is known.

    Without --out they go to the cache and are made once. One object per picture makes an object-centric
    collection.

    Examples:

      [bold]diptych scenes --train 3000 --out scenes[/bold]

      [bold]diptych scenes --objects 1 --out objects[/bold]
    """
    from diptych.data.scenes import make_scenes, read_scenes

    with progress():
        folder = make_scenes(
            out,
            n_train=train,
            n_val=val,
            n_test=test,
            seed=seed,
            k=captions,
            size=size,
            workers=workers,
            **({} if objects is None else {"objects": _numbers(objects)}),
        )
    say(read_scenes(folder).describe())
    say(f"in {folder}")
    next_step(f"diptych train scenes --data {folder}")


def _numbers(given: str) -> list[int]:
    """``"1"`` or ``"1-3"`` as the least and the most.

    Raises:
        UsageError: something else.
    """
    first, dash, last = given.partition("-")
    try:
        return [int(first), int(last if dash else first)]
    except ValueError:
        raise UsageError(
            f"--objects {given!r} is no number of objects", "e.g. --objects 1, or --objects 1-3"
        ) from None
