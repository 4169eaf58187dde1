"""What training and shortcuts ask of another library's model, apart from its rows.

Pixels with something pasted on them, token ids with an ending that is never cut, the two sides of the
model, and its temperature.
"""

from __future__ import annotations

import copy
import logging
import math
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch

from diptych.core.errors import CaptionError
from diptych.data.overlay import Overlay, split_overlay
from diptych.encoders.inputs import as_picture
from diptych.encoders.pretrained_towers import PretrainedTowers
from diptych.encoders.trainable import TrainableEncoder

_WORD = re.compile(r"\S+")


def shortened(text: str, ending: str, fits: Callable[[str], bool]) -> str:
    """``text + " " + ending`` with as many of the text's first words as fit.

    A first word that does not fit whole (a script without spaces) is cut inside.

    >>> shortened("two dogs run", "0 1", lambda text: len(text) <= 12)
    'two dogs 0 1'
    """

    def joined(letters: int) -> str:
        kept = text[:letters]
        return f"{kept} {ending}" if kept.strip() else ending

    if not fits(ending):
        raise CaptionError(
            f"the ending {ending!r} is longer than all that the encoder reads of a text",
            "choose a shorter ending, or an encoder of longer texts",
        )
    ends = [0, *(word.end() for word in _WORD.finditer(text))]
    letters = ends[_last(len(ends), lambda number: fits(joined(ends[number])))]
    if letters == 0 and len(ends) > 1:
        letters = _last(ends[1], lambda number: fits(joined(number)))
    return joined(letters)


def _last(count: int, holds: Callable[[int], bool]) -> int:
    """The last of the numbers below ``count`` that holds, where 0 does and every one before the last does."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


logger = logging.getLogger(__name__)


class PretrainedParts(TrainableEncoder):
    """Another library's model, taken apart.

    Attributes:
        prefix: what stands before every text, after its characters were cut: ``"a photo of a "``; empty for
            nothing.
        texts_seen: how many texts were encoded since loading.
        texts_cut: how many of them were longer than ``text_limit`` tokens or ``characters``.
        texts_shortened: how many texts were shortened for the sake of their endings.
    """

    def __init__(self, model: torch.nn.Module, name: str, text_limit: int, characters: int | None) -> None:
        self.model: Any = model
        self.name = name
        self.text_limit = text_limit
        self.characters = characters
        self.prefix = ""
        self.texts_seen = 0
        self.texts_cut = 0
        self.texts_shortened = 0
        # Tokenizers remember the last call's length and padding: one thread at a time.
        self._tokenizing = threading.Lock()

    @abstractmethod
    def _pixels(self, picture: Any, overlay: Overlay | None) -> np.ndarray:
        """(3, height, width) float32 of an RGB picture, the overlay pasted before normalisation."""

    @abstractmethod
    def pixel_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """(n, 3, height, width) prepared pictures → (n, d) rows of any length."""

    @abstractmethod
    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        """Token ids of each text, cut to the limit, with special tokens, without padding."""

    @property
    @abstractmethod
    def padding(self) -> tuple[int, int | None]:
        """The token id that short texts are filled with, and to which length; None for the batch's longest."""

    @abstractmethod
    def token_features(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """(n, t) padded token ids and (n,) lengths → (n, d) rows of any length."""

    @abstractmethod
    def sides(self) -> tuple[list[str], list[str]]:
        """The names of the model's parts that belong to pictures, and of those that belong to texts."""

    @abstractmethod
    def _token_counts(self, texts: list[str]) -> list[int]:
        """Tokens of each text with the special ones; any number above the limit if it is above."""

    @abstractmethod
    def preprocessing(self) -> dict[str, Any]:
        """What happens to a picture before the model, as JSON-able values."""

    def _copy(self) -> Self:
        """The same model and tokenizer, nothing counted yet; what is known of its content is kept."""
        other = copy.copy(self)
        other.__dict__.pop("fingerprint", None)
        other.texts_seen = other.texts_cut = other.texts_shortened = 0
        return other

    @property
    def towers(self) -> PretrainedTowers:
        """Both sides as modules that share the model's weights; training mode is theirs to set."""
        return PretrainedTowers(self)

    @property
    def scoring(self) -> Literal["cosine"]:
        """The cosine."""
        return "cosine"

    @property
    def learned_options(self) -> dict[str, float]:
        """The model's temperature, and its bias where it has one."""
        model = self.model
        kept = hasattr(model, "temperature")  # ALIGN keeps the temperature itself
        learned = {"temperature": float(model.temperature) if kept else math.exp(-float(model.logit_scale))}
        if getattr(model, "logit_bias", None) is not None:
            learned["bias"] = float(model.logit_bias)
        return learned

    @torch.no_grad()
    def as_trained(self, name: str, temperature: float | None, bias: float | None = None) -> Self:
        """The same model under another name, with the objective's temperature and bias as its own."""
        other = self._copy()
        other.__dict__.pop("_weights", None)
        other.name = name
        if temperature is not None:
            if hasattr(self.model, "temperature"):
                self.model.temperature.fill_(temperature)
            else:
                self.model.logit_scale.fill_(-math.log(temperature))
        if bias is not None and getattr(self.model, "logit_bias", None) is not None:
            self.model.logit_bias.fill_(bias)
        return other

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        """A picture, with or without an overlay, as (3, height, width) float32."""
        picture, overlay = split_overlay(item)
        return self._pixels(as_picture(picture, position), overlay)

    def token_ids(self, texts: Sequence[str], first: int = 0) -> list[np.ndarray]:
        """Token ids of each text, cut to the limits, with special tokens, without padding."""
        kept = [self._read(text) for text in texts]
        with self._tokenizing:
            ids = self._ids(kept)
        for place, tokens in enumerate(ids):
            if not len(tokens):
                raise CaptionError(f"text {first + place} ({kept[place]!r}) has no tokens")
        return ids

    def with_endings(self, texts: Sequence[str], endings: Sequence[str]) -> list[str]:
        """``text + " " + ending`` for each pair; a text whose ending would be cut loses its last words.

        How many did is logged and counted in ``texts_shortened``.
        """
        ended, cut = self.ended(texts, endings)
        if cut:
            logger.warning("%d of %d texts were shortened for their endings", cut, len(ended))
        return ended

    def ended(self, texts: Sequence[str], endings: Sequence[str]) -> tuple[list[str], int]:
        """As :meth:`with_endings`, and how many texts were shortened, without logging it."""
        whole = super().with_endings(texts, endings)
        asked = [place for place, ending in enumerate(endings) if ending]
        cut = 0
        with self._tokenizing:
            counts = self._token_counts([self.prefix + whole[place] for place in asked]) if asked else []
            for place, count in zip(asked, counts, strict=True):
                if count > self.text_limit or len(whole[place]) > (self.characters or math.inf):
                    whole[place] = shortened(texts[place], endings[place], self._is_read)
                    cut += 1
            self.texts_shortened += cut
        return whole, cut

    def _read(self, text: str) -> str:
        """What is tokenised of a text: its first characters, after the prefix."""
        return self.prefix + text[: self.characters]

    def _is_read(self, text: str) -> bool:
        """Whether all of a text is read."""
        whole = self._token_counts([self.prefix + text])[0] <= self.text_limit
        return len(text) <= (self.characters or math.inf) and whole
