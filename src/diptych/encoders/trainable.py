"""What training asks of an encoder: two sides that learn, and an encoder again of what they have learned.

An encoder made here and one of another library are trained by the same loop: each side is a module
that prepares what it takes and gives unit rows, under the names that a recipe's stages refer to.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import torch

from diptych.encoders.dual_encoder import DualEncoder

if TYPE_CHECKING:
    from diptych.encoders.bag_tower import BagTower
    from diptych.encoders.caption_tower import CaptionTower
    from diptych.encoders.image_tower import ImageTower
    from diptych.encoders.pretrained_towers import PretrainedImages, PretrainedTexts
    from diptych.encoders.region_tower import RegionTower
    from diptych.encoders.target_tower import TargetTower

    ImageSide: TypeAlias = ImageTower | RegionTower | PretrainedImages
    TextSide: TypeAlias = CaptionTower | TargetTower | BagTower | PretrainedTexts


class Towers(Protocol):
    """Both sides of a dual encoder as modules."""

    @property
    def image(self) -> ImageSide:
        """Prepares pictures (or region features) and gives their rows; its parameters are ``image.*``."""

    @property
    def text(self) -> TextSide:
        """Prepares captions and gives their rows; its parameters are ``text.*``."""


class TrainableEncoder(DualEncoder):
    """A dual encoder whose weights can be trained in place.

    Attributes:
        name: what reports call it.
    """

    name: str

    @abstractmethod
    def to(self, device: torch.device) -> None:
        """Move the weights to ``device``."""

    @property
    @abstractmethod
    def towers(self) -> Towers:
        """Its two sides, which share its weights: training them trains the encoder."""

    @property
    @abstractmethod
    def scoring(self) -> Literal["cosine", "order", "order-root"]:
        """What an objective scores rows with in training; see :func:`diptych.objectives.similarity_of`."""

    @property
    @abstractmethod
    def learned_options(self) -> dict[str, float]:
        """What an objective had learned when this was trained: ``temperature``, ``bias``, those it has."""

    @abstractmethod
    def as_trained(self, name: str, temperature: float | None, bias: float | None = None) -> DualEncoder:
        """An encoder of the same family with the weights of the moment, shared.

        Args:
            temperature, bias: the objective's, kept with the weights; None where it has none.
        """
