"""Linear maps on an encoder's rows from a few pairs: the draw, both methods, and when rows stay as they are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.encoders.adapted import LinearMap, LinearMaps
from diptych.encoders.dual_encoder import DualEncoder
from diptych.objectives import infonce
from diptych.training.adaptation import AdaptationOptions, adapt_linear, draw_pairs, fit_linear
from diptych.training.adaptation.fit import MANY, confused_share, select_strength
from diptych.training.adaptation.maps import ContrastivePairs, GaussianMoments


def eye(pairs: int) -> np.ndarray:
    return np.eye(pairs, dtype=bool)


def planted(
    pairs: int, width: int = 12, seed: int = 0, turn: float = 0.8, common: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of pictures and of texts, which are turned, and share much of a side; the turn is the same for all seeds."""
    random, fixed = np.random.default_rng([seed, 1]), np.random.default_rng(99)
    turned = np.eye(width) + turn * fixed.normal(size=(width, width)) / np.sqrt(width)
    rotation, triangle = np.linalg.qr(turned)
    rotation = rotation * np.sign(np.diag(triangle))  # little of a turn is near the identity
    shared = random.normal(size=(pairs, width))
    offsets = common * fixed.normal(size=(2, width))
    sides = [
        rows + 0.3 * random.normal(size=shared.shape) + offset
        for rows, offset in zip((shared, shared @ rotation), offsets, strict=True)
    ]
    images, texts = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return images, texts


@pytest.fixture(scope="module")
def base(run_folder: Path) -> DualEncoder:
    return DualEncoder.load(run_folder / "best", device="cpu")


@pytest.fixture(scope="module")
def train(scenes_folder: Path) -> Collection:
    return read_collection(scenes_folder).split("train")


def test_an_adapted_encoder_is_the_fit_of_the_drawn_rows(base: DualEncoder, train: Collection) -> None:
    adapted = adapt_linear(base, train, pairs=12, seed=2)
    drawn = draw_pairs(train, 12, 2)
    images = base.encode_images([train.image(row) for row in drawn.images])
    texts = base.encode_texts([train.captions[row] for row in drawn.captions])
    fitted = fit_linear(images, texts, drawn.positives)
    assert fitted.strength < np.inf
    assert np.allclose(adapted.maps.image.matrix, fitted.maps.image.matrix, atol=1e-5)
    assert adapted.about["strength"] == pytest.approx(fitted.strength)
    assert adapt_linear(base, train, pairs=12, seed=2).fingerprint == adapted.fingerprint
    assert adapt_linear(base, train, pairs=12, seed=3).fingerprint != adapted.fingerprint
    same = adapt_linear(base, train, pairs=0)
    assert np.array_equal(same.encode_texts(train.captions[:9]), base.encode_texts(train.captions[:9]))
    assert same.fingerprint == base.fingerprint


def test_options_that_cannot_be(base: DualEncoder, train: Collection) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"pairs": 1000}, r"1,000 pairs of .* 48 images with captions"),
        ({"method": "lora"}, "method: .*'lora'"),
        ({"strength": 0.0}, "strength: .*got 0.0"),
        ({"strength": math.nan}, "strength: Input should be a finite"),
    ]
    for options, message in cases:
        refused(UsageError, message, adapt_linear, base, train, **options)


def collection(counts: list[int]) -> Collection:
    """One picture per count, with as many captions."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return Collection(
        name="counted",
        image_ids=[f"i{row}" for row in range(len(counts))],
        captions=[f"caption {row}" for row in range(len(owners))],
        caption_ids=[f"c{row}" for row in range(len(owners))],
        caption_image=owners.astype(np.int64),
        splits=["train"] * len(counts),
        source=None,  # type: ignore[arg-type]
        source_rows=np.arange(len(counts)),
    )


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8).filter(any),
    st.integers(0, 50),
    st.sampled_from(["one", "all"]),
)
def test_pairs_are_pictures_with_their_own_captions(counts: list[int], seed: int, captions: Any) -> None:
    whole, able = collection(counts), sum(count > 0 for count in counts)
    drawn = draw_pairs(whole, able, seed, captions)
    assert sorted(drawn.images) == [row for row, count in enumerate(counts) if count]
    assert np.array_equal(whole.caption_image[drawn.captions], drawn.images[drawn.caption_image])
    assert len(drawn.captions) == (able if captions == "one" else sum(counts)) == drawn.positives.sum()
    assert drawn.positives[drawn.caption_image, np.arange(len(drawn.captions))].all()


def test_fewer_pairs_are_among_more_of_a_seed_and_other_seeds_draw_others(train: Collection) -> None:
    few, many = draw_pairs(train, 5, 3), draw_pairs(train, 40, 3)
    assert np.array_equal(many.images[:5], few.images)
    assert np.array_equal(many.captions[:5], few.captions)
    assert not np.array_equal(draw_pairs(train, 40, 4).images, many.images)
    first = train.caption_start[many.images]
    assert len(set((many.captions - first).tolist())) > 1  # not always the first caption
    assert draw_pairs(collection([1, 2]), 0).positives.shape == (0, 0)
    for pairs in (-1, 3):
        message = rf"{pairs} pairs of counted, which has 2 images with captions"
        refused(UsageError, message, draw_pairs, collection([1, 0, 2]), pairs)
    refused(UsageError, "captions 'first'", draw_pairs, collection([1]), 1, captions="first")


@pytest.mark.parametrize("method", ["gaussian", "infonce"])
def test_no_pair_and_one_pair_change_nothing(method: Any) -> None:
    options = AdaptationOptions(method=method)
    none = fit_linear(np.empty((0, 4)), np.empty((0, 4)), np.empty((0, 0), dtype=bool), options)
    assert none.maps.is_identity
    assert none.strength == math.inf
    assert fit_linear(*planted(1, width=4), eye(1), options).maps.is_identity


@settings(max_examples=10)
@given(st.integers(2, 40), st.integers(0, 30))
def test_rows_that_are_known_stay(pairs: int, seed: int) -> None:
    rows, _ = planted(pairs, seed=seed)
    assert fit_linear(rows, rows, eye(pairs)).maps.is_identity


IMAGES, TEXTS = planted(3, width=4)


def test_rows_that_cannot_be_fitted() -> None:
    for images, texts, positives, error, message in (
        (IMAGES, TEXTS[:, :3], eye(3), DataError, r"shapes \(3, 4\) and \(3, 3\)"),
        (IMAGES, TEXTS, eye(3)[:2], DataError, r"positives of shape \(2, 3\)"),
        (IMAGES, TEXTS, np.eye(3), DataError, "positives are float64"),
        (IMAGES, TEXTS, eye(3)[[0, 0, 2]] & [1, 0, 1] > 0, DataError, "text 1 has no positive"),
        (IMAGES, TEXTS, eye(3) & [1, 0, 1] > 0, DataError, "image 1 has no positive"),
        (IMAGES * [[1], [np.nan], [1]], TEXTS, eye(3), NumericalError, "image 1"),
        (0 * IMAGES, 0 * TEXTS, eye(3), DataError, "every row is zero"),
    ):
        call = GaussianMoments.of if "zero" in message else fit_linear
        refused(error, message, call, images, texts, positives)


def assert_equal_to_slow(
    images: np.ndarray, texts: np.ndarray, positives: np.ndarray, strength: float
) -> None:
    """From the module's equations, in the whole space, with SciPy's matrix functions."""
    n, d = images.shape
    pairs = [
        (images[image], texts[text], 1 / positives[image].sum() / n) for image, text in np.argwhere(positives)
    ]
    means = [n / (n + strength / 100) * sum(row[side] * row[2] for row in pairs) for side in (0, 1)]
    centred = [(x - means[0], y - means[1], weight) for x, y, weight in pairs]
    cxx, cyy, cxy = (
        sum(row[2] * np.outer(row[left], row[right]) for row in centred)
        for left, right in ((0, 0), (1, 1), (0, 1))
    )
    s, share = (np.trace(cxx) + np.trace(cyy)) / (2 * d), n / (n + strength)
    cxx, cyy = (share * c + (1 - share) * s * np.eye(d) for c in (cxx, cyy))
    cxy = share * cxy + (1 - share) * s * 0.5 * np.eye(d)
    hx, hy = (np.real(scipy.linalg.fractional_matrix_power(c, -0.5)) for c in (cxx, cyy))
    k, scale = hx @ cxy @ hy, s / 0.5

    maps = GaussianMoments.of(images, texts, positives).maps(strength)
    for side, mean in ((maps.image, means[0]), (maps.text, means[1])):
        assert np.allclose(side.mean, mean, atol=1e-6)
    # Scores: C_xx^-1/2 K C_yy^-1/2, and lengths: C_xx^-1/2 (K K^T)^1/2 C_xx^-1/2, times s / rho.
    a, b = maps.image.matrix.astype(float), maps.text.matrix.astype(float)
    assert np.allclose(a @ b.T, scale * hx @ k @ hy, atol=1e-4)
    assert np.allclose(a @ a.T, scale * hx @ scipy.linalg.sqrtm(k @ k.T).real @ hx, atol=1e-4)
    assert np.allclose(b @ b.T, scale * hy @ scipy.linalg.sqrtm(k.T @ k).real @ hy, atol=1e-4)


def test_gaussian_maps_are_those_of_the_equations() -> None:
    for pairs, strength in ((1, 20.0), (3, 0.5), (6, 1000.0), (40, 20.0)):
        assert_equal_to_slow(*planted(pairs, width=6), eye(pairs), strength)
    images, texts = planted(9, width=5)  # each image counts once, whatever its captions
    owner = np.array([0, 0, 0, 1, 2, 2, 3, 3, 3])
    assert_equal_to_slow(images[:4], texts, np.arange(4)[:, None] == owner[None], 7.0)


def test_one_dimension_by_hand() -> None:
    # Two pairs of rows 1 and -1 on the first axis: means 0, S = 1 there and 0 elsewhere, s = 1/2.
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
    maps = GaussianMoments.of(rows, rows, eye(2)).maps(2.0)
    # C_xx = C_yy = (1 + 1/2)/2 = 3/4 and C_xy = (1 + 1/4)/2 = 5/8 on the first axis, 1/4 and 1/8 beyond.
    first = np.sqrt(5 / 6 * 0.5 / 0.5 / (3 / 4))
    assert np.allclose(maps.image.matrix, [[first, 0], [0, np.sqrt(0.5 / 0.25)]], atol=1e-6)
    assert np.allclose(maps.text.matrix, maps.image.matrix)


def test_a_planted_rotation_is_found() -> None:
    held_out = planted(100, seed=1, turn=3.0)
    maps = GaussianMoments.of(*planted(150, turn=3.0), eye(150)).maps(10.0)
    adapted = maps.image(held_out[0], "image", range(100)), maps.text(held_out[1], "text", range(100))
    before, after = ((a @ b.T).argmax(axis=1) == np.arange(100) for a, b in (held_out, adapted))
    assert before.mean() < 0.2
    assert after.mean() > 0.6


def test_the_contrastive_minimum_is_that_of_the_whole_space() -> None:
    images, texts = planted(2, width=3)
    texts = texts[::-1].copy()  # so that there is something to learn

    def value(maps: Any) -> float:
        whole = np.reshape(maps, (2, 3, 3))
        sides = [
            torch.nn.functional.normalize(torch.from_numpy(rows @ a), dim=1)
            for rows, a in zip((images, texts), whole, strict=True)
        ]
        loss = float(infonce(sides[0] @ sides[1].T, torch.eye(2, dtype=torch.bool), 0.1))
        return loss + 0.05 * float(np.square(whole - np.eye(3)).sum())

    found = ContrastivePairs.of(images, texts, eye(2)).maps(0.05)
    mine = value(np.stack([found.image.matrix, found.text.matrix]).astype(float))
    start = np.stack([np.eye(3)] * 2).ravel()
    assert abs(mine - scipy.optimize.minimize(value, start, method="BFGS").fun) < 1e-4
    assert mine < value(start) - 1e-2
    assert not found.image.mean.any()


def selected(images: np.ndarray, texts: np.ndarray) -> Any:
    return select_strength(images, texts, eye(len(images)), GaussianMoments)


def test_confusion_by_hand() -> None:
    positives = np.array([[True, True, False], [False, False, True]])
    scores = np.array([[0.1, 0.9, 0.5], [0.6, 0.2, 0.4]])
    # Pictures: the first finds its second caption, the second another's. Texts: the first is taken for
    # the second picture's, the second for the first's, rightly, the third for the first's.
    assert confused_share(scores, positives) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert confused_share(np.zeros((2, 3)), positives) == 1.0  # ties are confusions
    assert confused_share(np.ones((1, 1)), np.array([[True]])) == 0.0


def test_few_pairs_pull_by_how_often_they_are_confused() -> None:
    images, texts = planted(16, turn=1.2, common=0.3)
    share, found = confused_share(images @ texts.T, eye(16)), selected(images, texts)
    assert 0 < share < 1
    assert found == (pytest.approx(1024 / share**2), {})
    rows = np.eye(16)
    assert selected(rows, rows)[0] == math.inf  # what is never confused stays as it is
    assert selected(rows[:1], rows[1:2])[0] == math.inf  # one pair has nothing to be confused with


def test_many_pairs_are_cross_validated_and_chosen_where_they_help() -> None:
    strength, losses = selected(*planted(MANY + 20, turn=3.0))
    assert set(losses) == {math.inf, *GaussianMoments.strengths}
    assert strength == min(losses, key=losses.__getitem__) < math.inf


def test_a_gain_within_chance_does_not_count_and_folds_are_never_seen() -> None:
    seen: list[int] = []

    class Doubling(GaussianMoments):
        strengths = (1.0,)

        def __init__(self) -> None:
            pass

        @classmethod
        def of(cls, images: np.ndarray, texts: np.ndarray, positives: np.ndarray) -> Doubling:
            assert images.shape == texts.shape == (len(positives), 12)
            assert np.array_equal(positives, eye(len(positives)))
            seen.append(len(images))
            return cls()

        def maps(self, strength: float) -> LinearMaps:
            side = LinearMap.of(np.eye(12) * 2.0, np.zeros(12))
            return LinearMaps(side, side)

    strength, losses = select_strength(*planted(MANY), eye(MANY), Doubling)
    assert strength == math.inf  # doubling changes no cosine: the gain is a rounding error
    assert sum(MANY - count for count in seen) == MANY
    assert abs(losses[1.0] - losses[math.inf]) < 1e-6
