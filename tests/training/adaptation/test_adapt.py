from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import UsageError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.training.adaptation import adapt_linear, draw_pairs, fit_linear


@pytest.fixture(scope="module")
def base(run_folder: Path) -> DualEncoder:
    return DualEncoder.load(run_folder / "best", device="cpu")


@pytest.fixture(scope="module")
def train(scenes_folder: Path) -> Collection:
    return read_collection(scenes_folder).split("train")


def test_it_is_the_fit_of_the_drawn_rows(base: DualEncoder, train: Collection) -> None:
    adapted = adapt_linear(base, train, pairs=12, seed=2)
    drawn = draw_pairs(train, 12, 2)
    images = base.encode_images([train.image(row) for row in drawn.images])
    texts = base.encode_texts([train.captions[row] for row in drawn.captions])
    fitted = fit_linear(images, texts, drawn.positives)
    assert fitted.strength < np.inf
    assert np.allclose(adapted.maps.image.matrix, fitted.maps.image.matrix, atol=1e-5)
    assert adapted.about["strength"] == pytest.approx(fitted.strength)
    again = adapt_linear(base, train, pairs=12, seed=2)
    assert again.fingerprint == adapted.fingerprint
    assert adapt_linear(base, train, pairs=12, seed=3).fingerprint != adapted.fingerprint


def test_no_pairs_give_the_encoder_to_the_bit(base: DualEncoder, train: Collection) -> None:
    same = adapt_linear(base, train, pairs=0)
    pictures = [train.image(row) for row in range(3)]
    assert np.array_equal(same.encode_images(pictures), base.encode_images(pictures))
    assert np.array_equal(same.encode_texts(train.captions[:9]), base.encode_texts(train.captions[:9]))
    assert same.fingerprint == base.fingerprint


def test_wrong_wishes_are_told(base: DualEncoder, train: Collection) -> None:
    with pytest.raises(UsageError, match=r"1,000 pairs of .* 48 pictures with captions"):
        adapt_linear(base, train, pairs=1000)
    with pytest.raises(UsageError, match="method: .*'lora'"):
        adapt_linear(base, train, method="lora")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="strength: .*got 0.0"):
        adapt_linear(base, train, strength=0.0)
    with pytest.raises(UsageError, match="strength: Input should be a finite"):
        adapt_linear(base, train, strength=float("nan"))
