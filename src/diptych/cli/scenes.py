"""``diptych scenes``: generate the embedded dataset, or a shop's log."""

from __future__ import annotations

from typing import Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.cli.options import OutFolder
from diptych.cli.progress import progress
from diptych.cli.shop_log import LOG_OPTIONS, shop_log_scenes
from diptych.core.errors import UsageError

__all__ = ["scenes"]

_PICTURE_OPTIONS = ("train", "val", "test", "captions", "size", "objects", "workers")


def scenes(
    context: typer.Context,
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
    shop_log: Annotated[
        bool, typer.Option("--shop-log", help="Not pictures: the log of a shop, for diptych intent.")
    ] = False,
    visitors: Annotated[int, typer.Option(help="Of the log; each has about 15 events in 28 days.")] = 2000,
    days: Annotated[int, typer.Option(help="Of the log, from 1 October 2019 on.")] = 28,
    dirt: Annotated[
        float, typer.Option(help="Share of the log that is spoilt in each of several ways, e.g. 0.01.")
    ] = 0.0,
    file_format: Annotated[str, typer.Option("--format", help="Of the log: csv or parquet.")] = "csv",
) -> None:
    """Generate pictures of coloured objects with captions whose every fact is known, or a log of a shop.

    Without --out they go to the cache and are made once. One object per picture makes an object-centric
    collection. Everything that a shop log has to tell is known: what is planted in it and what every statistic
    of it is stands in its truth.json.

    Examples:

      [bold]diptych scenes --train 3000 --out scenes[/bold]

      [bold]diptych scenes --objects 1 --out objects[/bold]

      [bold]diptych scenes --shop-log --visitors 5000 --out shop[/bold]
    """
    _check_kind(context, shop_log)
    if shop_log:
        shop_log_scenes(out, visitors=visitors, days=days, seed=seed, dirt=dirt, file_format=file_format)
        return
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


def _check_kind(context: typer.Context, shop_log: bool) -> None:
    """See that nothing is said of the kind of scenes that is not made.

    Raises:
        UsageError: an option is of the other kind.
    """
    fix = " or --shop-log" if shop_log else ", or give --shop-log too"
    strange = _PICTURE_OPTIONS if shop_log else LOG_OPTIONS
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in strange and source is not None and source.name == "COMMANDLINE":
            kind, other = ("a log", "pictures") if shop_log else ("pictures", "a log")
            raise UsageError(
                f"{parameter.opts[0]} is of {other}, and {kind} would be made",
                f"leave out {parameter.opts[0]}{fix}",
            )


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
