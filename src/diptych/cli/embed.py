"""``diptych embed``: pictures and captions to rows on disk."""

from __future__ import annotations

from diptych.cli.console import next_step, say
from diptych.cli.options import (
    Data,
    Images,
    Model,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Split,
)
from diptych.cli.progress import progress
from diptych.cli.sources import DataChoice, encoded_of

__all__ = ["embed"]


def embed(
    model: Model,
    data: Data = None,
    split: Split = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Embed a dataset's pictures and captions once, for everything that comes after.

    Examples:

      [bold]diptych embed runs/flickr8k[/bold]

      [bold]diptych embed hf:openai/clip-vit-base-patch32 --data flickr30k --split test --out embedded[/bold]
    """
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    with progress():
        encoded, _, folder = encoded_of(model, choice, split, out)
    say(
        f"{len(encoded.images):,} pictures and {len(encoded.texts):,} captions, "
        f"{encoded.images.width} numbers each, in {folder}"
    )
    next_step(f"diptych evaluate {folder}, or diptych index {folder}")
