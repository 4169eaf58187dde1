"""Both sides of a pretrained encoder as modules that share its weights, so that they can be fine-tuned."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from torch import Tensor, nn

from diptych.core.errors import UsageError
from diptych.data.images import OverlaidPicture
from diptych.encoders.inputs import check_texts, split_picture
from diptych.encoders.preprocessing import Augmentation, randomly_cut
from diptych.encoders.tower import Batch, CaptionInputs, Endings, pad_tokens, unit_rows

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
        self._ids: list[np.ndarray] = []
        for start in range(0, len(texts), _BLOCK):
            ids = encoder.token_ids(texts[start : start + _BLOCK], start)
            self._ids += [row.astype(np.int32) for row in ids]
        self.lengths = np.asarray([len(row) for row in self._ids], dtype=np.int64)
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


class _Side(nn.Module):
    """Some parts of the model, modules or parameters; ``backbone`` is empty: nothing is frozen by default."""

    def __init__(self, encoder: PretrainedEncoder, parts: Sequence[str]) -> None:
        super().__init__()
        self._encoder = encoder
        self.backbone = nn.Module()
        for name in parts:
            part = getattr(encoder.model, name)
            if isinstance(part, nn.Parameter):
                self.register_parameter(name, part)
            else:
                self.add_module(name, part)


class PretrainedImages(_Side):
    """The image side: images to unit rows."""

    takes: ClassVar[Literal["pictures", "regions"]] = "pictures"

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        return self._encoder.prepare(item, position)

    def augmented(
        self, item: Any, position: int, augmentation: Augmentation, random: np.random.Generator
    ) -> np.ndarray:
        """Prepare a random crop, perhaps flipped; what lies over the image stays as it is."""
        if augmentation.erasing:
            raise UsageError(
                f"augmentation.erasing {augmentation.erasing} with another library's preprocessing",
                "leave it out: a crop and a flip can be had",
            )
        picture, overlay = split_picture(item, position)
        cut = randomly_cut(picture, augmentation, random)
        return self._encoder.prepare(cut if overlay is None else OverlaidPicture(cut, overlay), position)

    def describe(self) -> dict[str, Any]:
        return self._encoder.preprocessing()

    def features(self, pictures: Tensor) -> Tensor:
        """(n, 3, height, width) → (n, width) rows of any length."""
        return self._encoder.pixel_features(pictures)

    def project(self, features: Tensor) -> Tensor:
        return unit_rows(features)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.project(self.features(pictures))


class PretrainedTexts(_Side):
    """The caption side: token ids to unit rows."""

    def inputs(self, texts: Sequence[str]) -> PretrainedInputs:
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
