"""What a head's layer norm and second map begin with: vectors of terms that already mean something."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diptych.core.errors import MismatchError, UsageError
from diptych.sparse.cooccurrence import term_vectors
from diptych.sparse.masked_language_model import read_head
from diptych.sparse.options import HeadOptions
from diptych.sparse.vocabulary import TermVocabulary

logger = logging.getLogger(__name__)

_SPREAD = 0.02


@dataclass(frozen=True, eq=False)
class StartingWeights:
    """Where a head's layer norm and second map begin; its first map begins at random.

    Attributes:
        projector: (|V|, ω) float32.
        bias: (|V|,) float32, or None for a head without.
        norm_weight, norm_bias: (ω,) float32 of the layer norm, or None: ones and zeros.
        start: ``mlm``, ``cooccurrence`` or ``random``.
    """

    projector: np.ndarray
    bias: np.ndarray | None
    norm_weight: np.ndarray | None
    norm_bias: np.ndarray | None
    start: str

    @property
    def width(self) -> int:
        """ω."""
        return int(self.projector.shape[1])


def starting_weights(
    vocabulary: TermVocabulary,
    head: HeadOptions,
    captions: Sequence[str],
    seed: int,
    source: str | Path | None = None,
) -> StartingWeights:
    """The starting weights that ``head.start`` names.

    Behind a layer norm of ones and zeros a row of length r gives outputs of spread r, half of them above
    0. Rows of ``cooccurrence`` and ``random`` have entries of spread 0.02, as BERT's are drawn, so
    r = 0.02 · √ω (0.3 for ω = 256): with r = 1 and more, a head has much to unlearn first and ends with
    more non-zeros and a lower recall.
    """
    start = head.start
    if start == "auto":
        start = "cooccurrence" if source is None else "mlm"
    if start == "mlm":
        if source is None:
            raise UsageError("head.start = mlm needs a masked language model", "name it in vocabulary.source")
        return _from_model(vocabulary, head, source)
    if start == "cooccurrence":
        projector = term_vectors(vocabulary.caption_terms(captions), head.width, seed, _SPREAD)
    else:
        drawn = np.random.default_rng(seed).normal(0.0, _SPREAD, (len(vocabulary), head.width))
        projector = drawn.astype(np.float32)
    bias = np.zeros(len(vocabulary), dtype=np.float32) if head.bias else None
    return StartingWeights(projector, bias, None, None, start)


def _from_model(vocabulary: TermVocabulary, head: HeadOptions, source: str | Path) -> StartingWeights:
    model = read_head(source)
    rows = vocabulary.source_rows
    if rows.max(initial=-1) >= len(model.embeddings):
        raise MismatchError(
            f"the vocabulary has a term at row {rows.max()} of {source}, which has {len(model.embeddings)} rows",
            "take the vocabulary and the starting weights from the same model",
        )
    if model.norm_weight is None:
        logger.warning("%s was saved without its head: only its embeddings are taken", source)
    bias = None
    if head.bias:
        bias = np.zeros(len(rows), dtype=np.float32) if model.bias is None else model.bias[rows]
    return StartingWeights(model.embeddings[rows], bias, model.norm_weight, model.norm_bias, "mlm")
