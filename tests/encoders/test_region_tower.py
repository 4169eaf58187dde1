from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused

from diptych.core.errors import ImageError
from diptych.encoders.image_tower import RegionTower, RegionTowerConfig

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "vsrn_image_encoder.npz", allow_pickle=False)
FORMS: dict[str, dict[str, Any]] = {
    "coco_precomp": {},
    "f30k_precomp": {"normalise_input": False, "batch_norm": True},
}


def tower(width: int = 8, **options: Any) -> RegionTower:
    torch.manual_seed(0)
    return RegionTower(RegionTowerConfig(regions=5, feature_width=12, **options), width).double()


def published(form: str) -> RegionTower:
    model = tower(compat="region-axis", **FORMS[form])
    prefix = f"{form}.w."
    weights = {name.removeprefix(prefix): GOLDEN[name] for name in GOLDEN.files if name.startswith(prefix)}
    model.head.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    return model


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_agrees_with_the_published_tower(form: str, mode: str) -> None:
    regions = torch.tensor(GOLDEN["regions"])
    model = published(form).train(mode == "train")
    np.testing.assert_allclose(model(regions).detach(), GOLDEN[f"{form}.{mode}.embedding"], atol=1e-9)
    model = published(form).train(mode == "train")
    related = model.head.related(regions).detach()
    np.testing.assert_allclose(related, GOLDEN[f"{form}.{mode}.gcn_regions"], atol=1e-9)


@pytest.mark.parametrize("form", list(FORMS))
def test_gradients_agree_with_the_published_tower(form: str) -> None:
    model = published(form).train()
    (model(torch.tensor(GOLDEN["regions"])) * torch.tensor(GOLDEN[f"{form}.cotangent"])).sum().backward()
    for name, parameter in (
        ("fc", model.head.fc.weight),
        ("theta1", model.head.get_parameter("Rs_GCN_1.theta.weight")),
    ):
        np.testing.assert_allclose(parameter.grad, GOLDEN[f"{form}.train.grad_{name}_weight"], atol=1e-9)


def test_the_default_normalises_features_the_published_way_regions() -> None:
    regions = torch.tensor(GOLDEN["regions"])
    ones = torch.ones(4, 5, dtype=torch.float64)
    torch.testing.assert_close(tower().eval().head.related(regions).norm(dim=2), ones)
    odd = tower(compat="region-axis").eval().head.related(regions)
    torch.testing.assert_close(odd.norm(dim=1), torch.ones(4, 8, dtype=torch.float64))


def test_rows_are_unit_and_a_picture_does_not_see_its_neighbours() -> None:
    regions = torch.tensor(GOLDEN["regions"])
    model = tower(batch_norm=True).eval()
    together = model(regions)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(model(regions[2:3])[0], together[2])
    torch.testing.assert_close(model.project(model.features(regions)), together)


def test_the_order_of_regions_matters_to_the_gru_alone() -> None:
    regions = torch.tensor(GOLDEN["regions"])
    turned = regions.flip(1)
    assert not torch.allclose(tower()(regions), tower()(turned))
    torch.testing.assert_close(tower(fusion="mean")(regions), tower(fusion="mean")(turned))


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (np.zeros((5, 11), np.float32), r"image 3 has region features of shape \(5, 11\), not \(5, 12\)"),
        (np.zeros((36, 12)), r"shape \(36, 12\), not \(5, 12\)"),
        (np.zeros((5, 12), np.int64), "image 3 is a int64 array"),
        (Image.new("RGB", (4, 4)), "image 3 is a Image, not a matrix of region features"),
        ("a.npy", "image 3 is a str"),
    ],
)
def test_what_are_no_region_features_is_named(item: object, message: str) -> None:
    assert refused(ImageError, message, tower().prepare, item, 3).fix


def test_a_feature_that_is_not_finite_is_named() -> None:
    item = np.zeros((5, 12), np.float16)
    assert tower().prepare(item, 0).dtype == np.float32
    item[4, 7] = np.inf
    refused(ImageError, "image 9: feature 7 of region 4 is inf", tower().prepare, item, 9)
