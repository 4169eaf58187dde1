from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from diptych.data.images import Patch, pasted
from diptych.encoders.preprocessing import Augmentation, Preprocessing

from .tiny_pretrained import noise

PLAIN = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}


def test_agrees_with_torchvision_on_resize_crop_normalise() -> None:
    from torchvision.transforms import v2

    smooth = noise(30, 20).resize((300, 200), Image.Resampling.BICUBIC)
    ours = Preprocessing(size=56, resize=64)(smooth)
    theirs = v2.Compose(
        [v2.Resize(64, v2.InterpolationMode.BICUBIC, antialias=True), v2.CenterCrop(56), v2.PILToTensor()]
    )(smooth).numpy()
    scale, shift = np.array((0.229, 0.224, 0.225)), np.array((0.485, 0.456, 0.406))
    back = (ours * scale[:, None, None] + shift[:, None, None]) * 255
    # Theirs rounds the picture to whole pixels before it crops; ours cuts and resizes in one step.
    assert np.abs(back - theirs).mean() < 2.0


def test_whole_picture_and_certain_flip() -> None:
    picture = noise(16, 16)
    whole = Augmentation(scale=(1.0, 1.0), ratio=(1.0, 1.0), flip=1.0)
    preprocessing = Preprocessing(size=16, resize=16, **PLAIN)
    flipped = preprocessing.augmented(picture, whole, np.random.default_rng(0))
    np.testing.assert_allclose(flipped[:, :, ::-1], preprocessing(picture), atol=1e-6)


WHOLE = Augmentation(scale=(1.0, 1.0), ratio=(1.0, 1.0), flip=0.0)


def erased(augmentation: Augmentation, seed: int) -> np.ndarray:
    """(size, size) boolean: what is gone of a picture without a black pixel."""
    picture = Image.new("RGB", (40, 40), (200, 100, 50))
    values = Preprocessing(size=40, resize=40).augmented(picture, augmentation, np.random.default_rng(seed))
    gone: np.ndarray = (values == 0).all(axis=0)
    return gone


def test_a_rectangle_of_the_right_size_and_shape_is_erased() -> None:
    augmentation = WHOLE.model_copy(update={"erasing": 1.0})
    shapes = []
    for seed in range(200):
        gone = erased(augmentation, seed)
        rows, columns = np.flatnonzero(gone.any(axis=1)), np.flatnonzero(gone.any(axis=0))
        height, width = len(rows), len(columns)
        assert gone.sum() == height * width == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
        shapes.append((height, width))
    areas = np.array([h * w for h, w in shapes]) / 1600
    ratios = np.array([h / w for h, w in shapes])
    # Sides are whole pixels, so that a range is exceeded by what rounding one pixel makes.
    assert 0.015 < areas.min() < 0.06 < 0.25 < areas.max() < 0.37
    assert 0.2 < ratios.min() < 0.5 < 2 < ratios.max() < 4.2


class Blocks:
    """Coloured noise at (3, 0), and over its right part a block that reaches the lower right corner."""

    key = "blocks"

    def patches(self, width: int, height: int) -> list[Patch]:
        values = np.random.default_rng(9).integers(0, 256, (5, 7, 3), dtype=np.uint8)
        grey = np.broadcast_to(np.uint8(200), (height - 2, width - 6, 3))
        return [Patch(3, 0, values), Patch(6, 2, grey)]


def plain_pixels(values: np.ndarray) -> np.ndarray:
    """(3, s, s) of a preprocessing without mean and spread back to (s, s, 3) uint8."""
    pixels = np.rint(values.transpose(1, 2, 0) * 255).astype(np.uint8)
    return pixels


@pytest.mark.parametrize("options", [{}, PLAIN, {"interpolation": "bilinear"}])
def test_an_overlay_is_what_was_pasted_on_the_pixels(options: dict[str, Any]) -> None:
    preprocessing, picture = Preprocessing(size=24, resize=28, **options), noise(50, 40)
    pixels = preprocessing.central(picture)
    assert (pixels.dtype, pixels.shape) == (np.uint8, (24, 24, 3))
    # A picture that is there already is taken as it is, so that its pixels can be pasted on by hand.
    whole = Preprocessing(size=24, resize=24, **options)
    by_hand = whole(Image.fromarray(pasted(pixels, Blocks())))
    found = preprocessing(picture, Blocks())
    assert np.array_equal(found, by_hand)
    assert not np.array_equal(found, preprocessing(picture))
    assert found.flags.c_contiguous


@pytest.mark.parametrize("erasing", [0.0, 1.0])
def test_an_overlay_survives_crop_flip_and_erasure(erasing: float) -> None:
    preprocessing, picture = Preprocessing(size=24, resize=24, **PLAIN), noise(50, 40)
    augmentation = Augmentation(flip=0.5, erasing=erasing, erasing_area=(0.3, 0.33))
    for seed in range(12):
        with_it, without = np.random.default_rng(seed), np.random.default_rng(seed)
        found = preprocessing.augmented(picture, augmentation, with_it, Blocks())
        bare = preprocessing.augmented(picture, augmentation, without)
        assert with_it.random() == without.random()  # an overlay draws nothing
        expected = pasted(plain_pixels(bare), Blocks())
        assert np.array_equal(plain_pixels(found), expected)
        untouched = pasted(np.zeros((24, 24, 3), np.uint8), Blocks()).any(axis=2)
        assert np.array_equal(found[:, ~untouched], bare[:, ~untouched])
