from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused
from safetensors.torch import save_file
from torch import nn

from diptych.core.errors import ImageError, MismatchError, RecipeError, StorageError
from diptych.encoders.image_tower import ImageTower, ImageTowerConfig
from diptych.encoders.preprocessing import Preprocessing
from diptych.encoders.tower import ProjectionConfig, make_head

PICTURES = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def tower(**options: object) -> ImageTower:
    torch.manual_seed(0)
    return ImageTower(ImageTowerConfig(backbone="test_resnet", **options), 8)


def test_features_then_head_then_unit_length() -> None:
    model = tower().eval()
    features = model.features(PICTURES)
    assert features.shape == (4, model.feature_width)
    by_hand = nn.functional.normalize(model.head(nn.functional.normalize(features, dim=1)), dim=1)
    torch.testing.assert_close(model(PICTURES), by_hand)
    torch.testing.assert_close(model.project(features), model(PICTURES))
    raw = tower(normalise_features=False).eval()
    torch.testing.assert_close(raw.project(features), nn.functional.normalize(raw.head(features), dim=1))


def test_a_frozen_backbone_is_not_changed_by_training_mode() -> None:
    model = tower()
    model.backbone.requires_grad_(False)
    before = {name: value.clone() for name, value in model.backbone.state_dict().items()}
    model.train()
    first = model.features(PICTURES)
    model.features(PICTURES * 3)
    assert all(torch.equal(before[name], value) for name, value in model.backbone.state_dict().items())
    torch.testing.assert_close(model.features(PICTURES), first)


def test_as_published_a_frozen_backbone_normalises_by_its_batch() -> None:
    model = tower(compat="batch-statistics")
    model.backbone.requires_grad_(False)
    before = {name: value.clone() for name, value in model.backbone.state_dict().items()}
    model.train()
    alone = model.features(PICTURES)
    assert any(not torch.equal(before[name], value) for name, value in model.backbone.state_dict().items())
    assert not torch.allclose(model.features(torch.cat([PICTURES, 3 * PICTURES]))[: len(PICTURES)], alone)


@pytest.mark.parametrize("frozen", [False, True])
def test_batch_norm_of_a_trained_backbone_is_a_choice(frozen: bool) -> None:
    model = tower(freeze_batch_norm=frozen).train()
    before = {name: value.clone() for name, value in model.backbone.state_dict().items()}
    model.features(PICTURES * 3 + 1)
    changed = any(not torch.equal(before[name], v) for name, v in model.backbone.state_dict().items())
    assert changed is not frozen


def test_weights_from_a_file_without_its_classifier(tmp_path: Path) -> None:
    source = tower()
    state = {
        name: value.half() if value.ndim > 1 else value
        for name, value in source.backbone.state_dict().items()
    }
    save_file({**state, "fc.weight": torch.zeros(5, 5)}, tmp_path / "w.safetensors")
    torch.manual_seed(9)
    loaded = ImageTower(ImageTowerConfig(backbone="test_resnet", weights=str(tmp_path / "w.safetensors")), 8)
    torch.testing.assert_close(
        loaded.eval().features(PICTURES), source.eval().features(PICTURES), atol=1e-2, rtol=1e-2
    )
    assert loaded.backbone.state_dict()["conv1.0.weight"].dtype == torch.float32


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    refused(StorageError, "does not exist", tower, weights=str(tmp_path / "gone.safetensors"))
    (tmp_path / "text.safetensors").write_text("hello")
    refused(StorageError, "is not a safetensors file", tower, weights=str(tmp_path / "text.safetensors"))
    save_file({"other": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(MismatchError, match=r"does not fit the backbone: \d+ tensors missing, 1 unknown"):
        tower(weights=str(tmp_path / "other.safetensors"))


@pytest.mark.parametrize(
    "backbone", ["test_vit", "test_efficientnet", "test_convnext", "test_mambaout", "mobilenetv3_small_050"]
)
def test_the_feature_width_is_what_comes_out(backbone: str) -> None:
    options = {"img_size": 32} if backbone == "test_vit" else {}
    model = ImageTower(ImageTowerConfig(backbone=backbone, backbone_options=options), 8).eval()
    assert model.features(PICTURES).shape == (4, model.feature_width)
    assert model(PICTURES).shape == (4, 8)


def test_head_options_and_projection_reach_the_layers() -> None:
    model = tower(hidden=5, bias=False, batch_norm=True)
    assert [name for name, _ in model.head.named_parameters()] == [
        "1.weight",
        "4.weight",
        "5.weight",
        "5.bias",
    ]
    torch.manual_seed(0)
    projected = ImageTower(
        ImageTowerConfig(backbone="test_resnet"), 3, projection=ProjectionConfig(base=8, hidden=5)
    ).eval()
    base = tower().eval()
    own = {k: v for k, v in projected.state_dict().items() if not k.startswith("projection.")}
    base.load_state_dict(own)
    features = base.features(PICTURES)
    between = base.head(nn.functional.normalize(features, dim=1))
    expected = nn.functional.normalize(projected.projection(between), dim=1)
    torch.testing.assert_close(projected(PICTURES), expected)
    assert projected(PICTURES).shape == (4, 3)


def test_a_picture_is_prepared_as_its_preprocessing_says() -> None:
    model = tower(preprocessing=Preprocessing(size=16, resize=16))
    picture = Image.new("L", (20, 30), 99)
    assert np.array_equal(model.prepare(picture, 0), model.config.preprocessing(picture.convert("RGB")))
    with pytest.raises(ImageError, match=r"image 4 is a float32 array of shape \(36, 2048\)") as caught:
        model.prepare(np.zeros((36, 2048), np.float32), 4)
    assert "region tower" in caught.value.fix


def test_a_grid_keeps_where_things_are() -> None:
    config = ImageTowerConfig(
        backbone="test_resnet",
        backbone_options={"output_stride": 8},
        grid=(2, 4),
        preprocessing=Preprocessing(size=32, resize=32),
    )
    tower = ImageTower(config, 8).eval()
    pictures = torch.rand(2, 3, 32, 32)
    last = tower.backbone.forward_features(pictures)  # type: ignore[operator]
    assert tower.feature_width == 8 * last.shape[1]
    features = tower.features(pictures).reshape(2, last.shape[1], 2, 4)
    assert last.shape[2:] == (4, 4)
    torch.testing.assert_close(features[:, :, 0, 1], last[:, :, :2, 1].mean(dim=2))
    assert tower(pictures).shape == (2, 8)


def test_a_backbone_without_a_map_has_no_grid() -> None:
    config = ImageTowerConfig(backbone="test_vit", grid=(2, 2), preprocessing=Preprocessing(size=160))
    refused(RecipeError, "not a map", ImageTower, config, 8)


def test_the_start_is_uniform_in_the_bound() -> None:
    torch.manual_seed(0)
    layer = make_head(300, 500, None)[1]
    bound = math.sqrt(6 / 800)
    assert 0.99 * bound < layer.weight.abs().max().item() <= bound
    assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.01)
    assert not layer.bias.any()
