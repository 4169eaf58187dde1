"""``diptych index``: from embeddings to something that can be searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console import next_step, progress, say
from diptych.cli.sources import (
    Data,
    DataChoice,
    Images,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Source,
    Split,
    encoded_of,
    parse_values,
)
from diptych.cli.sparse_folder import SparseFolder
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.encoders.embeddings import Embeddings, Origin
    from diptych.encoders.sparse_embeddings import SparseEmbeddings


def index(
    source: Source,
    data: Data = None,
    split: Split = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="How it is searched, see diptych info; exact for dense rows, inverted for sparse ones.",
            show_default=False,
        ),
    ] = None,
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
    """Build an index of a run's or a dataset's pictures (or captions), or of what diptych sparsify made.

    Examples:

      [bold]diptych index runs/flickr8k[/bold]

      [bold]diptych index embedded --engine hnsw --option ef_search=128 --of texts[/bold]

      [bold]diptych index runs/flickr8k/sparse --engine inverted[/bold]

      [bold]diptych index embedded --engine qdrant --option url=https://host:6333 --option collection=shop[/bold]
    """
    from diptych.index import ENGINES, build_index

    if of not in ("images", "texts"):
        raise UsageError(f"--of {of!r}", "images or texts")
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    with progress():
        images_, texts, origin, name = _rows_of(source, choice, split)
        items, others = (images_, texts) if of == "images" else (texts, images_)
        options = parse_values(option, "--option")
        if engine is not None and ENGINES.get(engine).filters:
            options["records"] = _records(origin, of)
        # The other modality is what the index will be asked with: recall is measured on it.
        built = build_index(items, engine, sample=others.rows[:1000], **options)
        built.about["origin"] = asdict(origin)
        target = out or Path(source) / f"index-{of}-{built.engine_name}"
        built.save(target)
    say(f"{len(built):,} {of} of {name}, engine {built.engine_name}, in {target}")
    if "recall" in built.about:
        recall = built.about["recall"]
        say(f"recall@{recall['k']} against exact on {recall['queries']} queries: {recall['value']:.3f}")
    next_step(["diptych", "search", target, "what to look for" if of == "images" else "picture.jpg"])


def _rows_of(
    source: str, choice: DataChoice, split: str | None
) -> tuple[Embeddings | SparseEmbeddings, Embeddings | SparseEmbeddings, Origin, str]:
    """Rows of pictures and captions, dense or sparse, where they came from, and what the data is called."""
    if not SparseFolder.is_one(source):
        encoded, origin, _ = encoded_of(source, choice, split)
        return encoded.images, encoded.texts, origin, encoded.about["dataset"]
    if choice.data is not None:
        raise UsageError(f"{source} holds sparse rows already", "leave --data out")
    made = SparseFolder.open(source)
    rows = made.rows(split)
    return rows.images, rows.texts, made.query_origin(split), rows.about["dataset"]


def _records(origin: Origin, of: str) -> Sequence[Mapping[str, Any]] | None:
    """What else the collection knows of each item: what searches can be restricted by."""
    collection = origin.collection()
    return collection.records if of == "images" else collection.caption_records
