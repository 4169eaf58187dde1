"""``diptych data shortcuts``: pictures and captions with a shortcut, as a tower will see them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console import next_step, progress, say
from diptych.cli.sources import DataChoice, Images, ReaderName, ReaderOptions
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.analysis.shortcuts import Shortcuts
    from diptych.data.collection import Collection
    from diptych.report.document import Card

_WIDTH, _NARROWEST = 1000, 200  # pixels: of a sheet, about, and of an image that is enlarged
_FEW_SCENES = {"n_train": 40, "n_val": 10, "n_test": 10}


def shortcuts(
    data: Annotated[
        Path | None, typer.Argument(help="A dataset: folder or file.", show_default=False)
    ] = None,
    scenes: Annotated[bool, typer.Option("--scenes", help="A few generated scenes instead.")] = False,
    setup: Annotated[
        str, typer.Option(help="unique, captions, images, bits, per-caption or none.")
    ] = "unique",
    bits: Annotated[int | None, typer.Option(help="Of setup bits: 0–13.", show_default=False)] = None,
    carries: Annotated[
        str, typer.Option(help="Of setup per-caption: pictures carry all their captions' numbers, or one.")
    ] = "all",
    shuffled: Annotated[
        bool, typer.Option("--shuffled", help="Deal unique numbers anew every epoch.")
    ] = False,
    digits: Annotated[
        str, typer.Option(help="Pictures of digits: an MNIST file (.npz or IDX), sklearn, drawn or auto.")
    ] = "auto",
    digit_size: Annotated[int, typer.Option(help="Side of a digit, in pixels.")] = 28,
    compat: Annotated[str, typer.Option(help="none, or published: faults included.")] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")] = 0,
    size: Annotated[int, typer.Option(min=8, help="Side of the picture that a tower sees.")] = 224,
    split: Annotated[str, typer.Option(help="The part of the data to show.")] = "train",
    epoch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Show numbers as this epoch of training has them, not as evaluation.",
            show_default=False,
        ),
    ] = None,
    pictures: Annotated[int, typer.Option("--pictures", "-n", min=1, help="How many to show.")] = 4,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The PNG to write.")] = Path("shortcuts.png"),
) -> None:
    """Show a few pictures and captions with synthetic shortcuts: numbers as digits on both.

    Examples:

      [bold]diptych data shortcuts flickr8k --setup unique --digits mnist.npz --out sheet.png[/bold]

      [bold]diptych data shortcuts --scenes --setup bits --bits 8 --epoch 1[/bold]
    """
    from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts
    from diptych.report.document import Gallery
    from diptych.report.sheets import write_sheet
    from diptych.training.recipe import collection_of
    from diptych.training.sections import Data

    given = {
        "setup": setup,
        "bits": bits,
        "carries": carries,
        "shuffled": shuffled,
        "digits": digits,
        "digit_size": digit_size,
        "compat": compat,
    }
    options = ShortcutOptions.read(given, "shortcuts", fix="see diptych data shortcuts --help")
    if scenes == (data is not None):
        raise UsageError("one source of pictures is needed", "give a dataset, or --scenes")
    section = {"scenes": _FEW_SCENES}
    if data is not None:
        section = DataChoice(data, images, reader, reader_option).section(None)
    with progress():
        whole = collection_of(Data.model_validate(section))
        made = Shortcuts.of(options, whole, Data().train, seed)
        made.check_fit(size, size)
        cards = _cards(made, whole.split(split), pictures, size, epoch)
        title, columns = f"{whole.name}, {split}; {made.line()}", max(1, _WIDTH // max(size, _NARROWEST))
        write_sheet(out, title, [Gallery("", cards)], columns, _NARROWEST, exact=True)
    for card in cards:
        say(f"{card.name}: {card.text.splitlines()[0] if card.text else 'no captions'}")
    say(made.line())
    say(f"drawn in {out}")
    usual = ShortcutOptions().model_dump()
    chosen = {"setup": setup} | {key: value for key, value in given.items() if value != usual[key]}
    words = [word for key, value in chosen.items() for word in ("--set", f"shortcuts.{key}={_toml(value)}")]
    next_step(["diptych", "train", "RECIPE", *([] if data is None else ["--data", data]), *words])


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cards(made: Shortcuts, part: Collection, pictures: int, size: int, epoch: int | None) -> list[Card]:
    """Pictures from all over ``part``, prepared, with the shortcuts of an epoch or of evaluation."""
    import numpy as np
    from PIL import Image

    from diptych.analysis.shortcuts import with_ending
    from diptych.data.batches import Batch
    from diptych.data.images import pasted, split_overlay
    from diptych.encoders.preprocessing import Preprocessing
    from diptych.report.document import Card

    part = part.subset(np.linspace(0, part.n_images - 1, min(pictures, part.n_images)).astype(np.int64))
    shown = made.injected(part)
    overlays = [split_overlay(shown.item(row))[1] for row in range(part.n_images)]
    captions = list(shown.captions)
    if epoch is not None:
        batch = Batch(np.arange(part.n_images), np.arange(part.n_captions), part.caption_image)
        given = made.training(part, batch, epoch - 1)  # which counts from 0
        overlays = given.overlays
        captions = [with_ending(*pair) for pair in zip(part.captions, given.endings, strict=True)]
    # The usual share of the shorter side: 224 of 256 pixels.
    preprocessing = Preprocessing(size=size, resize=max(size, size * 8 // 7))
    most = None if made.options.setup == "per-caption" else 1
    cards = []
    for row, overlay in enumerate(overlays):
        pixels = preprocessing.central(part.image(row))
        picture = Image.fromarray(pixels if overlay is None else pasted(pixels, overlay))
        first, stop = part.caption_start[row : row + 2]
        name = part.image_ids[row]
        cards.append(Card(name, picture, "\n".join(captions[first:stop][:most]), name))
    return cards
