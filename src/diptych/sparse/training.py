"""Training a head: from dense rows and captions to a Sparsifier."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from diptych.core.chart import Chart
from diptych.core.errors import UsageError
from diptych.core.files import recover_folder, safe_name
from diptych.core.locking import exclusive_folder
from diptych.core.table import Table, Tabular
from diptych.data.collection import Collection
from diptych.data.source import DataSpec
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection, Origin, check_still_there
from diptych.encoders.family import rooted
from diptych.encoders.inputs import pick_device
from diptych.evaluation.sources import encode_part
from diptych.sparse.evaluate import SparseMeasures, measure_sparsified
from diptych.sparse.explain import Bag
from diptych.sparse.head import SparseHeads, each_head, fresh_heads
from diptych.sparse.initialise import starting_weights
from diptych.sparse.measures import StaticEmbedding
from diptych.sparse.options import SparsifyOptions, TrainOptions
from diptych.sparse.sparsified import (
    SPARSE_FILE,
    SparseEncoder,
    SparseFolder,
    SparsifiedCollection,
    sparsify_collection,
)
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.task import HeadFolder, HeadTask, PairedRows, Pairs, Validation
from diptych.sparse.vocabulary import TermVocabulary
from diptych.training.run import Run
from diptych.training.trainer import Saving, Trainer, multiplies_bfloat16, single_device

logger: logging.Logger = logging.getLogger(__name__)


def train_sparsifier(
    rows: PairedRows,
    options: SparsifyOptions,
    folder: Path | str,
    *,
    validation: PairedRows | None = None,
    accelerator: str = "auto",
) -> Sparsifier:
    """Train a head on dense rows, or resume a training in ``folder``.

    No labels are used: dense scores are the targets. Which caption is whose decides only who meets in a batch.
    """
    rows.check()
    captions, texts, size = rows.captions, rows.texts, options.training.batch_size
    if size > len(captions):
        raise UsageError(
            f"batches of {size} pairs from {len(captions):,} captions",
            "give more captions, or set training.batch_size lower",
        )
    if validation is not None:
        validation.check(rows)
    elif options.training.select == "best":
        raise UsageError("training.select = best needs validation rows", "give them, or select the last")
    kept = HeadFolder(folder)
    kept.check_options(options)
    device = pick_device(None if accelerator == "auto" else accelerator)
    with kept.held():
        recover_folder(kept.head)
        # A training is resumed in the precision that it was begun with, whatever the device has now.
        before = kept.begun_with.get("precision") if kept.begun else None
        precision = before or chosen_precision(options.training.precision, device)
        request = {
            **options.model_dump(mode="json"),
            "encoder": texts.encoder,
            "width": texts.width,
            "precision": precision,
            "data": rows.fingerprint,
            "validation": None if validation is None else validation.fingerprint,
        }
        kept.check(request)
        if not kept.finished:
            vocabulary = _vocabulary(options, captions, kept)
            heads = _begun(options, texts.width, vocabulary, captions)
            kept.begin(request)
            if not (kept.vocabulary / "terms.json").is_file():
                vocabulary.save(kept.vocabulary)
            measured = None if validation is None else Validation(validation)
            sparsifier = Sparsifier(heads, vocabulary, options, texts.encoder, device=str(device))
            pairs = Pairs(rows, vocabulary.caption_terms(captions), size, options.seed)
            task = HeadTask(kept, sparsifier, pairs, texts.similarity, precision, measured)
            fabric = single_device(device, "16-mixed" if precision == "float16" else "32-true")
            saving = Saving(epochs=False, minutes=options.training.checkpoint_minutes)
            place = Trainer(task, kept, fabric, saving).train()
            numbers: dict[str, Any] = {
                "pairs": len(captions),
                "terms": len(vocabulary),
                "epochs": place.epoch,
            }
            if place.best_epoch:
                numbers |= {"best": place.best, "best_epoch": place.best_epoch}
            kept.finish(**numbers, seconds=round(place.seconds, 1))
        return Sparsifier.load(kept.head, device=str(device))


def chosen_precision(
    requested: Literal["auto", "float32", "bfloat16", "float16"], device: torch.device
) -> Literal["float32", "bfloat16", "float16"]:
    """Return what matrix products are computed in; ``auto``: bfloat16 where the device has it in hardware."""
    if requested == "float16" and device.type != "cuda":
        raise UsageError(f"training.precision = float16 on {device.type}", "use bfloat16 or float32")
    if requested != "auto":
        return requested
    return "bfloat16" if multiplies_bfloat16(device) else "float32"


def _vocabulary(options: SparsifyOptions, captions: Sequence[str], kept: HeadFolder) -> TermVocabulary:
    """Return the terms that the training began with: what was learned from captions is not learned again."""
    if kept.begun and (kept.vocabulary / "terms.json").is_file():
        return TermVocabulary.load(kept.vocabulary)
    chosen = options.vocabulary
    if chosen.terms == "words":
        return TermVocabulary.of_words(captions, chosen.size, chosen.min_count, chosen.source)
    if chosen.source is None:
        vocabulary = TermVocabulary.learned(captions, chosen.size, chosen.min_count)
    else:
        vocabulary = TermVocabulary.pretrained(chosen.source)
        vocabulary = vocabulary.restricted(captions) if chosen.occurring else vocabulary
    vocabulary.trace(captions)
    return vocabulary


def _begun(
    options: SparsifyOptions, width: int, vocabulary: TermVocabulary, captions: Sequence[str]
) -> SparseHeads:
    """Make heads before their first step, on the CPU: the first map at random, the rest as ``head.start`` says."""
    start = starting_weights(vocabulary, options.head, captions, options.seed, options.vocabulary.source)
    terms, hidden = start.projector.shape
    if hidden != options.head.width:
        logger.info("the head is %d wide, as its masked language model is", hidden)
    given: dict[str, Any] = options.head.model_dump(include={"shared", "bias", "eps"})
    heads = fresh_heads(width, hidden, terms, seed=options.seed, **given)
    for head in each_head(heads):
        for parameter, value in (
            (head.vocab_projector.weight, start.projector),
            (head.vocab_projector.bias, start.bias),
            (head.vocab_layer_norm.weight, start.norm_weight),
            (head.vocab_layer_norm.bias, start.norm_bias),
        ):
            if parameter is not None and value is not None:
                parameter.data.copy_(torch.from_numpy(value))
    return heads


@dataclass(frozen=True, eq=False)
class TrainedHead(Tabular):
    """A head, and what it keeps and loses on the part that was measured."""

    folder: Path
    sparsifier: Sparsifier
    rows: SparsifiedCollection
    collection: Collection  # the part
    measures: SparseMeasures
    dense: DualEncoder | None = None  # what made the dense rows

    def tables(self) -> list[Table]:
        """Return what is kept of the dense rows, and what it costs."""
        return self.measures.tables()

    def charts(self) -> list[Chart]:
        """Return the charts of the measures."""
        return self.measures.charts()

    @property
    def encoder(self) -> SparseEncoder:
        """Return the encoder of new images and texts: the dense one with this head."""
        if self.dense is None:
            raise UsageError("the head was trained on rows alone", "SparseEncoder(encoder, head.sparsifier)")
        encoder = SparseEncoder(self.dense, self.sparsifier)
        encoder.loaded_from = str(self.folder.resolve()) if (self.folder / SPARSE_FILE).is_file() else ""
        return encoder

    def terms_of(self, query: Any, k: int = 10) -> list[tuple[str, float]]:
        """Return the ``k`` heaviest terms of a sentence or an image, with their weights."""
        found = Bag.made(self.encoder, query).top(self.sparsifier.vocabulary, k)
        return [(term, weight) for term, weight, _ in found]

    def lines(self) -> list[str]:
        """Return what the head is, and where; and what its numbers depend on."""
        about = "head over {terms:,} terms, ω {hidden}, η {eta:g}, expansion {expansion}; in {folder}"
        return [about.format(**self.sparsifier.describe(), folder=self.folder), *self.measures.lines()]


def train_head(source: str, data: DataSpec, options: TrainOptions) -> TrainedHead:
    """Train a head on the embeddings of a run, an encoder or a folder, and measure it on the test split."""
    head, folder = options.head(), options.out or Path(source) / "sparse"
    if options.out is None and not Path(source).is_dir():
        raise UsageError("nowhere to write", f"{source} is no folder: name one with --out")
    static = str(options.word_vectors or head.vocabulary.source or "")
    embedding = StaticEmbedding.open(static) if static else None  # before the work, not after it
    HeadFolder(folder).check_options(head)  # likewise
    splits = options.train, options.validation, options.test
    origin, parts = _dense_parts(source, data, splits, folder)
    how: dict[str, Any] = {"embedding": embedding, "accelerator": options.accelerator, "origin": origin}
    return train_head_on(parts, head, folder, splits, **how)


def train_head_on(
    parts: Mapping[str, tuple[EncodedCollection, Collection]],  # by the name of the split
    head: SparsifyOptions,
    folder: Path,
    splits: Sequence[str],  # to learn from, to validate on and to measure; the last two where they are there
    *,
    embedding: StaticEmbedding | None = None,  # for Semantic@k
    accelerator: str = "auto",
    origin: Origin | None = None,  # of the dense rows; without it the folder cannot be opened by name
    encoder: DualEncoder | None = None,  # that made the dense rows
) -> TrainedHead:
    """Train a head on dense rows that are there, and measure it on the last split that is."""
    pairs = {split: PairedRows.of(dense, part.captions) for split, (dense, part) in parts.items()}
    train, validation = pairs[splits[0]], pairs.get(splits[1])
    sparsifier = train_sparsifier(train, head, folder, validation=validation, accelerator=accelerator)
    shown = next(split for split in reversed(splits) if split in parts)
    dense, part = parts[shown]
    with exclusive_folder(folder):  # of two at once each would take the other's unfinished rows away
        rows = sparsify_collection(sparsifier, dense, part.captions, folder / "rows" / shown)
        measures = measure_sparsified(dense, rows, sparsifier.vocabulary, part.captions, embedding=embedding)
        measures.save(folder / "measures" / f"{safe_name(shown)}.npz")
        if origin is not None:
            SparseFolder(folder, origin, shown).save()
    return TrainedHead(folder, sparsifier, rows, part, measures, encoder)


def _dense_parts(
    source: str, data: DataSpec, splits: Sequence[str], out: Path
) -> tuple[Origin, dict[str, tuple[EncodedCollection, Collection]]]:
    """Return the origin of all splits, and those that are there with their dense rows: what is encoded is used."""
    kept = Origin.read(Path(source))
    if kept is not None:
        if data.data is not None:
            raise UsageError(f"{source} is embedded already", "leave --data out")
        check_still_there(kept.model, source)
    model = kept.model if kept else source
    run = Run.open(model) if (Path(model) / "run.json").is_file() else None
    encoder = DualEncoder.load(model)
    origin = replace(kept, split=None) if kept else Origin(rooted(source), data.section(run), None)
    whole = origin.collection().divided()
    whole.require_captions("a sparse head")
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
