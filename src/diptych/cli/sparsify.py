"""``diptych sparsify``: from dense rows to bags of weighted terms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, print_table, say
from diptych.cli.dense_parts import DensePart, dense_parts
from diptych.cli.interrupt import stop_on_signal
from diptych.cli.options import (
    Data,
    Images,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Source,
    parse_values,
)
from diptych.cli.progress import progress
from diptych.cli.sources import DataChoice
from diptych.cli.sparse_folder import SparseFolder
from diptych.cli.sparse_report import write_page
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.sparse import SparseMeasures, Sparsifier, SparsifyOptions, StaticEmbedding

__all__ = ["sparsify"]


def sparsify(
    source: Source,
    data: Data = None,
    eta: Annotated[
        float | None,
        typer.Option(
            help="η: how much sparsity counts, 1e-2 (few terms) to 1e-5 (many).", min=0, show_default="5e-3"
        ),
    ] = None,
    expansion: Annotated[
        str | None,
        typer.Option(
            help="A caption's terms: 0 its own, 1 any, c and c+w others by and by.", show_default="c"
        ),
    ] = None,
    mlm: Annotated[
        str | None,
        typer.Option(
            help="A masked language model, folder or hub name (distilbert-base-uncased), whose vocabulary and "
            "embeddings the head begins with; else both are learned from the training captions.",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="KEY=VALUE for the head, e.g. training.epochs=100. Repeatable.", show_default=False
        ),
    ] = None,
    train: Annotated[str, typer.Option(help="The split that is learned from.")] = "train",
    validation: Annotated[str, typer.Option(help="Measured meanwhile, where it is there.")] = "val",
    test: Annotated[str, typer.Option(help="Measured in the end, where it is there.")] = "test",
    word_vectors: Annotated[
        Path | None,
        typer.Option(
            help="For Semantic@k: an .npz of words and vectors; the masked language model's when not given.",
            show_default=False,
        ),
    ] = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
    accelerator: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Train a head that turns an encoder's dense rows into sparse ones over a vocabulary (D2S).

    No labels are needed and the encoder stays as it is: what the head learns from are the encoder's own
    scores. Afterwards the test split is measured dense and sparse: recall, FLOPs, how many of the top terms
    a caption contains, and how faithful the sparse ranking is.

    Ctrl-C stops after the current step; the same command goes on.

    Examples:

      [bold]diptych sparsify runs/flickr8k --eta 1e-3[/bold]

      [bold]diptych sparsify hf:openai/clip-vit-base-patch32 --data flickr30k --mlm bert-base-uncased -o out[/bold]

      [bold]diptych sparsify rows:blip-vectors --data dataset_flickr30k.json --out sparse[/bold]
    """
    from diptych.sparse import StaticEmbedding, ValidationRows, sparsify_options, train_sparsifier
    from diptych.sparse.folder import HeadFolder
    from diptych.training.lock import training_lock

    values = parse_values(set_, "--set")
    for key, value in (("loss.eta", eta), ("expansion.mode", expansion), ("vocabulary.source", mlm)):
        if value is not None:
            values[key] = value
    options = sparsify_options(values)
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    folder = out or Path(source) / "sparse"
    if out is None and not Path(source).is_dir():
        raise UsageError("nowhere to write", f"{source} is no folder: name one with --out")
    static = str(word_vectors) if word_vectors is not None else options.vocabulary.source
    embedding = None if static is None else StaticEmbedding.open(static)  # before the work, not after it
    HeadFolder(folder).check(options)  # likewise
    with progress():
        parts = dense_parts(source, choice, (train, validation, test), folder)
        taught = parts[train]
        held = parts.get(validation)
        with stop_on_signal() as should_stop:
            sparsifier = train_sparsifier(
                taught.encoded.images,
                taught.encoded.texts,
                taught.captions,
                taught.encoded.caption_image,
                options,
                folder,
                validation=None if held is None else ValidationRows.of(held.encoded, held.captions),
                accelerator=accelerator,
                should_stop=should_stop,
            )
        shown = next(split for split in (test, validation, train) if split in parts)
        made = SparseFolder(folder, replace(taught.origin, split=None), shown)
        with training_lock(folder):  # of two at once each would take the other's unfinished rows away
            measures = _measured(made, sparsifier, parts[shown], embedding)
            made.save()
            page = write_page(made, measures, _command(source, options, folder))
    say(f"{_line(sparsifier)}; in {folder}")
    _show(measures, shown)
    next_step(f"open {page}, diptych terms {folder}, or diptych index {folder}")


def _measured(
    made: SparseFolder, sparsifier: Sparsifier, part: DensePart, embedding: StaticEmbedding | None
) -> SparseMeasures:
    """Sparse rows of the split that is shown, and what they keep and lose."""
    from diptych.sparse import measure_sparsified, sparsify_collection

    rows = sparsify_collection(sparsifier, part.encoded, part.captions, made.rows_folder())
    measures = measure_sparsified(
        part.encoded, rows, sparsifier.vocabulary, part.captions, embedding=embedding
    )
    measures.save(made.folder / "measures" / f"{made.split}.json")
    return measures


def _command(source: str, options: SparsifyOptions, folder: Path) -> str:
    """What a person types to have the same head."""
    from diptych.sparse import SparsifyOptions

    plain = SparsifyOptions().model_dump()
    changed = [
        f"--set {section}.{key}={value}"
        for section, said in options.model_dump().items()
        if isinstance(said, dict)
        for key, value in said.items()
        if value != plain[section][key]
    ]
    if options.seed:
        changed.append(f"--set seed={options.seed}")
    return " ".join(["diptych sparsify", source, *changed, f"--out {folder}"])


def _line(sparsifier: Sparsifier) -> str:
    said = sparsifier.describe()
    return f"head over {said['terms']:,} terms, ω {said['hidden']}, η {said['eta']:g}, expansion {said['expansion']}"


def _show(measures: SparseMeasures, split: str) -> None:
    columns = ("measure", "dense", "sparse", "kept", "p")
    print_table(f"{split} split", columns, measures.recalls(), numbers=columns[1:])
    print_table("", ("of the sparse rows", "value"), measures.table(), numbers=("value",))
    say(measures.line())
