from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from diptych.core.errors import NumericalError
from diptych.data.collection import Collection
from diptych.encoders.image_tower import FeatureOptions, FeatureStore, ImageTower, ImageTowerConfig
from diptych.encoders.preprocessing import Preprocessing


def tower(seed: int = 0, size: int = 32) -> ImageTower:
    torch.manual_seed(seed)
    preprocessing = Preprocessing(size=size, resize=size)
    return ImageTower(ImageTowerConfig(backbone="test_resnet", preprocessing=preprocessing), 8)


def test_features_are_the_backbones(val: Collection, tmp_path: Path) -> None:
    model = tower().eval()
    store = FeatureStore.of(model, val, tmp_path, FeatureOptions())
    assert store.rows.shape == (16, 1, model.feature_width)
    assert isinstance(store.rows, np.memmap)
    pixels = torch.from_numpy(np.stack([model.config.preprocessing(p) for p in val.images()]))
    with torch.inference_mode():
        np.testing.assert_allclose(store.rows[:, 0], model.features(pixels).numpy(), atol=1e-5)


def test_views_are_random_and_stay_with_their_picture(val: Collection, tmp_path: Path) -> None:
    options = FeatureOptions(views=2)
    rows = FeatureStore.of(tower(), val, tmp_path, options).rows
    assert rows.shape[1] == 3
    assert not np.allclose(rows[:, 0], rows[:, 1])
    assert not np.allclose(rows[:, 1], rows[:, 2])
    turned = FeatureStore.of(tower(), val.subset(np.arange(15, -1, -1)), tmp_path, options).rows
    np.testing.assert_allclose(turned[::-1], rows, atol=1e-5)


def test_the_key_is_content(val: Collection, tmp_path: Path) -> None:
    base = FeatureStore.of(tower(), val, tmp_path, FeatureOptions()).folder
    assert FeatureStore.of(tower(), val, tmp_path, FeatureOptions()).folder == base
    others = [
        FeatureStore.of(tower(seed=1), val, tmp_path, FeatureOptions()).folder,
        FeatureStore.of(tower(size=24), val, tmp_path, FeatureOptions()).folder,
        FeatureStore.of(tower(), val, tmp_path, FeatureOptions(storage="float16")).folder,
        FeatureStore.of(tower(), val, tmp_path, FeatureOptions(views=1)).folder,
        FeatureStore.of(tower(), val.subset([0, 1]), tmp_path, FeatureOptions()).folder,
    ]
    assert len({base, *others}) == 6
    # The seed and the augmentation of views that do not exist change nothing.
    assert FeatureStore.of(tower(), val, tmp_path, FeatureOptions(seed=9)).folder == base


def test_features_that_do_not_fit_float16_are_named(
    val: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tower()
    monkeypatch.setattr(ImageTower, "features", lambda self, pictures: torch.full((len(pictures), 96), 1e6))
    with (
        pytest.raises(NumericalError, match=rf"features of {val.image_ids[0]} are not finite"),
        np.errstate(over="ignore"),
    ):
        FeatureStore.of(model, val, tmp_path, FeatureOptions(storage="float16"))
