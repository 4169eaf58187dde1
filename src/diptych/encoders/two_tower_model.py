"""Two towers with one output space as a recipe says them and as one module."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from torch import nn

from diptych.core.errors import MismatchError
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.bag_tower import BagTower, BagTowerConfig
from diptych.encoders.caption_tower import CaptionTower, CaptionTowerConfig
from diptych.encoders.image_tower import ImageTower, ImageTowerConfig
from diptych.encoders.region_tower import RegionTower, RegionTowerConfig
from diptych.encoders.target_tower import TargetTower, TargetTowerConfig
from diptych.encoders.targets.contract import TargetModel
from diptych.encoders.tower import ProjectionConfig, choose_kind

CaptionSource: TypeAlias = Vocabulary | TargetModel
"""What turns a caption into numbers: the words a GRU or bag tower knows, or a target tower's model."""


class ModelConfig(BaseModel):
    """What a two-tower model is made of.

    Attributes:
        width: d, the length of a row in the shared space.
        image: the image tower: ``kind = "pictures"`` (a backbone) or ``"regions"`` (VSRN).
        text: the caption tower: ``kind = "gru"``, ``"targets"`` (a sentence encoder's vectors) or ``"bag"``
            (words without their order).
        projection: a non-linear projection on both towers; none when not given.
        similarity: ``cosine``; ``order``: rows without signs, scored by order violation (Vendrov et
            al., Order-Embeddings of Images and Language, ICLR 2016); ``order-root`` trains on the root
            of the violation, as VSE++'s published code does, and ranks as ``order``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int = Field(1024, ge=2)
    image: Annotated[
        ImageTowerConfig | RegionTowerConfig,
        BeforeValidator(choose_kind(ImageTowerConfig, RegionTowerConfig)),
    ] = ImageTowerConfig()
    text: Annotated[
        CaptionTowerConfig | TargetTowerConfig | BagTowerConfig,
        BeforeValidator(choose_kind(CaptionTowerConfig, TargetTowerConfig, BagTowerConfig)),
    ] = CaptionTowerConfig()
    projection: ProjectionConfig | None = None
    similarity: Literal["cosine", "order", "order-root"] = "cosine"


class TwoTowerModel(nn.Module):
    """Both towers as one module: ``image`` and ``text``."""

    def __init__(self, config: ModelConfig, source: CaptionSource, load_weights: bool = True) -> None:
        super().__init__()
        self.config = config
        projection, absolute = config.projection, config.similarity != "cosine"
        self.image: ImageTower | RegionTower
        self.text: CaptionTower | TargetTower | BagTower
        if isinstance(config.image, RegionTowerConfig):
            self.image = RegionTower(
                config.image, config.width, load_weights, projection=projection, absolute=absolute
            )
        else:
            self.image = ImageTower(
                config.image, config.width, load_weights, projection=projection, absolute=absolute
            )
        if isinstance(config.text, TargetTowerConfig):
            if isinstance(source, Vocabulary):
                raise MismatchError(
                    f"a target tower takes a target model, got a vocabulary of {len(source)} words",
                    "make one with make_target_model",
                )
            self.text = TargetTower(
                config.text, config.width, source, load_weights, projection=projection, absolute=absolute
            )
        elif not isinstance(source, Vocabulary):
            raise MismatchError(
                f"a tower of words takes a vocabulary, got a {type(source).__name__}",
                "build one with Vocabulary.build, or set model.text.kind = 'targets'",
            )
        elif isinstance(config.text, BagTowerConfig):
            self.text = BagTower(
                config.text, config.width, source, load_weights, projection=projection, absolute=absolute
            )
        else:
            self.text = CaptionTower(
                config.text, config.width, source, load_weights, projection=projection, absolute=absolute
            )
