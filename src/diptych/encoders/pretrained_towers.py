"""Both sides of a pretrained encoder as modules that share its weights, so that they can be fine-tuned."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from diptych.core.errors import UsageError
from diptych.data.images import OverlaidPicture, split_overlay
from diptych.encoders.inputs import as_picture, check_texts
from diptych.encoders.preprocessing import Augmentation, randomly_cut
from diptych.encoders.tower import CaptionInputs, unit_rows

if TYPE_CHECKING:
    from diptych.encoders.pretrained import PretrainedEncoder

logger = logging.getLogger(__name__)

_BLOCK = 4096


class PretrainedInputs(CaptionInputs):
    """Token ids of captions, cut to the model's limit, end to end."""

    wordless = ("another library's tokenizer knows no words", "leave caption_augmentation out")

    def __init__(self, encoder: PretrainedEncoder, texts: Sequence[str]) -> None:
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
        whole, cut = self._encoder.ended(texts, endings)
        if cut and not self._shortened:
            self._shortened = True
            logger.warning("%d of %d captions of a batch are shortened for their endings", cut, len(texts))
        return self._encoder.token_ids(whole)


class PretrainedImages(nn.Module):
    """The image side: images to unit rows; ``backbone`` is empty: nothing is frozen unless a stage says so."""

    takes: ClassVar[Literal["pictures", "regions"]] = "pictures"

    def __init__(self, encoder: PretrainedEncoder, parts: Sequence[str]) -> None:
        super().__init__()
        self._encoder = encoder
        self.backbone = nn.Module()
        _share(self, encoder.model, parts)

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
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

    def __init__(self, encoder: PretrainedEncoder, parts: Sequence[str]) -> None:
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

    def __init__(self, encoder: PretrainedEncoder) -> None:
        images, texts = encoder.sides()
        self.image = PretrainedImages(encoder, images)
        self.text = PretrainedTexts(encoder, texts)
        held = [*self.image.parameters(), *self.text.parameters()]
        ids = {id(parameter) for parameter in held}
        scales = {"logit_scale", "logit_bias", "temperature"}
        named = encoder.model.named_parameters()
        left = [name for name, value in named if id(value) not in ids and name not in scales]
        if left or len(ids) < len(held):
            what = f"weights of neither side, e.g. {left[0]}" if left else "weights that both sides share"
            raise UsageError(f"{encoder.name} has {what}", "it cannot be fine-tuned as two towers")


def _share(side: nn.Module, model: nn.Module, parts: Sequence[str]) -> None:
    """Register the model's ``parts``, modules or parameters, as the side's own."""
    for name in parts:
        part = getattr(model, name)
        if isinstance(part, nn.Parameter):
            side.register_parameter(name, part)
        else:
            side.add_module(name, part)
