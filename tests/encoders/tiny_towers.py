"""Untrained two-tower encoders, made from a seed."""

from __future__ import annotations

from typing import Any

import torch

from diptych.data.vocabulary import Vocabulary
from diptych.encoders.targets.contract import TargetModel
from diptych.encoders.two_tower import ModelConfig, TwoTowerEncoder, TwoTowerModel

PICTURES = {"backbone": "test_resnet", "preprocessing": {"size": 32, "resize": 32}}


def two_tower(source: Vocabulary | TargetModel, width: int = 8, **config: Any) -> TwoTowerEncoder:
    """The encoder of a model's configuration; its images are pictures where nothing else is given."""
    torch.manual_seed(0)
    model = TwoTowerModel(ModelConfig.model_validate({"width": width, "image": PICTURES, **config}), source)
    return TwoTowerEncoder(model, source, name="tiny")
