"""Each change of a picture by itself, on pictures made by hand."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from diptych.analysis.perturbations import PERTURBATIONS, PicturePerturbation, Unchanged, choose_perturbations
from diptych.analysis.perturbations.declaration import options_of
from diptych.analysis.shortcuts.drawn_digits import drawn_digits
from diptych.core.draws import Draws

PICTURES = [one for one in choose_perturbations(["pictures"]) if isinstance(one, PicturePerturbation)]
SIZES = [(1, 1), (1, 1000), (1000, 1), (2, 3), (7, 5), (64, 48), (90, 200)]


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    random = np.random.default_rng(seed)
    return Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))


def smooth(width: int = 90, height: int = 60) -> Image.Image:
    """Large patches and an edge, as photographs have them."""
    across, down = np.meshgrid(np.linspace(0, 6, width), np.linspace(0, 4, height))
    values = np.stack([np.sin(across) * 100 + 120, np.cos(down) * 90 + 110, (across > 3) * 150 + 40], axis=2)
    return Image.fromarray(values.astype(np.uint8))


def perturbed(name: str, picture: Image.Image, seed: int = 0, **options: object) -> Image.Image:
    perturbation = PERTURBATIONS.get(name)
    assert isinstance(perturbation, PicturePerturbation)
    return perturbation.apply(picture, Draws(seed, name, "id"), options_of(perturbation, options))


def test_the_six_are_there() -> None:
    assert [one.name for one in PICTURES] == [
        "blur",
        "brightness",
        "crop",
        "digit-overlay",
        "jpeg",
        "occlusion",
    ]
    assert all(one.keeps_meaning and one.source for one in PICTURES)


@pytest.mark.parametrize("perturbation", PICTURES, ids=lambda one: one.name)
@pytest.mark.parametrize("size", SIZES)
def test_pictures_of_every_shape_survive(perturbation: PicturePerturbation, size: tuple[int, int]) -> None:
    for picture in (noise(*size), Image.new("RGB", size), Image.new("RGB", size, "white")):
        before = picture.tobytes()
        for severity in range(1, 6):
            result = perturbed(perturbation.name, picture, severity=severity)
            assert result.mode == "RGB"
            if perturbation.name == "crop":
                assert all(1 <= now <= then for now, then in zip(result.size, size, strict=True))
            else:
                assert result.size == size
            again = perturbed(perturbation.name, picture, severity=severity)
            assert again.tobytes() == result.tobytes()
        assert picture.tobytes() == before


@pytest.mark.parametrize("name", ["blur", "jpeg", "occlusion", "digit-overlay", "brightness"])
def test_a_higher_severity_is_farther_away(name: str) -> None:
    picture = smooth()
    clean = np.asarray(picture).astype(float)
    distances = [
        np.mean(
            [
                np.abs(np.asarray(perturbed(name, picture, seed, severity=severity)) - clean).mean()
                for seed in range(20)
            ]
        )
        for severity in range(1, 6)
    ]
    assert distances[0] > 0
    assert np.all(np.diff(distances) > 0)


def test_blur_is_a_gaussian_of_a_share_of_the_shorter_side() -> None:
    # The same picture, twice as large, is blurred the same.
    small, large = smooth(90, 60), smooth(90, 60).resize((180, 120), Image.Resampling.BILINEAR)
    first = perturbed("blur", small, sigma=0.1)
    second = perturbed("blur", large, sigma=0.1).resize((90, 60), Image.Resampling.BOX)
    assert np.abs(np.asarray(first).astype(float) - np.asarray(second)).mean() < 2
    # A white point spreads with the standard deviation that was asked for: 0.05 of 101 pixels.
    point = Image.new("RGB", (101, 121))
    point.putpixel((50, 60), (255, 255, 255))
    weights = np.asarray(perturbed("blur", Image.merge("RGB", [_bright(point)] * 3), sigma=0.05))[:, :, 0]
    places = np.arange(101) - 50
    share = weights.sum(axis=0) / weights.sum()
    assert np.sqrt((share * places**2).sum()) == pytest.approx(0.05 * 101, rel=0.1)


def _bright(point: Image.Image) -> Image.Image:
    """A block around the point, so that its blurred values are not rounded away."""
    values = np.zeros((point.height, point.width), dtype=np.uint8)
    values[58:63, 48:53] = 255
    return Image.fromarray(values)


def test_jpeg_is_the_picture_saved_again() -> None:
    picture = smooth()
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=15)
    assert perturbed("jpeg", picture).tobytes() == Image.open(file).convert("RGB").tobytes()
    with pytest.raises(Unchanged, match="longer than the 65,500 pixels"):
        perturbed("jpeg", Image.new("RGB", (65_501, 1)))
    assert perturbed("jpeg", Image.new("RGB", (65_500, 1))).size == (65_500, 1)


def test_a_crop_is_a_part_of_the_picture() -> None:
    picture = noise(60, 40)
    values = np.asarray(picture)
    places = set()
    for seed in range(30):
        part = np.asarray(perturbed("crop", picture, seed, keep=0.25))
        assert part.shape == (20, 30, 3)
        found = [
            (top, left)
            for top in range(21)
            for left in range(31)
            if np.array_equal(values[top : top + 20, left : left + 30], part)
        ]
        assert len(found) == 1
        places |= set(found)
    assert len(places) > 20
    assert perturbed("crop", picture, keep=1).tobytes() == picture.tobytes()


def test_brightness_multiplies_or_divides() -> None:
    picture = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).convert("RGB")
    values = np.asarray(picture).astype(float)
    brighter, darker = np.minimum(255, values * 2), values / 2
    seen = {"brighter": 0, "darker": 0}
    for seed in range(40):
        result = np.asarray(perturbed("brightness", picture, seed, factor=2)).astype(float)
        direction = "brighter" if result.mean() > values.mean() else "darker"
        seen[direction] += 1
        assert np.abs(result - (brighter if direction == "brighter" else darker)).max() <= 0.5
    assert min(seen.values()) > 10
    black = Image.new("RGB", (9, 9))
    assert perturbed("brightness", black).tobytes() == black.tobytes()


@pytest.mark.parametrize("share", [0.05, 0.2, 0.45])
def test_an_occlusion_hides_its_share_behind_one_colour(share: float) -> None:
    picture = noise(200, 120)
    values = np.asarray(picture)
    shapes = set()
    for seed in range(20):
        for colour in ("mean", "grey"):
            result = np.asarray(perturbed("occlusion", picture, seed, share=share, colour=colour))
            expected = np.rint(values.mean(axis=(0, 1))) if colour == "mean" else np.full(3, 128)
            rows, columns = np.nonzero((result != values).any(axis=2))
            box = result[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            assert np.all(box == expected)
            assert box.shape[0] * box.shape[1] == pytest.approx(share * 200 * 120, rel=0.05)
        shapes.add(box.shape)
    assert len(shapes) > 10


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.01, 1), st.integers(0, 99))
def test_an_occlusion_never_leaves_the_picture(width: int, height: int, share: float, seed: int) -> None:
    picture = Image.new("RGB", (width, height), "white")
    result = np.asarray(perturbed("occlusion", picture, seed, share=share, colour="grey"))
    hidden = int((result == 128).all(axis=2).sum())
    assert 1 <= hidden <= width * height
    assert abs(hidden - share * width * height) <= width + height + 1


def test_digits_stand_where_shortcuts_have_them() -> None:
    picture = Image.new("RGB", (300, 224), (10, 200, 30))
    result = np.asarray(perturbed("digit-overlay", picture))
    known = np.concatenate(drawn_digits().classes)
    changed = np.zeros((224, 300), dtype=bool)
    for place in range(6):
        patch = result[:28, place * 50 : place * 50 + 28]
        assert np.all(patch == patch[:, :, :1])
        assert any(np.array_equal(patch[:, :, 0], digit) for digit in known)
        changed[:28, place * 50 : place * 50 + 28] = True
    assert np.all(result[~changed] == (10, 200, 30))
    others = [perturbed("digit-overlay", picture, seed).tobytes() for seed in range(10)]
    assert len(set(others)) == 10
