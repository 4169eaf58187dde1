"""Towers and projections of pretrained encoders, cut out so that they can be fine-tuned."""

from __future__ import annotations

import copy
import logging
import math
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from diptych.core.errors import CaptionError, UsageError
from diptych.data.overlay import OverlaidPicture, Overlay, split_overlay
from diptych.encoders.dual_encoder import TrainableEncoder
from diptych.encoders.inputs import as_picture, check_texts
from diptych.encoders.preprocessing import Augmentation, randomly_cut
from diptych.encoders.tower import unit_rows

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


_BLOCK = 4096


class PretrainedInputs:
    """Token ids of captions, cut to the model's limit, end to end."""

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
        """(n, t) int64 padded token ids, and (n,) lengths."""
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
        """Refused."""
        raise UsageError(
            f"caption_augmentation (unknown {unknown}, deleted {deleted}) with another library's tokenizer, "
            "which knows no words",
            "leave caption_augmentation out",
        )


class PretrainedImages(nn.Module):
    """The image side: pictures to unit rows.

    Attributes:
        backbone: empty: no part of the model is frozen unless a stage says so.
    """

    takes: ClassVar[Literal["pictures", "regions"]] = "pictures"

    def __init__(self, encoder: PretrainedParts, parts: Sequence[str]) -> None:
        super().__init__()
        self._encoder = encoder
        self.backbone = nn.Module()
        _share(self, encoder.model, parts)

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        """A picture as the library prepares it, (3, height, width) float32; see the encoder's own."""
        return self._encoder.prepare(item, position)

    def augmented(
        self, item: Any, position: int, augmentation: Augmentation, random: np.random.Generator
    ) -> np.ndarray:
        """The same of a random crop, perhaps flipped; what lies over the picture stays as it is."""
        if augmentation.erasing:
            raise UsageError(
                f"augmentation.erasing {augmentation.erasing} with another library's preprocessing",
                "leave it out: a crop and a flip can be had",
            )
        picture, overlay = split_overlay(item)
        cut = randomly_cut(as_picture(picture, position), augmentation, random)
        return self._encoder.prepare(cut if overlay is None else OverlaidPicture(cut, overlay), position)

    def describe(self) -> dict[str, Any]:
        return self._encoder.preprocessing()

    def features(self, pictures: Tensor) -> Tensor:
        """(n, 3, height, width) → (n, width) rows of any length."""
        return self._encoder.pixel_features(pictures)

    def project(self, features: Tensor) -> Tensor:
        """(n, width) rows → unit rows."""
        return unit_rows(features)

    def forward(self, pictures: Tensor) -> Tensor:
        """(n, 3, height, width) → (n, width) unit rows."""
        return self.project(self.features(pictures))


class PretrainedTexts(nn.Module):
    """The caption side: token ids to unit rows."""

    def __init__(self, encoder: PretrainedParts, parts: Sequence[str]) -> None:
        super().__init__()
        self._encoder = encoder
        _share(self, encoder.model, parts)

    def inputs(self, texts: Sequence[str]) -> PretrainedInputs:
        """``texts`` as token ids, ready to be batched."""
        return PretrainedInputs(self._encoder, texts)

    def describe(self) -> dict[str, Any]:
        return {"limit": self._encoder.text_limit, "characters": self._encoder.characters, "cut": "end"}

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, t) padded token ids and (n,) lengths → (n, width) unit rows."""
        return unit_rows(self._encoder.token_features(tokens, lengths.to(tokens.device)))


class PretrainedTowers:
    """Both sides of ``encoder``'s model."""

    def __init__(self, encoder: PretrainedParts) -> None:
        images, texts = encoder.sides()
        self.image = PretrainedImages(encoder, images)
        self.text = PretrainedTexts(encoder, texts)
        held = [*self.image.parameters(), *self.text.parameters()]
        ids = {id(parameter) for parameter in held}
        scales = {"logit_scale", "logit_bias", "temperature"}
        left = [
            name
            for name, parameter in encoder.model.named_parameters()
            if id(parameter) not in ids and name not in scales
        ]
        if left or len(ids) < len(held):
            what = (
                f"weights that are of neither side, e.g. {left[0]}"
                if left
                else "weights that both sides share"
            )
            raise UsageError(f"{encoder.name} has {what}", "it cannot be fine-tuned as two towers")


def _share(side: nn.Module, model: nn.Module, parts: Sequence[str]) -> None:
    """Register the model's ``parts``, modules or parameters, as the side's own."""
    for name in parts:
        part = getattr(model, name)
        if isinstance(part, nn.Parameter):
            side.register_parameter(name, part)
        else:
            side.add_module(name, part)
