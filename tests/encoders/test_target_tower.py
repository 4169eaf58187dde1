from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from refusals import refused
from torch import nn

from diptych.core.errors import UsageError
from diptych.encoders.caption_tower import TargetTower, TargetTowerConfig
from diptych.encoders.targets.contract import TargetModel, TargetOptions, make_target_model
from diptych.encoders.tower import ProjectionConfig

CAPTIONS = ["a red star", "a blue ring", "a red ring", "two blue stars", "a star left of a ring"]


def targets() -> TargetModel:
    return make_target_model(TargetOptions(kind="lsa", width=3), CAPTIONS)


def tower(width: int = 3, **options: object) -> TargetTower:
    torch.manual_seed(0)
    return TargetTower(TargetTowerConfig.model_validate(options), width, targets())


def test_without_a_head_targets_are_fixed() -> None:
    model = tower()
    assert list(model.parameters()) == []
    rows = model(*model.inputs(CAPTIONS).batch(np.array([4, 0])))
    np.testing.assert_allclose(rows, targets().encode(CAPTIONS)[[4, 0]], atol=1e-6)


def test_a_head_fine_tunes_them() -> None:
    model = tower(width=5, head="mlp")
    assert [(name, tuple(value.shape)) for name, value in model.named_parameters()] == [
        ("head.1.weight", (3, 3)),
        ("head.4.weight", (5, 3)),
    ]
    vectors, ones = model.inputs(CAPTIONS).batch(np.arange(5))
    hidden = torch.relu(vectors @ model.head[1].weight.T)
    expected = nn.functional.normalize(hidden @ model.head[4].weight.T, dim=1)
    torch.testing.assert_close(model(vectors, ones), expected)
    linear = tower(width=4, head="linear", bias=True, batch_norm=True)
    assert len(list(linear.parameters())) == 4
    assert linear(vectors, ones).shape == (5, 4)


def test_fixed_targets_have_the_width_they_have() -> None:
    with pytest.raises(UsageError, match="targets of width 3 do not fit the shared width 8") as caught:
        tower(width=8)
    assert "model.width = 3" in caught.value.fix
    projected = TargetTower(TargetTowerConfig(), 8, targets(), projection=ProjectionConfig(base=3, hidden=4))
    assert projected(torch.eye(3), torch.ones(3)).shape == (3, 8)
    refused(ValidationError, "batch_norm is of a head", TargetTowerConfig, batch_norm=True)
