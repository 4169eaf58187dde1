"""``diptych sparse train``: from dense rows to bags of weighted terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.cli.sources import (
    Data,
    DataChoice,
    Images,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Source,
    encode_part,
    encoder_of,
    parse_values,
)
from diptych.cli.sparse_folder import SparseFolder
from diptych.core.errors import UsageError
from diptych.core.files import safe_name

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.embeddings import EncodedCollection, Origin
    from diptych.sparse import SparsifyOptions


@dataclass(frozen=True)
class DensePart:
    """One split with its dense rows.

    Attributes:
        encoded: rows of pictures and captions.
        collection: the pictures and captions themselves.
        origin: which encoder, data and split.
    """

    encoded: EncodedCollection
    collection: Collection
    origin: Origin

    @property
    def captions(self) -> Sequence[str]:
        """In the order of their rows."""
        return self.collection.captions


def dense_parts(source: str, choice: DataChoice, splits: Sequence[str], out: Path) -> dict[str, DensePart]:
    """Some splits as ``source`` encodes them, by their names; what is encoded already is used."""
    from diptych.core.locking import exclusive_folder
    from diptych.encoders.embeddings import EncodedCollection, Origin, check_still_there
    from diptych.encoders.family import rooted

    folder = Path(source)
    kept = Origin.read(folder)
    if kept is not None and choice.data is not None:
        raise UsageError(f"{source} is embedded already", "leave --data out")
    model = source if kept is None else kept.model
    if kept is not None:
        check_still_there(model, source)
    encoder, run = encoder_of(model)
    given = kept
    if given is None:
        given = Origin(rooted(source), choice.section(run), None)
    whole = replace(given, split=None).collection()
    there = whole.split_sizes
    if splits[0] not in there:
        raise UsageError(
            f"{whole.name} has no split {splits[0]!r} to learn from, only {', '.join(there)}",
            "name one with --train",
        )
    parts = {}
    for split in dict.fromkeys(split for split in splits if split in there):
        origin = replace(given, split=split)
        if kept is not None and kept.split == split:
            encoded = EncodedCollection.open(folder)
        else:
            home = (Path(model) if run is not None else out) / "embeddings"
            with exclusive_folder(home):  # of two at once each would take the other's unfinished rows away
                encoded = encode_part(encoder, whole, origin, home / safe_name(f"{whole.name}-{split}"))
        parts[split] = DensePart(encoded, whole.split(split), origin)
    return parts


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

      [bold]diptych sparse train runs/flickr8k --eta 1e-3[/bold]

      [bold]diptych sparse train hf:openai/clip-vit-base-patch32 --data flickr30k --mlm bert-base-uncased -o out[/bold]

      [bold]diptych sparse train rows:blip-vectors --data dataset_flickr30k.json --out sparse[/bold]
    """
    from diptych.core.locking import exclusive_folder
    from diptych.report.sparse import sparse_page
    from diptych.sparse import (
        PairedRows,
        StaticEmbedding,
        measure_sparsified,
        sparsify_collection,
        sparsify_options,
        train_sparsifier,
    )
    from diptych.sparse.task import HeadFolder
    from diptych.sparse.training import check_head_folder

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
    check_head_folder(HeadFolder(folder), options)  # likewise
    with progress():
        parts = dense_parts(source, choice, (train, validation, test), folder)
        taught = parts[train]
        held = parts.get(validation)
        with stop_on_signal():
            sparsifier = train_sparsifier(
                PairedRows.of(taught.encoded, taught.captions),
                options,
                folder,
                validation=None if held is None else PairedRows.of(held.encoded, held.captions),
                accelerator=accelerator,
            )
        shown = next(split for split in (test, validation, train) if split in parts)
        made = SparseFolder(folder, replace(taught.origin, split=None), shown)
        with exclusive_folder(folder):  # of two at once each would take the other's unfinished rows away
            part = parts[shown]
            rows = sparsify_collection(sparsifier, part.encoded, part.captions, made.rows_folder())
            vocabulary = sparsifier.vocabulary
            measures = measure_sparsified(part.encoded, rows, vocabulary, part.captions, embedding=embedding)
            measures.save(folder / "measures" / f"{safe_name(shown)}.npz")
            made.save()
            command = _command(source, options, folder)
            page = sparse_page(vocabulary, rows, part.collection, measures, command).save(
                folder / "report.html"
            )
    said = sparsifier.describe()
    say(
        f"head over {said['terms']:,} terms, ω {said['hidden']}, η {said['eta']:g}, expansion {said['expansion']};"
        f" in {folder}"
    )
    show(*measures.tables())
    say(measures.line())
    next_step(["open", page], ["diptych", "sparse", "terms", folder], ["diptych", "index", folder])


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
    return " ".join(["diptych sparse train", source, *changed, f"--out {folder}"])
