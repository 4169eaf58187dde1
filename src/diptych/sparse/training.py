"""Training a head: from dense rows and captions to a Sparsifier."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from diptych.core.errors import UsageError
from diptych.core.files import recover_folder
from diptych.encoders.inputs import pick_device
from diptych.sparse.head import Kind, SparseHeads, fresh_heads, head_of
from diptych.sparse.initialise import starting_weights
from diptych.sparse.options import SparsifyOptions
from diptych.sparse.pairs import PairedRows, Pairs, Validation, check_batch_size
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
    captions, texts = rows.captions, rows.texts
    check_batch_size(options.training.batch_size, len(captions))
    if options.training.select == "best" and validation is None:
        raise UsageError("training.select = best needs validation rows", "give them, or select the last")
    if validation is not None:
        validation.check_validation(texts)
    kept = HeadFolder(folder)
    check_head_folder(kept, options)
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
        if kept.finished:
            return Sparsifier.load(kept.head, device=str(device))
        vocabulary = _vocabulary(options, captions, kept)
        heads = _begun(options, texts.width, vocabulary, captions)
        kept.begin(request)
        if not (kept.vocabulary / "terms.json").is_file():
            vocabulary.save(kept.vocabulary)
        terms = vocabulary.caption_terms(captions)
        task = HeadTask(
            kept,
            Sparsifier(heads, vocabulary, options, texts.encoder, device=str(device)),
            Pairs(rows, terms, options.training.batch_size, options.seed),
            texts.similarity,
            precision,
            None
            if validation is None
            else Validation(validation, vocabulary, options.expansion.mode != "0", device),
        )
        fabric = single_device(device, "16-mixed" if precision == "float16" else "32-true")
        saving = Saving(epochs=False, minutes=options.training.checkpoint_minutes)
        place = Trainer(task, kept, fabric, saving).train()
        numbers: dict[str, Any] = {"pairs": len(captions), "terms": len(vocabulary.terms)}
        numbers |= {"epochs": place.epoch, "seconds": round(place.seconds, 1)}
        if place.best_epoch:
            numbers |= {"best": place.best, "best_epoch": place.best_epoch}
        kept.finish(**numbers)
        return Sparsifier.load(kept.head, device=str(device))


def check_head_folder(folder: HeadFolder, options: SparsifyOptions) -> None:
    """See that a training with ``options`` can begin or be resumed here."""
    folder.check(options.model_dump(mode="json"), beside=("embeddings",), whole=False)


Precision = Literal["float32", "bfloat16", "float16"]


def chosen_precision(asked: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """Return what matrix products are computed in; ``auto``: bfloat16 where the device has it in hardware."""
    if asked == "float16" and device.type != "cuda":
        raise UsageError(f"training.precision = float16 on {device.type}", "use bfloat16 or float32")
    if asked != "auto":
        return asked
    return "bfloat16" if multiplies_bfloat16(device) else "float32"


def _vocabulary(options: SparsifyOptions, captions: Sequence[str], kept: HeadFolder) -> TermVocabulary:
    """The terms that the training began with: what was learned from captions is not learned again."""
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
    """Heads before their first step, on the CPU: the first map at random, the rest as ``head.start`` says."""
    start = starting_weights(vocabulary, options.head, captions, options.seed, options.vocabulary.source)
    if start.width != options.head.width:
        logger.info("the head is %d wide, as its masked language model is", start.width)
    heads = fresh_heads(
        width,
        start.width,
        len(vocabulary.terms),
        shared=options.head.shared,
        bias=options.head.bias,
        eps=options.head.eps,
        seed=options.seed,
    )
    sides: tuple[Kind, ...] = ("image", "text")
    for head in {id(head_of(heads, kind)): head_of(heads, kind) for kind in sides}.values():
        given: dict[Any, np.ndarray | None] = {
            head.vocab_projector.weight: start.projector,
            head.vocab_projector.bias: start.bias,
            head.vocab_layer_norm.weight: start.norm_weight,
            head.vocab_layer_norm.bias: start.norm_bias,
        }
        with torch.no_grad():
            for parameter, value in given.items():
                if parameter is not None and value is not None:
                    parameter.copy_(torch.from_numpy(value))
    return heads
