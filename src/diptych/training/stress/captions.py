"""Captions that a perturbation changed, and their rows; nothing else is encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.analysis.perturbations import TextPerturbation, perturb_captions
from diptych.analysis.perturbations.declaration import options_of
from diptych.core.errors import CaptionError, NumericalError
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import Task, report_to
from diptych.data.language import Language
from diptych.encoders.dual_encoder import DualEncoder
from diptych.training.stress.change import Change, Stop, check_stop

__all__ = ["changed_captions", "encode_captions"]

_BLOCK = 2048


def changed_captions(
    perturbation: TextPerturbation,
    captions: Sequence[str],
    ids: Sequence[str],
    *,
    seed: int,
    options: Mapping[str, Any],
    compat: str,
    language: Language,
    tags: Sequence[Sequence[str]] | None,
) -> Change:
    """What a perturbation makes of captions; arguments and errors as of
    :func:`~diptych.analysis.perturbations.perturb_captions`."""
    with report_to(None):
        found = perturb_captions(
            perturbation,
            captions,
            ids,
            seed=seed,
            options=options,
            compat=compat,
            language=language,
            tags=tags if "tags" in perturbation.needs else None,
        )
    places = np.flatnonzero(found.changed).tolist()
    texts = [found.texts[place] for place in places]
    said = options_of(perturbation, options).model_dump(mode="json")
    return Change(found.changed, fingerprint(places, texts), said, found.reasons, texts)


def encode_captions(
    encoder: DualEncoder, texts: Sequence[str], names: Sequence[str], bar: Task, should_stop: Stop
) -> np.ndarray:
    """(n, d) rows of texts, each distinct text encoded once.

    Args:
        encoder: makes the rows.
        texts: what is encoded.
        names: the id of each, for messages.
        bar: is advanced.
        should_stop: asked after every block.

    Raises:
        Interrupted: ``should_stop`` said so.
        CaptionError: a text that the encoder cannot read; the message names it.
        NumericalError: a row is not finite; likewise.
    """
    places: dict[str, int] = {}
    which = np.array([places.setdefault(text, len(places)) for text in texts], dtype=np.int64)
    distinct, counts = list(places), np.bincount(which, minlength=len(places))
    rows = np.empty((len(distinct), encoder.width), dtype=np.float32)
    for start in range(0, len(distinct), _BLOCK):
        block = distinct[start : start + _BLOCK]
        try:
            rows[start : start + len(block)] = encoder.encode_texts(block)
        except (CaptionError, NumericalError) as error:
            first = names[int(np.argmax(which >= start))]
            raise type(error)(f"changed captions from {first} on: {error.message}", error.fix) from None
        bar.advance(int(counts[start : start + len(block)].sum()))
        check_stop(should_stop)
    return rows[which]
