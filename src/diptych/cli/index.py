"""``diptych index``: from embeddings to something that can be searched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, say
from diptych.cli.options import (
    Data,
    Images,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Source,
    Split,
    parse_values,
)
from diptych.cli.progress import progress
from diptych.cli.sources import DataChoice, encoded_of
from diptych.core.errors import UsageError

__all__ = ["index"]


def index(
    source: Source,
    data: Data = None,
    split: Split = None,
    engine: Annotated[str, typer.Option(help="exact or hnsw.")] = "exact",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", help="KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.", show_default=False
        ),
    ] = None,
    of: Annotated[str, typer.Option(help="What is found: images or texts.")] = "images",
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Build an index of a run's or a dataset's pictures (or captions).

    Examples:

      [bold]diptych index runs/flickr8k[/bold]

      [bold]diptych index embedded --engine hnsw --option ef_search=128 --of texts[/bold]
    """
    from diptych.index import build_index

    if of not in ("images", "texts"):
        raise UsageError(f"--of {of!r}", "images or texts")
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    with progress():
        encoded, origin, _ = encoded_of(source, choice, split)
        items, others = (encoded.images, encoded.texts) if of == "images" else (encoded.texts, encoded.images)
        # The other modality is what the index will be asked with: recall is measured on it.
        built = build_index(items, engine, sample=others.rows[:1000], **parse_values(option, "--option"))
        built.about["origin"] = origin.to_dict()
        target = out or Path(source) / f"index-{of}-{engine}"
        built.save(target)
    say(f"{len(built):,} {of} of {encoded.about['dataset']}, engine {engine}, in {target}")
    if "recall" in built.about:
        recall = built.about["recall"]
        say(f"recall@{recall['k']} against exact on {recall['queries']} queries: {recall['value']:.3f}")
    query = '"what to look for"' if of == "images" else "picture.jpg"
    next_step(f"diptych search {target} {query}")
