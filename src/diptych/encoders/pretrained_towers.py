"""The two sides of another library's model, as training takes them.

A side registers its part of the library's own modules, so that parameters have the library's names
under ``image.`` and ``text.``, and computes what the encoder computes; nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from torch import Tensor, nn

from diptych.core.errors import UsageError
from diptych.data.overlay import OverlaidPicture, split_overlay
from diptych.encoders.heads import unit_rows
from diptych.encoders.inputs import as_picture
from diptych.encoders.preprocessing import Augmentation, randomly_cut
from diptych.encoders.pretrained_inputs import PretrainedInputs

if TYPE_CHECKING:
    from diptych.encoders.pretrained_parts import PretrainedParts

__all__ = ["PretrainedImages", "PretrainedTexts", "PretrainedTowers"]


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
        """The same of a random crop, perhaps flipped; what lies over the picture stays as it is.

        Raises:
            UsageError: erasing, for which the model's preprocessing has no place.
        """
        if augmentation.erasing:
            raise UsageError(
                f"augmentation.erasing {augmentation.erasing} with another library's preprocessing",
                "leave it out: a crop and a flip can be had",
            )
        picture, overlay = split_overlay(item)
        cut = randomly_cut(as_picture(picture, position), augmentation, random)
        return self._encoder.prepare(cut if overlay is None else OverlaidPicture(cut, overlay), position)

    def describe(self) -> dict[str, Any]:
        """What a number depends on: the library's preprocessing."""
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
        """What a number depends on: the longest text."""
        return {"limit": self._encoder.text_limit, "characters": self._encoder.characters, "cut": "end"}

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, t) padded token ids and (n,) lengths → (n, width) unit rows."""
        return unit_rows(self._encoder.token_features(tokens, lengths.to(tokens.device)))


class PretrainedTowers:
    """Both sides of ``encoder``'s model.

    Raises:
        UsageError: parts of the model that are of neither side, or weights that both share.
    """

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
