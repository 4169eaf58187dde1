"""Training a head: from dense rows and captions to a Sparsifier."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from diptych.core.errors import UsageError
from diptych.core.files import recover_folder
from diptych.encoders.inputs import pick_device
from diptych.sparse.head import SparseHeads, each_head, fresh_heads
from diptych.sparse.initialise import starting_weights
from diptych.sparse.options import SparsifyOptions
from diptych.sparse.pairs import PairedRows, Pairs, Validation
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.task import HeadFolder, HeadTask
from diptych.sparse.vocabulary import TermVocabulary
from diptych.training.trainer import Saving, Trainer, multiplies_bfloat16, single_device

logger = logging.getLogger(__name__)


def train_sparsifier(
    rows: PairedRows,
    options: SparsifyOptions,
    folder: Path | str,
    *,
    validation: PairedRows | None = None,
    accelerator: str = "auto",
) -> Sparsifier:
    """Train a head on dense rows, or resume a training in ``folder``.

    No labels are used: dense scores are the targets. Which caption is whose decides only who meets in a
    batch.
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
            numbers: dict[str, Any] = {"pairs": len(captions), "terms": len(vocabulary.terms)}
            numbers |= {"epochs": place.epoch, "seconds": round(place.seconds, 1)}
            if place.best_epoch:
                numbers |= {"best": place.best, "best_epoch": place.best_epoch}
            kept.finish(**numbers)
        return Sparsifier.load(kept.head, device=str(device))


Precision = Literal["float32", "bfloat16", "float16"]


def chosen_precision(asked: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """Return what matrix products are computed in; ``auto``: bfloat16 where the device has it in hardware."""
    if asked == "float16" and device.type != "cuda":
        raise UsageError(f"training.precision = float16 on {device.type}", "use bfloat16 or float32")
    if asked != "auto":
        return asked
    return "bfloat16" if multiplies_bfloat16(device) else "float32"


def _vocabulary(options: SparsifyOptions, captions: Sequence[str], kept: HeadFolder) -> TermVocabulary:
    """Return the terms that the training began with: what was learned from captions is not learned again."""
    if kept.begun and (kept.vocabulary / "terms.json").is_file():
        return TermVocabulary.load(kept.vocabulary)
    chosen = options.vocabulary
    if chosen.source is None:
        return TermVocabulary.learned(captions, chosen.size, chosen.min_count)
    vocabulary = TermVocabulary.pretrained(chosen.source)
    return vocabulary.restricted(captions) if chosen.occurring else vocabulary


def _begun(
    options: SparsifyOptions, width: int, vocabulary: TermVocabulary, captions: Sequence[str]
) -> SparseHeads:
    """Make heads before their first step, on the CPU: the first map at random, the rest as ``head.start`` says."""
    start = starting_weights(vocabulary, options.head, captions, options.seed, options.vocabulary.source)
    if start.width != options.head.width:
        logger.info("the head is %d wide, as its masked language model is", start.width)
    given: dict[str, Any] = options.head.model_dump(include={"shared", "bias", "eps"})
    heads = fresh_heads(width, start.width, len(vocabulary.terms), seed=options.seed, **given)
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
