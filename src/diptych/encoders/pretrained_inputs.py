"""Captions as token ids for another library's text tower: tokenised once, batched as often as asked."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.encoders.inputs import check_texts

if TYPE_CHECKING:
    from diptych.encoders.pretrained_parts import PretrainedParts

__all__ = ["PretrainedInputs"]

logger = logging.getLogger(__name__)

_BLOCK = 4096


class PretrainedInputs:
    """Token ids of captions, cut to the model's limit, end to end.

    Args:
        encoder: whose tokenizer makes them and says how a batch is padded.
        texts: the captions.

    Raises:
        CaptionError: an item is not a text, or has no tokens.
    """

    def __init__(self, encoder: PretrainedParts, texts: Sequence[str]) -> None:
        self._encoder = encoder
        self._texts = check_texts(texts)
        flat: list[np.ndarray] = []
        lengths: list[int] = []
        for start in range(0, len(texts), _BLOCK):
            ids = encoder.token_ids(texts[start : start + _BLOCK], start)
            flat.append(np.concatenate(ids).astype(np.int32))
            lengths += map(len, ids)
        self._flat = np.concatenate(flat) if flat else np.empty(0, dtype=np.int32)
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self._shortened = False

    def batch(self, rows: np.ndarray, endings: Sequence[str] | None = None) -> tuple[Tensor, Tensor]:
        """(n, t) int64 padded token ids, and (n,) lengths.

        Args:
            rows: (n,) which captions.
            endings: (n,) what each ends with, read whole however long the caption; "" for nothing.
        """
        ids = [self._flat[self._starts[row] : self._starts[row + 1]] for row in rows.tolist()]
        ended = [place for place, ending in enumerate(endings or ()) if ending]
        if endings is not None and ended:
            found = self._ended(
                [self._texts[row] for row in rows[ended]], [endings[place] for place in ended]
            )
            for place, tokens in zip(ended, found, strict=True):
                ids[place] = tokens
        lengths = np.asarray([len(tokens) for tokens in ids], dtype=np.int64)
        padding, width = self._encoder.padding
        padded = np.full((len(ids), width or int(lengths.max())), padding, dtype=np.int64)
        for row, tokens in zip(padded, ids, strict=True):
            row[: len(tokens)] = tokens
        return torch.from_numpy(padded), torch.from_numpy(lengths)

    def _ended(self, texts: list[str], endings: list[str]) -> list[np.ndarray]:
        """Token ids of texts with their endings, none of which is cut."""
        whole = [f"{text} {ending}" for text, ending in zip(texts, endings, strict=True)]
        ids = self._encoder.token_ids(whole)
        limits = self._encoder.text_limit, self._encoder.characters or math.inf
        # Well below both limits nothing was cut; the others are looked at again. (One below: a last token
        # that is also what short texts are filled with is not among the ids.)
        full = [
            place
            for place, (text, tokens) in enumerate(zip(whole, ids, strict=True))
            if len(tokens) >= limits[0] - 1 or len(text) > limits[1]
        ]
        if not full:
            return ids
        again, cut = self._encoder.ended([texts[place] for place in full], [endings[place] for place in full])
        if cut and not self._shortened:
            self._shortened = True
            logger.warning("%d of %d captions of a batch are shortened for their endings", cut, len(texts))
        for place, tokens in zip(full, self._encoder.token_ids(again), strict=True):
            ids[place] = tokens
        return ids

    def augmented(
        self,
        rows: np.ndarray,
        unknown: float,
        deleted: float,
        seed: int,
        epoch: int,
        endings: Sequence[str] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Refused.

        Raises:
            UsageError: always: a tokenizer of parts of words has no unknown word.
        """
        raise UsageError(
            f"caption_augmentation (unknown {unknown}, deleted {deleted}) with another library's tokenizer, "
            "which knows no words",
            "leave caption_augmentation out",
        )
