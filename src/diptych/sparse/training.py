"""Training a head: from dense rows and captions to a Sparsifier, resumable at any moment."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.files import recover_folder
from diptych.core.locking import exclusive_folder
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.pretrained import pick_device
from diptych.sparse.expansion import ExpansionControl
from diptych.sparse.folder import HeadFolder
from diptych.sparse.head import Kind, SparseHeads, fresh_heads, head_of
from diptych.sparse.initialise import starting_weights
from diptych.sparse.loop import Loop
from diptych.sparse.options import SparsifyOptions
from diptych.sparse.pairs import Pairs, check_batch_size, check_pairs, pairs_fingerprint
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.step import SparsifyStep, chosen_precision
from diptych.sparse.validation import Validation, ValidationRows
from diptych.sparse.vocabulary import TermVocabulary

logger = logging.getLogger(__name__)


def train_sparsifier(
    images: Embeddings,
    texts: Embeddings,
    captions: Sequence[str],
    caption_image: np.ndarray,
    options: SparsifyOptions,
    folder: Path | str,
    *,
    validation: ValidationRows | None = None,
    accelerator: str = "auto",
    should_stop: Callable[[], bool] = lambda: False,
) -> Sparsifier:
    """Train a head on dense rows, or go on from where a training in ``folder`` stands.

    No labels are used: dense scores are the targets. Which caption is whose decides only who meets in a
    batch.

    Args:
        caption_image: (n_captions,) picture of each caption.
    """
    check_pairs(images, texts, captions, caption_image)
    check_batch_size(options.training.batch_size, len(captions))
    if options.training.select == "best" and validation is None:
        raise UsageError("training.select = best needs validation rows", "give them, or select the last")
    if validation is not None:
        _check_validation(validation, texts)
    caption_image = np.asarray(caption_image)
    kept = HeadFolder(folder)
    device = pick_device(None if accelerator == "auto" else accelerator)
    with exclusive_folder(kept.path):
        recover_folder(kept.checkpoint)
        recover_folder(kept.head)
        # A training goes on with the precision that it was begun with, whatever the device has now.
        before = kept.about.get("precision") if kept.begun else None
        precision = before or chosen_precision(options.training.precision, device)
        about = {
            "encoder": texts.encoder,
            "width": texts.width,
            "precision": precision,
            "data": pairs_fingerprint(images, texts, captions, caption_image),
            "validation": None if validation is None else validation.fingerprint,
        }
        if not kept.begun and options.vocabulary.source is not None:
            TermVocabulary.pretrained(options.vocabulary.source)  # what cannot be opened binds no folder
        kept.begin(options, about)
        if kept.finished:
            return Sparsifier.load(kept.head, device=str(device))
        vocabulary = _vocabulary(options, captions, kept.vocabulary)
        terms = vocabulary.caption_terms(captions)
        pairs = Pairs(images, texts, caption_image, terms, options.training.batch_size, options.seed)
        heads = _begun(options, texts.width, vocabulary, captions).to(device)
        steps = options.training.epochs * pairs.steps
        loop = Loop(
            folder=kept,
            about=about | {"pairs": len(pairs), "terms": len(vocabulary.terms)},
            pairs=pairs,
            step=SparsifyStep(heads, options, texts.similarity, device, precision, steps),
            control=ExpansionControl(
                options.expansion, pairs.document_frequency, options.training.epochs, options.seed
            ),
            sparsifier=Sparsifier(heads, vocabulary, options, texts.encoder, device=str(device)),
            validation=None
            if validation is None
            else Validation(validation, vocabulary, options.expansion.mode != "0", device),
            should_stop=should_stop,
        )
        loop.go()
        return Sparsifier.load(kept.head, device=str(device))


def _check_validation(validation: ValidationRows, texts: Embeddings) -> None:
    """See that validation rows belong together, and to the rows that are learned from."""
    check_pairs(validation.images, validation.texts, validation.captions, validation.caption_image)
    if not len(validation.images) or not len(validation.texts):
        raise DataError(
            f"validation on {len(validation.images)} pictures and {len(validation.texts)} captions",
            "give rows, or leave validation out",
        )
    for what in ("width", "encoder", "similarity"):
        taught, held = getattr(texts, what), getattr(validation.texts, what)
        if taught != held:
            raise MismatchError(
                f"validation rows have {what} {held}, those that are learned from {taught}",
                "embed both with the same encoder: diptych embed",
            )


def _vocabulary(options: SparsifyOptions, captions: Sequence[str], kept: Path) -> TermVocabulary:
    """The terms that the training began with: what was learned from captions is not learned again."""
    if (kept / "terms.json").is_file():
        return TermVocabulary.load(kept)
    chosen = options.vocabulary
    if chosen.source is None:
        vocabulary = TermVocabulary.learned(captions, chosen.size, chosen.min_count)
    else:
        vocabulary = TermVocabulary.pretrained(chosen.source)
        if chosen.occurring:
            vocabulary = vocabulary.restricted(captions)
    vocabulary.save(kept)
    return vocabulary


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
