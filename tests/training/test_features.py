"""Cached features: the backbone's own, views that stay with their image, keys by content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused

from diptych.core.errors import NumericalError
from diptych.data.collection import Collection
from diptych.encoders.image_tower import ImageTower, ImageTowerConfig
from diptych.encoders.preprocessing import Preprocessing
from diptych.training.features import FeatureOptions, FeatureStore


def small_tower(seed: int = 0, size: int = 32) -> ImageTower:
    torch.manual_seed(seed)
    preprocessing = Preprocessing(size=size, resize=size)
    return ImageTower(ImageTowerConfig(backbone="test_resnet", preprocessing=preprocessing), 8)


def test_features_are_the_backbones(val: Collection, tmp_path: Path) -> None:
    model = small_tower().eval()
    store = FeatureStore.of(model, val, tmp_path, FeatureOptions())
    assert store.rows.shape == (16, 1, model.feature_width)
    assert isinstance(store.rows, np.memmap)
    pixels = torch.from_numpy(np.stack([model.config.preprocessing(p) for p in val.images()]))
    with torch.inference_mode():
        np.testing.assert_allclose(store.rows[:, 0], model.features(pixels).numpy(), atol=1e-5)


def test_views_are_random_and_stay_with_their_picture(val: Collection, tmp_path: Path) -> None:
    options = FeatureOptions(views=2)
    rows = FeatureStore.of(small_tower(), val, tmp_path, options).rows
    assert rows.shape[1] == 3
    assert not np.allclose(rows[:, 0], rows[:, 1])
    assert not np.allclose(rows[:, 1], rows[:, 2])
    turned = FeatureStore.of(small_tower(), val.subset(np.arange(15, -1, -1)), tmp_path, options).rows
    np.testing.assert_allclose(turned[::-1], rows, atol=1e-5)


def test_the_key_of_features_is_content(
    val: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(model: ImageTower, part: Collection = val, **options: Any) -> Path:
        return FeatureStore.of(model, part, tmp_path, FeatureOptions(**options)).folder

    base = folder(small_tower())
    # The seed and the augmentation of views that do not exist change nothing.
    assert folder(small_tower()) == folder(small_tower(), seed=9) == base
    others = [
        folder(small_tower(seed=1)),
        folder(small_tower(size=24)),
        folder(small_tower(), val.subset([0, 1])),
    ]
    others += [folder(small_tower(), storage="float16"), folder(small_tower(), views=1)]
    assert len({base, *others}) == 6
    monkeypatch.setattr(ImageTower, "features", lambda self, pictures: torch.full((len(pictures), 96), 1e6))
    with np.errstate(over="ignore"):
        message = rf"features of {val.image_ids[0]} are not finite"
        refused(NumericalError, message, folder, small_tower(seed=2), storage="float16")
