"""``diptych data shortcuts``: images and captions with a shortcut, as a tower receives them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from diptych.analysis.shortcuts import ShortcutOptions
from diptych.cli.console import next_step, progress, say
from diptych.cli.sources import DataSpec
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.analysis.shortcuts import Shortcuts
    from diptych.data.collection import Collection
    from diptych.report.document import Card

_WIDTH, _NARROWEST = 1000, 200  # pixels: of a sheet, about, and of an image that is enlarged
_FEW_SCENES = {"n_train": 40, "n_val": 10, "n_test": 10}


class SheetOptions(ShortcutOptions, DataSpec):
    """Which shortcuts are shown, on which images."""

    data: Path | None = Field(
        None,
        description="A dataset: folder or file.",
        json_schema_extra={"argument": True, "metavar": "DATA"},
    )
    scenes: bool = Field(False, description="A few generated scenes instead.")
    seed: int = Field(0, ge=0, description="Of everything that is drawn.")
    size: int = Field(224, ge=8, description="Side of the image that a tower receives.")
    split: str = Field("train", description="The part of the data to show.")
    epoch: int | None = Field(
        None, ge=1, description="Show numbers as this epoch of training has them, not as evaluation."
    )
    pictures: int = Field(
        4, ge=1, description="How many images to show.", json_schema_extra={"flags": ["--pictures", "-n"]}
    )
    out: Path = Field(
        Path("shortcuts.png"), description="The PNG to write.", json_schema_extra={"flags": ["--out", "-o"]}
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.scenes == (self.data is not None):
            raise UsageError("one source of images is needed", "give a dataset, or --scenes")
        return self

    def of_training(self) -> ShortcutOptions:
        """Return the shortcuts alone, as a recipe has them."""
        return ShortcutOptions(**self.model_dump(include=set(ShortcutOptions.model_fields)))


def shortcuts(options: SheetOptions) -> None:
    """Show a few images and captions with synthetic shortcuts: numbers as digits on both.

    Setups: unique numbers on images and captions, on captions or images alone, bits drawn at every access, a number
    per caption, or none.

    Examples:
        diptych data shortcuts flickr8k --digits mnist.npz --out sheet.png
        diptych data shortcuts --scenes --setup bits --bits 8 --epoch 1
    """
    from diptych.analysis.shortcuts import Shortcuts
    from diptych.report.document import Gallery
    from diptych.report.sheets import write_sheet
    from diptych.training.recipe import collection_of
    from diptych.training.sections import Data

    size, split, chosen = options.size, options.split, options.of_training()
    section = {"scenes": _FEW_SCENES} if options.scenes else options.section(None)
    with progress():
        whole = collection_of(Data.model_validate(section))
        made = Shortcuts.of(chosen, whole, Data().train, options.seed)
        made.check_fit(size, size)
        cards = _cards(made, whole.split(split), options)
        title, columns = f"{whole.name}, {split}; {made.line()}", max(1, _WIDTH // max(size, _NARROWEST))
        write_sheet(options.out, title, [Gallery("", cards)], columns, _NARROWEST, exact=True)
    for card in cards:
        say(f"{card.name}: {card.text.splitlines()[0] if card.text else 'no captions'}")
    say(made.line())
    say(f"drawn in {options.out}")
    usual = ShortcutOptions().model_dump()
    values = {
        key: value for key, value in chosen.model_dump().items() if key == "setup" or value != usual[key]
    }
    words = [word for key, value in values.items() for word in ("--set", f"shortcuts.{key}={_toml(value)}")]
    data = [] if options.data is None else ["--data", options.data]
    next_step(["diptych", "train", "RECIPE", *data, *words])


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cards(made: Shortcuts, part: Collection, options: SheetOptions) -> list[Card]:
    """Return images from all over ``part``, prepared, with the shortcuts of an epoch or of evaluation."""
    import numpy as np
    from PIL import Image

    from diptych.analysis.shortcuts import with_ending
    from diptych.data.batches import Batch
    from diptych.data.images import pasted, split_overlay
    from diptych.encoders.preprocessing import Preprocessing
    from diptych.report.document import Card

    part = part.subset(
        np.linspace(0, part.n_images - 1, min(options.pictures, part.n_images)).astype(np.int64)
    )
    shown = made.injected(part)
    overlays = [split_overlay(shown.item(row))[1] for row in range(part.n_images)]
    captions = list(shown.captions)
    if (epoch := options.epoch) is not None:
        batch = Batch(np.arange(part.n_images), np.arange(part.n_captions), part.caption_image)
        given = made.training(part, batch, epoch - 1)  # which counts from 0
        overlays = given.overlays
        captions = [with_ending(*pair) for pair in zip(part.captions, given.endings, strict=True)]
    size = options.size  # the usual share of the shorter side: 224 of 256 pixels
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
