from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused
from safetensors.torch import save_file
from torch import nn

from diptych.core.errors import ImageError, MismatchError, RecipeError, StorageError
from diptych.encoders.image_tower import (
    ImageTower,
    ImageTowerConfig,
    RegionTower,
    RegionTowerConfig,
)
from diptych.encoders.preprocessing import Preprocessing
from diptych.encoders.tower import ProjectionConfig, make_head

PICTURES = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def tower(**options: object) -> ImageTower:
    torch.manual_seed(0)
    return ImageTower(ImageTowerConfig(backbone="test_resnet", **options), 8)


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


def test_the_feature_width_is_what_comes_out() -> None:
    for backbone, options in (
        ("test_vit", {"img_size": 32}),
        ("test_convnext", {}),
        ("mobilenetv3_small_050", {}),
    ):
        model = ImageTower(ImageTowerConfig(backbone=backbone, backbone_options=options), 8).eval()
        assert model.features(PICTURES).shape == (4, model.feature_width)
        assert model(PICTURES).shape == (4, 8)


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


def test_the_start_is_uniform_in_the_bound() -> None:
    torch.manual_seed(0)
    layer = make_head(300, 500, None)[1]
    bound = math.sqrt(6 / 800)
    assert 0.99 * bound < layer.weight.abs().max().item() <= bound
    assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.01)
    assert not layer.bias.any()


GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "vsrn_image_encoder.npz", allow_pickle=False)


def regions_tower(width: int = 8, **options: Any) -> RegionTower:
    torch.manual_seed(0)
    return RegionTower(RegionTowerConfig(regions=5, feature_width=12, **options), width).double()


def test_by_default_each_region_has_unit_length() -> None:
    regions, ones = torch.tensor(GOLDEN["regions"]), torch.ones(4, 5, dtype=torch.float64)
    torch.testing.assert_close(regions_tower().eval().head.related(regions).norm(dim=2), ones)


def test_what_are_no_region_features_is_named() -> None:
    for item, message in (
        (np.zeros((5, 11), np.float32), r"image 3 has region features of shape \(5, 11\), not \(5, 12\)"),
        (np.zeros((5, 12), np.int64), "image 3 is a int64 array"),
        (Image.new("RGB", (4, 4)), "image 3 is a Image, not a matrix of region features"),
        (np.full((5, 12), np.inf, np.float16), "image 3: feature 0 of region 0 is inf"),
    ):
        assert refused(ImageError, message, regions_tower().prepare, item, 3).fix
    assert regions_tower().prepare(np.zeros((5, 12), np.float16), 0).dtype == np.float32


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.safetensors").write_text("hello")
    save_file({"other": torch.zeros(1)}, tmp_path / "other.safetensors")
    for name, error, message in (
        ("gone", StorageError, "does not exist"),
        ("text", StorageError, "is not a safetensors file"),
        ("other", MismatchError, r"does not fit the backbone: \d+ tensors missing, 1 unknown"),
    ):
        refused(error, message, tower, weights=str(tmp_path / f"{name}.safetensors"))
    config = ImageTowerConfig(backbone="test_vit", grid=(2, 2), preprocessing=Preprocessing(size=160))
    refused(RecipeError, "not a map", ImageTower, config, 8)


def test_a_frozen_backbone_is_not_changed_unless_as_published() -> None:
    for compat in ("none", "batch-statistics"):
        model = tower(compat=compat)
        model.backbone.requires_grad_(False)
        before = {name: value.clone() for name, value in model.backbone.state_dict().items()}
        model.train()
        first = model.features(PICTURES)
        batched = model.features(torch.cat([PICTURES, 3 * PICTURES]))[: len(PICTURES)]
        same = all(torch.equal(before[name], value) for name, value in model.backbone.state_dict().items())
        assert same == torch.allclose(batched, first, atol=1e-5) == (compat == "none")


def test_a_projection_follows_the_head() -> None:
    model = tower(hidden=5, bias=False, batch_norm=True)
    names = [name for name, _ in model.head.named_parameters()]
    assert names == ["1.weight", "4.weight", "5.weight", "5.bias"]
    torch.manual_seed(0)
    projection = ProjectionConfig(base=8, hidden=5)
    projected = ImageTower(ImageTowerConfig(backbone="test_resnet"), 3, projection=projection).eval()
    between = projected.head(nn.functional.normalize(projected.features(PICTURES), dim=1))
    expected = nn.functional.normalize(projected.projection(between), dim=1)
    raw, features = tower(normalise_features=False).eval(), projected.features(PICTURES)
    torch.testing.assert_close(raw.project(features), nn.functional.normalize(raw.head(features), dim=1))
    torch.testing.assert_close(projected(PICTURES), expected)
    assert expected.shape == (4, 3)


def test_the_order_of_regions_matters_to_the_gru_only() -> None:
    regions = torch.tensor(GOLDEN["regions"])
    turned = regions.flip(1)
    assert not torch.allclose(regions_tower()(regions), regions_tower()(turned))
    mean = regions_tower(fusion="mean")
    torch.testing.assert_close(mean(regions), mean(turned))
    model = regions_tower(batch_norm=True).eval()
    together = model(regions)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(model(regions[2:3])[0], together[2])
