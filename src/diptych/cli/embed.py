"""``diptych embed``: pictures and captions to rows on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from diptych.cli.console import next_step, progress, say, stop_on_signal
from diptych.cli.sources import (
    Captions,
    Data,
    DataChoice,
    Images,
    Model,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Split,
    Work,
    encoded_of,
)


def embed(
    model: Model,
    data: Data = None,
    split: Split = None,
    captions: Captions = "all",
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
    processes: Annotated[
        int, typer.Option(min=1, help="Processes that share the work; on graphics cards one per card.")
    ] = 1,
    accelerator: Annotated[
        str, typer.Option(help="cpu, cuda, mps or auto; several processes: no mps.")
    ] = "auto",
    nodes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Machines with one shared --out; each gives this command, by torchrun or srun.",
        ),
    ] = 1,
) -> None:
    """Embed a dataset's pictures and captions once, for everything that comes after.

    Ctrl-C stops after the current block, and the same command goes on; so it does after kill -9.

    Examples:

      [bold]diptych embed runs/flickr8k[/bold]

      [bold]diptych embed hf:openai/clip-vit-base-patch32 --data flickr30k --split test --out embedded[/bold]

      [bold]diptych embed hf:openai/clip-vit-large-patch14 --data shop.csv --out embedded --processes 8[/bold]

      [bold]torchrun --nnodes 2 --nproc-per-node 8 -m diptych embed … --nodes 2 --processes 8[/bold]
    """
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images, captions)
    fabric = None
    if nodes > 1:
        from diptych.encoders.distributed import launched_fabric

        fabric = launched_fabric(nodes, processes, accelerator)
    with progress(), stop_on_signal():
        work = Work(1 if fabric else processes, accelerator, fabric)
        encoded, _, folder = encoded_of(model, choice, split, out, work=work)
    say(
        f"{len(encoded.images):,} pictures and {len(encoded.texts):,} captions, "
        f"{encoded.images.width} numbers each, in {folder}"
    )
    next_step(["diptych", "evaluate", folder], ["diptych", "index", folder])
