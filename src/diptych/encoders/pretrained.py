"""Adapters to other libraries' models: batches, limits, counts, the fingerprint, and towers to fine-tune."""

from __future__ import annotations

import bisect
import copy
import logging
import math
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch

from diptych.core.context import task
from diptych.core.errors import CaptionError, MismatchError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.images import OverlaidPicture
from diptych.encoders.dual_encoder import Positions, Towers, TrainableEncoder, unit_rows
from diptych.encoders.inputs import as_picture, check_texts, pick_device, split_picture, weights_fingerprint
from diptych.encoders.preprocessing import Augmentation, randomly_cut
from diptych.encoders.tower import Batch, CaptionInputs, Endings, pad_tokens
from diptych.encoders.tower import unit_rows as unit_tensors
from diptych.metrics.products import EPSILON

if TYPE_CHECKING:
    from diptych.encoders.two_stage import Cleaning

logger: logging.Logger = logging.getLogger(__name__)

_BLOCK = 4096  # captions whose token ids are made together
_BATCHES_PER_BLOCK = 16  # tokenised and sorted by length at a time, so that memory is bounded

_WORD = re.compile(r"\S+")
_TOKENIZING = threading.Lock()  # tokenizers remember the last call's length and padding: one thread at a time


def shortened(text: str, ending: str, fits: Callable[[str], bool]) -> str:
    """Return ``text + " " + ending`` with as many of the text's first words as fit.

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
    if letters == 0 and len(ends) > 1:  # a script without spaces: cut inside the first word
        letters = _last(ends[1], lambda number: fits(joined(number)))
    return joined(letters)


def _last(count: int, holds: Callable[[int], bool]) -> int:
    """Return the last number below ``count`` that holds, where 0 and every number before it do."""
    return bisect.bisect_left(range(1, count), True, key=lambda number: not holds(number))


class PretrainedEncoder(TrainableEncoder):
    """Another library's model behind :class:`DualEncoder`, in float32, frozen unless fine-tuned through its towers."""

    _pixels: Any  # RGB image and overlay, pasted before normalisation → (3, height, width) float32
    tokenizer: Any
    cleaning: Cleaning | None = None  # of texts before they are tokenised

    def __init__(
        self,
        model: torch.nn.Module,
        name: str,
        text_limit: int,
        *,
        device: str | None = None,
        characters: int | None = None,
        prefix: str = "",
    ) -> None:
        self.device: torch.device = pick_device(device)
        self.model: Any = model.eval().requires_grad_(False).to(self.device)
        self.name: str = name
        self.prefix: str = prefix
        self.text_limit: int = text_limit
        self.characters: int | None = characters

    @abstractmethod
    def pixel_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map (n, 3, height, width) preprocessed images → (n, d) rows of any length."""

    def _tokenised(self, texts: list[str], limit: int) -> list[list[int]]:
        cleaned = [self.cleaning(text) for text in texts] if self.cleaning else texts
        return self.tokenizer(cleaned, truncation=True, max_length=limit)["input_ids"]  # type: ignore[no-any-return]

    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        return [np.asarray(row, dtype=np.int64) for row in self._tokenised(texts, self.text_limit)]

    def _token_counts(self, texts: list[str]) -> list[int]:
        """Count the tokens of each text with the special ones; any number above the limit if it is above."""
        counts = [len(ids) for ids in self._tokenised(texts, self.text_limit + 1)]
        return self.cleaning.counts(texts, counts, self.text_limit) if self.cleaning else counts

    @property
    @abstractmethod
    def padding(self) -> tuple[int, int | None, bool]:
        """Return with which token id short texts are filled, to which length (None: the longest's), whether before."""

    @abstractmethod
    def token_features(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Map (n, t) padded token ids and (n,) lengths → (n, d) rows of any length."""

    @abstractmethod
    def sides(self) -> tuple[list[str], list[str]]:
        """Return the names of the model's parts that belong to images, and of those that belong to texts."""

    @abstractmethod
    def preprocessing(self) -> dict[str, Any]:
        """Describe what happens to an image before the model, as JSON-able values."""

    def _copy(self, **changes: Any) -> Self:
        other = copy.copy(self)
        for name in ("fingerprint", "loaded_from"):  # of what it was before the changes
            other.__dict__.pop(name, None)
        other.__dict__.update(changes)
        return other

    @property
    def towers(self) -> Towers:
        images, texts = self.sides()
        towers = Towers(PretrainedImages(self, images), PretrainedTexts(self, texts))
        held = [parameter for side in towers for parameter in side.parameters()]
        ids = {id(parameter) for parameter in held}
        scales = {"logit_scale", "logit_bias", "temperature"}
        named = self.model.named_parameters()
        left = [name for name, value in named if id(value) not in ids and name not in scales]
        if left or len(ids) < len(held):
            what = f"weights of neither side, e.g. {left[0]}" if left else "weights that both sides share"
            raise UsageError(f"{self.name} has {what}", "it cannot be fine-tuned as two towers")
        return towers

    @property
    def learned_options(self) -> dict[str, float]:
        model = self.model
        kept = hasattr(model, "temperature")  # ALIGN keeps the temperature itself
        learned = {"temperature": float(model.temperature) if kept else math.exp(-float(model.logit_scale))}
        if getattr(model, "logit_bias", None) is not None:
            learned["bias"] = float(model.logit_bias)
        return learned

    @torch.no_grad()
    def as_trained(self, name: str, temperature: float | None, bias: float | None = None) -> Self:
        other = self._copy(name=name)
        other.__dict__.pop("_weights", None)
        if temperature is not None:
            if hasattr(self.model, "temperature"):
                self.model.temperature.fill_(temperature)
            else:
                self.model.logit_scale.fill_(-math.log(temperature))
        if bias is not None and getattr(self.model, "logit_bias", None) is not None:
            self.model.logit_bias.fill_(bias)
        return other

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        """Return an image, with or without an overlay, as (3, height, width) float32."""
        return np.asarray(self._pixels(*split_picture(item, position)))

    def token_ids(self, texts: Sequence[str], first: int = 0) -> list[np.ndarray]:
        """Return token ids of each text, cut to the limits, with special tokens, without padding."""
        kept = [self._read(text) for text in texts]
        with _TOKENIZING:
            ids = self._ids(kept) if kept else []
        _check_read(kept, [len(tokens) for tokens in ids], first)
        return ids

    def with_endings(self, texts: Sequence[str], endings: Sequence[str]) -> list[str]:
        ended, cut = self.ended(texts, endings)
        if cut:
            logger.warning("%d of %d texts were shortened for their endings", cut, len(ended))
        return ended

    def ended(self, texts: Sequence[str], endings: Sequence[str]) -> tuple[list[str], int]:
        """Return what :meth:`with_endings` does, and how many texts were shortened, without logging it."""
        whole = super().with_endings(texts, endings)
        with_ending = [place for place, ending in enumerate(endings) if ending]
        cut = 0
        with _TOKENIZING:
            whole_fits = self._fit([whole[place] for place in with_ending])
            for place, fits in zip(with_ending, whole_fits, strict=True):
                if not fits:
                    whole[place] = shortened(texts[place], endings[place], lambda text: self._fit([text])[0])
                    cut += 1
        return whole, cut

    def _read(self, text: str) -> str:
        """Return what is tokenised of a text: its first characters, after the prefix."""
        return self.prefix + text[: self.characters]

    def _fit(self, texts: list[str]) -> list[bool]:
        """Return whether all of each text is read."""
        counts = self._token_counts([self.prefix + text for text in texts]) if texts else []
        most = self.characters or math.inf
        return [
            count <= self.text_limit and len(text) <= most for text, count in zip(texts, counts, strict=True)
        ]

    def prepared_features(self, prepared: Sequence[Any]) -> torch.Tensor:
        """Return (batch, d) rows of any length, of what :meth:`prepared` gave."""
        return self.pixel_features(torch.from_numpy(np.stack(prepared)).to(self.device))

    def _text_features(self, texts: list[str]) -> torch.Tensor:
        tokens, lengths = pad_tokens(self._ids(texts), *self.padding)
        return self.token_features(tokens.to(self.device), lengths.to(self.device))

    @abstractmethod
    def _content(self) -> list[Any]:
        """Return what else than weights and preprocessing decides a row: configuration, tokenizer."""

    @abstractmethod
    def _about_model(self) -> dict[str, Any]:
        """Return the adapter's own part of the metadata."""

    def cut_texts_at(self, characters: int | None) -> Self:
        """Return the same model cutting texts to ``characters`` first: another fingerprint, shared weights."""
        if characters is not None and characters < 1:
            raise UsageError(f"texts cannot be cut to {characters} characters", "give 1 or more")
        return self._copy(characters=characters)

    def prefix_texts_with(self, prefix: str) -> Self:
        """Return the same model reading ``prefix`` before every text, after the cut: another fingerprint.

        Published evaluations of CLIP begin captions with ``"a photo of a "``.
        """
        check_texts([prefix])
        return self._copy(prefix=prefix)

    def to(self, device: torch.device) -> None:
        self.model.to(device)
        self.device = device

    @cached_property
    def width(self) -> int:
        with torch.inference_mode():
            return int(self._text_features(["a"]).shape[1])

    @cached_property
    def _weights(self) -> str:
        return weights_fingerprint(self.model.state_dict())

    @cached_property
    def fingerprint(self) -> str:
        text = [self.text_limit, self.characters, *([self.prefix] if self.prefix else [])]
        return fingerprint(self.family, self._weights, self.preprocessing(), text, self._content())

    def _settings(self) -> dict[str, Any]:
        return {"name": self.name, "characters": self.characters} | self._prefixed

    def _about(self) -> dict[str, Any]:
        text = {"limit": self.text_limit, "unit": "tokens", "characters": self.characters} | self._prefixed
        about = self._about_model()
        about["text"] = text | about.get("text", {})
        normalisation = f"rows divided by max(Euclidean length, {EPSILON:g})"
        return {
            "image": self.preprocessing(),
            **about,
            "normalisation": normalisation,
            "precision": "float32",
        }

    @property
    def _prefixed(self) -> dict[str, str]:
        return {"prefix": self.prefix} if self.prefix else {}

    @property
    def prepares(self) -> bool:
        return True

    def prepared(self, item: Any, position: int | str) -> Any:
        if self.prepares or isinstance(item, OverlaidPicture):
            return self.prepare(item, position)
        return as_picture(item, position)

    @torch.inference_mode()
    def encode_prepared(self, prepared: Sequence[Any], positions: Positions) -> np.ndarray:
        self.model.eval()
        features = self.prepared_features(prepared).float().cpu().numpy()
        if features.shape != (len(prepared), self.width):
            raise MismatchError(
                f"{self.name} gives images rows of shape {features.shape}, texts of width {self.width}",
                "the model's two sides do not share a space: it is no dual encoder",
            )
        return unit_rows(features, "image", positions)

    @torch.inference_mode()
    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        if batch_size < 1:
            raise UsageError(f"batch_size must be 1 or more, got {batch_size}")
        texts = check_texts(texts)
        self.model.eval()
        rows = np.empty((len(texts), self.width), dtype=np.float32)
        cut = 0
        block = batch_size * _BATCHES_PER_BLOCK
        with task("encoding texts", len(texts), "texts") as bar:
            for start in range(0, len(texts), block):
                whole = list(texts[start : start + block])
                kept = [self._read(text) for text in whole]
                counts = np.asarray(self._token_counts(kept))
                _check_read(kept, counts, start)
                shortened = np.array([len(text) for text in whole]) > (self.characters or np.inf)
                cut += int(np.count_nonzero(shortened | (counts > self.text_limit)))
                order = np.argsort(counts, kind="stable")
                for low in range(0, len(order), batch_size):
                    chosen = order[low : low + batch_size]
                    features = self._text_features([kept[row] for row in chosen]).float().cpu().numpy()
                    rows[start + chosen] = unit_rows(features, "text", start + chosen)
                    bar.advance(len(chosen))
        if cut:
            characters = f" or {self.characters} characters" if self.characters else ""
            limit = f"{self.text_limit} tokens{characters}"
            logger.warning("%d of %d texts were longer than %s and were cut", cut, len(texts), limit)
        return rows


def _check_read(texts: Sequence[str], counts: Sequence[int] | np.ndarray, first: int) -> None:
    for place, (text, count) in enumerate(zip(texts, counts, strict=True), first):
        if not count:
            raise CaptionError(f"text {place} ({text!r}) has no tokens")


class PretrainedInputs(CaptionInputs):
    wordless: ClassVar[tuple[str, str]] = (
        "another library's tokenizer knows no words",
        "leave caption_augmentation out",
    )

    def __init__(self, encoder: PretrainedEncoder, texts: Sequence[str]) -> None:
        self._encoder = encoder
        self._texts = check_texts(texts)
        self._ids: list[np.ndarray] = []
        for start in range(0, len(texts), _BLOCK):
            ids = encoder.token_ids(texts[start : start + _BLOCK], start)
            self._ids += [row.astype(np.int32) for row in ids]
        self.lengths: np.ndarray = np.asarray([len(row) for row in self._ids], dtype=np.int64)
        self._shortened = False

    def batch(self, rows: np.ndarray, endings: Endings = None) -> Batch:
        ids = [self._ids[row] for row in rows.tolist()]
        ended = [place for place, ending in enumerate(endings or ()) if ending]
        if endings is not None and ended:
            texts = [self._texts[row] for row in rows[ended]]
            whole, cut = self._encoder.ended(texts, [endings[place] for place in ended])
            if cut and not self._shortened:
                self._shortened = True
                logger.warning(
                    "%d of %d captions of a batch are shortened for their endings", cut, len(texts)
                )
            for place, tokens in zip(ended, self._encoder.token_ids(whole), strict=True):
                ids[place] = tokens
        return pad_tokens(ids, *self._encoder.padding)


class _Side(torch.nn.Module):
    """Some parts of the model, modules or parameters; ``backbone`` is empty: nothing is frozen by default."""

    def __init__(self, encoder: PretrainedEncoder, parts: Sequence[str]) -> None:
        super().__init__()
        self._encoder = encoder
        self.backbone: torch.nn.Module = torch.nn.Module()
        for name in parts:
            part = getattr(encoder.model, name)
            if isinstance(part, torch.nn.Parameter):
                self.register_parameter(name, part)
            else:
                self.add_module(name, part)


class PretrainedImages(_Side):
    takes: ClassVar[Literal["pictures", "regions"]] = "pictures"

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        return self._encoder.prepare(item, position)

    def augmented(
        self, item: Any, position: int, augmentation: Augmentation, random: np.random.Generator
    ) -> np.ndarray:
        """Prepare a random crop, perhaps flipped; what lies over the image stays as it is."""
        picture, overlay = split_picture(item, position)
        cut = randomly_cut(picture, augmentation, random)
        return self._encoder.prepare(cut if overlay is None else OverlaidPicture(cut, overlay), position)

    def describe(self) -> dict[str, Any]:
        return self._encoder.preprocessing()

    def features(self, pictures: torch.Tensor) -> torch.Tensor:
        """Map (n, 3, height, width) → (n, width) rows of any length."""
        return self._encoder.pixel_features(pictures)

    def project(self, features: torch.Tensor) -> torch.Tensor:
        return unit_tensors(features)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.project(self.features(pictures))


class PretrainedTexts(_Side):
    def inputs(self, texts: Sequence[str]) -> PretrainedInputs:
        return PretrainedInputs(self._encoder, texts)

    def describe(self) -> dict[str, Any]:
        return {"limit": self._encoder.text_limit, "characters": self._encoder.characters, "cut": "end"}

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Map (n, t) padded token ids and (n,) lengths → (n, width) unit rows."""
        return unit_tensors(self._encoder.token_features(tokens, lengths.to(tokens.device)))
