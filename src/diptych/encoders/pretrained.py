"""What the adapters to foreign models share: batches, limits, counts and the fingerprint."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch

from diptych.core.context import task, track
from diptych.core.errors import CaptionError, MismatchError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.data.loading import batched
from diptych.data.overlay import OverlaidPicture
from diptych.encoders.dual_encoder import unit_rows
from diptych.encoders.inputs import as_picture, check_texts
from diptych.encoders.pretrained_towers import PretrainedParts
from diptych.metrics.products import EPSILON

logger = logging.getLogger(__name__)

_BATCHES_PER_BLOCK = 16
"""Texts are tokenised and sorted by length this many batches at a time, so that memory is bounded."""


def pick_device(device: str | None) -> torch.device:
    """The device called ``device``, or the GPU where there is one, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"device {device!r} cannot be used: {reason}", "try cpu or cuda") from None
    return chosen


class PretrainedEncoder(PretrainedParts):
    """A foreign model behind :class:`DualEncoder`, frozen unless it is fine-tuned through its towers.

    Args:
        model: the library's model; encodes in evaluation mode, in float32.
    """

    def __init__(
        self, model: torch.nn.Module, name: str, text_limit: int, device: str | None, characters: int | None
    ) -> None:
        self.device = pick_device(device)
        super().__init__(model.eval().requires_grad_(False).to(self.device), name, text_limit, characters)

    def _image_features(self, pictures: list[Any]) -> torch.Tensor:
        """(batch, d) rows of RGB ``pictures``, of any length, without :meth:`prepare`.

        Only asked of models that need more than pixels of one shape (where :attr:`prepares` is false).
        """
        raise NotImplementedError(f"{type(self).__name__} prepares pictures one by one")

    @abstractmethod
    def _text_features(self, texts: list[str]) -> torch.Tensor:
        """(batch, d) rows of ``texts``, cut to the limit, of any length."""

    @abstractmethod
    def _content(self) -> list[Any]:
        """What else than weights and preprocessing decides a row: configuration, tokenizer."""

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """The adapter's own part of :meth:`describe`."""

    def cut_texts_at(self, characters: int | None) -> Self:
        """The same model cutting texts to ``characters`` first; another fingerprint, shared weights."""
        if characters is not None and characters < 1:
            raise UsageError(f"texts cannot be cut to {characters} characters", "give 1 or more")
        other = self._copy()
        other.characters = characters
        return other

    def prefix_texts_with(self, prefix: str) -> Self:
        """The same model reading ``prefix`` before every text, after the cut to characters.

        Another fingerprint, shared weights; the prefix counts among the model's tokens. Published evaluations
        of CLIP begin captions with ``"a photo of a "``.
        """
        check_texts([prefix])
        other = self._copy()
        other.prefix = prefix
        return other

    def to(self, device: torch.device) -> None:
        self.model.to(device)
        self.device = device

    @cached_property
    def width(self) -> int:
        with torch.inference_mode():
            return int(self._text_features(["a"]).shape[1])

    @cached_property
    def _weights(self) -> str:
        return fingerprint_arrays({name: value.cpu() for name, value in self.model.state_dict().items()})

    @cached_property
    def fingerprint(self) -> str:
        text = [self.text_limit, self.characters, *([self.prefix] if self.prefix else [])]
        return fingerprint(self.family, self._weights, self.preprocessing(), text, self._content())

    def _settings(self) -> dict[str, Any]:
        settings = {"name": self.name, "characters": self.characters}
        return settings | ({"prefix": self.prefix} if self.prefix else {})

    def describe(self) -> dict[str, Any]:
        text = {"limit": self.text_limit, "unit": "tokens", "characters": self.characters}
        about = self._about()
        text |= {"prefix": self.prefix} if self.prefix else {}
        about["text"] = text | about.get("text", {})
        return {
            "family": self.family,
            "name": self.name,
            "width": self.width,
            "image": self.preprocessing(),
            **about,
            "normalisation": f"rows divided by max(Euclidean length, {EPSILON:g})",
            "precision": "float32",
            "fingerprint": self.fingerprint,
        }

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        """Encode Pillow pictures, with or without overlays, or (height, width, 3) uint8 arrays to (n, d)
        float32 unit rows."""
        _check_batch_size(batch_size)
        rows: list[np.ndarray] = []
        done = 0
        for batch in batched(track(images, "encoding images", unit="images"), batch_size):
            positions = range(done, done + len(batch))
            prepared = [
                self.prepared(item, position) for position, item in zip(positions, batch, strict=True)
            ]
            rows.append(self.encode_prepared(prepared, positions))
            done += len(batch)
        return np.concatenate(rows) if rows else np.empty((0, self.width), dtype=np.float32)

    @property
    def prepares(self) -> bool:
        return True

    def prepared(self, item: Any, position: int | str) -> Any:
        if self.prepares or isinstance(item, OverlaidPicture):
            return self.prepare(item, position)
        return as_picture(item, position)

    @torch.inference_mode()
    def encode_prepared(
        self, prepared: Sequence[Any], positions: Sequence[int] | Sequence[str]
    ) -> np.ndarray:
        self.model.eval()
        if self.prepares:
            pixels = torch.from_numpy(np.stack(prepared)).to(self.device)
            features = self.pixel_features(pixels).float().cpu().numpy()
        else:
            features = self._image_features(list(prepared)).float().cpu().numpy()
        if features.shape != (len(prepared), self.width):
            raise MismatchError(
                f"{self.name} gives images rows of shape {features.shape}, texts of width {self.width}",
                "the model's two sides do not share a space: it is no dual encoder",
            )
        return unit_rows(features, "image", positions)

    @torch.inference_mode()
    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        _check_batch_size(batch_size)
        check_texts(texts)
        self.model.eval()
        rows = np.empty((len(texts), self.width), dtype=np.float32)
        cut = 0
        block = batch_size * _BATCHES_PER_BLOCK
        with task("encoding texts", len(texts), "texts") as bar:
            for start in range(0, len(texts), block):
                whole = list(texts[start : start + block])
                kept = [self._read(text) for text in whole]
                counts = np.asarray(self._token_counts(kept))
                if not counts.all():
                    empty = int(np.flatnonzero(counts == 0)[0])
                    raise CaptionError(f"text {start + empty} ({kept[empty]!r}) has no tokens")
                shortened = np.array([len(text) for text in whole]) > (self.characters or np.inf)
                cut += int(np.count_nonzero(shortened | (counts > self.text_limit)))
                order = np.argsort(counts, kind="stable")
                for low in range(0, len(order), batch_size):
                    chosen = order[low : low + batch_size]
                    features = self._text_features([kept[row] for row in chosen]).float().cpu().numpy()
                    rows[start + chosen] = unit_rows(features, "text", start + chosen)
                    bar.advance(len(chosen))
        self.texts_seen += len(texts)
        self.texts_cut += cut
        if cut:
            limit = f"{self.text_limit} tokens" + (
                f" or {self.characters} characters" if self.characters else ""
            )
            logger.warning("%d of %d texts were longer than %s and were cut", cut, len(texts), limit)
        return rows


def _check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise UsageError(f"batch_size must be 1 or more, got {batch_size}")
