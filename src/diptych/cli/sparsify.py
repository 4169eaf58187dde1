"""``diptych sparse train``: from dense rows to bags of weighted terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.console import next_step, say, show, stop_on_signal
from diptych.cli.sources import DataSpec, OutOption, Source, encoder_of, parse_values
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.options import command_line, parameter

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.embeddings import EncodedCollection, Origin


class SparsifyOptions(OutOption):
    """What a head learns from, and how."""

    eta: float | None = parameter(
        None, "η: how much sparsity counts, 1e-2 (few terms) to 1e-5 (many).", ge=0, default="5e-3"
    )
    expansion: str | None = parameter(
        None, "A caption's terms: 0 its own, 1 any, c and c+w others by and by.", default="c"
    )
    mlm: str | None = parameter(
        None,
        "A masked language model, folder or hub name, whose vocabulary and embeddings the head begins "
        "with; else both are learned from the training captions.",
    )
    set_: list[str] = parameter([], "KEY=VALUE for the head, e.g. training.epochs=100. Repeatable.")
    train: str = parameter("train", "The split that is learned from.")
    validation: str = parameter("val", "Measured meanwhile, where it is there.")
    test: str = parameter("test", "Measured in the end, where it is there.")
    word_vectors: Path | None = parameter(
        None, "For Semantic@k: an .npz of words and vectors.", default="the masked language model's"
    )
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto.")


def sparsify(source: Source, data: DataSpec, options: SparsifyOptions) -> None:
    """Train a head that turns an encoder's dense rows into sparse ones over a vocabulary (D2S).

    No labels are needed and the encoder stays as it is: the head learns from the encoder's own scores. Then the
    test split is measured, dense and sparse. Ctrl-C stops after the current step; the same command resumes.

    Examples:
        diptych sparse train runs/flickr8k --eta 1e-3
        diptych sparse train hf:openai/clip-vit-base-patch32 --data coco --out bags
        diptych sparse train rows:vectors --data flickr30k.json --out sparse
    """
    from diptych.core.locking import exclusive_folder
    from diptych.report.sparse import sparse_page
    from diptych.sparse import (
        PairedRows,
        SparseFolder,
        StaticEmbedding,
        measure_sparsified,
        sparsify_collection,
        sparsify_options,
        train_sparsifier,
    )
    from diptych.sparse.task import HeadFolder

    short = {"loss.eta": options.eta, "expansion.mode": options.expansion, "vocabulary.source": options.mlm}
    given = {key: value for key, value in short.items() if value is not None}
    head = sparsify_options(parse_values(options.set_, "--set") | given)
    folder = options.out or Path(source) / "sparse"
    if options.out is None and not Path(source).is_dir():
        raise UsageError("nowhere to write", f"{source} is no folder: name one with --out")
    static = str(options.word_vectors or head.vocabulary.source or "")
    embedding = StaticEmbedding.open(static) if static else None  # before the work, not after it
    HeadFolder(folder).check_options(head)  # likewise
    train, validation, test = options.train, options.validation, options.test
    origin, parts = dense_parts(source, data, (train, validation, test), folder)
    pairs = {split: PairedRows.of(dense, part.captions) for split, (dense, part) in parts.items()}
    with stop_on_signal():
        sparsifier = train_sparsifier(
            pairs[train], head, folder, validation=pairs.get(validation), accelerator=options.accelerator
        )
    shown = next(split for split in (test, validation, train) if split in parts)
    dense, part = parts[shown]
    with exclusive_folder(folder):  # of two at once each would take the other's unfinished rows away
        rows = sparsify_collection(sparsifier, dense, part.captions, folder / "rows" / shown)
        vocabulary = sparsifier.vocabulary
        measures = measure_sparsified(dense, rows, vocabulary, part.captions, embedding=embedding)
        measures.save(folder / "measures" / f"{safe_name(shown)}.npz")
        SparseFolder(folder, origin, shown).save()
        command = command_line(("diptych", "sparse", "train", source), data, options)
        page = sparse_page(vocabulary, rows, part, measures, command).save(folder / "report.html")
    about = "head over {terms:,} terms, ω {hidden}, η {eta:g}, expansion {expansion}; in {folder}"
    say(about.format(**sparsifier.describe(), folder=folder))
    show(*measures.tables())
    say(measures.line())
    next_step(["open", page], ["diptych", "sparse", "terms", folder], ["diptych", "index", folder])


def dense_parts(
    source: str, data: DataSpec, splits: Sequence[str], out: Path
) -> tuple[Origin, dict[str, tuple[EncodedCollection, Collection]]]:
    """Return the origin of all splits, and those that are there with their dense rows: what is encoded is used."""
    from diptych.core.locking import exclusive_folder
    from diptych.encoders.embeddings import EncodedCollection, Origin, check_still_there
    from diptych.encoders.family import rooted
    from diptych.evaluation.sources import encode_part

    kept = Origin.read(Path(source))
    if kept is not None:
        if data.data is not None:
            raise UsageError(f"{source} is embedded already", "leave --data out")
        check_still_there(kept.model, source)
    encoder, run = encoder_of(kept.model if kept else source)
    origin = replace(kept, split=None) if kept else Origin(rooted(source), data.section(run), None)
    whole = origin.collection()
    there = whole.split_sizes
    if splits[0] not in there:
        raise UsageError(
            f"{whole.name} has no split {splits[0]!r} to learn from, only {', '.join(there)}",
            "name one with --train",
        )
    parts, home = {}, (out if run is None else run.folder) / "embeddings"
    for split in dict.fromkeys(split for split in splits if split in there):
        if kept and kept.split == split:
            encoded = EncodedCollection.open(source)
        else:
            with exclusive_folder(home):  # of two at once each would take the other's unfinished rows away
                name = safe_name(f"{whole.name}-{split}")
                encoded = encode_part(encoder, whole, replace(origin, split=split), home / name)
        parts[split] = encoded, whole.split(split)
    return origin, parts
