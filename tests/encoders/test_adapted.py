from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import MismatchError, NumericalError, StorageError, UsageError
from diptych.data.readers import read_collection
from diptych.encoders.adapted import LinearlyAdapted, LinearMap, LinearMaps
from diptych.encoders.dual_encoder import DualEncoder, EncoderHeader
from diptych.encoders.encode import encode_collection
from diptych.encoders.given_rows import GivenRows

ABOUT = {"pairs": 4, "dataset": "small", "seed": 0}


@pytest.fixture(scope="module")
def base(run_folder: Path) -> DualEncoder:
    return DualEncoder.load(run_folder / "best", device="cpu")


def maps(width: int, seed: int = 0) -> LinearMaps:
    random = np.random.default_rng(seed)
    sides = [
        LinearMap.of(np.eye(width) + random.normal(0, 0.3, (width, width)), random.normal(0, 0.1, width))
    ]
    sides += [LinearMap.of(np.eye(width) + random.normal(0, 0.3, (width, width)), np.zeros(width))]
    return LinearMaps(*sides)


@pytest.fixture
def adapted(base: DualEncoder) -> LinearlyAdapted:
    return LinearlyAdapted(base, maps(base.width), ABOUT)


def by_hand(rows: np.ndarray, side: LinearMap) -> np.ndarray:
    found = np.stack([(row.astype(np.float64) - side.mean) @ side.matrix for row in rows])
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def test_rows_are_the_bases_mapped(adapted: LinearlyAdapted, scenes_folder: Path, tmp_path: Path) -> None:
    part = read_collection(scenes_folder).split("test")
    shown = [part.image(row) for row in range(4)]
    texts = list(part.captions[:4])
    np.testing.assert_allclose(
        adapted.encode_images(shown),
        by_hand(adapted.base.encode_images(shown), adapted.maps.image),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        adapted.encode_texts(texts), by_hand(adapted.base.encode_texts(texts), adapted.maps.text), atol=1e-5
    )
    encoded = encode_collection(adapted, part, tmp_path / "rows", "test")
    np.testing.assert_allclose(encoded.images.rows[:4], adapted.encode_images(shown), atol=1e-6)
    assert encoded.about["encoder"]["adapted"] == ABOUT


def test_maps_that_change_nothing_are_the_encoder_itself(base: DualEncoder) -> None:
    same = LinearlyAdapted(base, LinearMaps.identity(base.width), {"pairs": 0})
    assert same.fingerprint == base.fingerprint
    assert np.array_equal(same.encode_texts(["a ring"]), base.encode_texts(["a ring"]))


def test_maps_of_another_width_are_refused(base: DualEncoder) -> None:
    with pytest.raises(MismatchError, match=rf"width 5 for an encoder of width {base.width}"):
        LinearlyAdapted(base, LinearMaps.identity(5), ABOUT)


def test_rows_without_an_encoder_are_refused(tmp_path: Path) -> None:
    for kind in ("images", "texts"):
        np.save(tmp_path / f"{kind}.npy", np.ones((1, 2), np.float32))
        (tmp_path / f"{kind}.txt").write_text("a\n")
    with pytest.raises(UsageError, match="holds rows, no encoder that could be adapted"):
        LinearlyAdapted(GivenRows.open(tmp_path), LinearMaps.identity(2), ABOUT)


def test_order_embeddings_are_refused(base: DualEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(base), "similarity", "order")
    refused(UsageError, "compared by order", LinearlyAdapted, base, LinearMaps.identity(base.width), ABOUT)


def test_parts_of_other_encoders_are_told(adapted: LinearlyAdapted, tmp_path: Path) -> None:
    folder = adapted.save(tmp_path / "adapted")
    maps(adapted.base.width, 7).save(folder / "maps.npz")
    refused(MismatchError, f"was saved as {adapted.fingerprint} and is", DualEncoder.load, folder)
    (folder / "maps.npz").unlink()
    refused(StorageError, "maps.npz does not exist", DualEncoder.load, folder)
    shutil.rmtree(folder / "base")
    refused(StorageError, "no encoder in base/", DualEncoder.load, folder)
    assert EncoderHeader.open(folder).family == "adapted"


RNG = np.random.default_rng(0)


def some_maps(width: int = 3, out: int = 2) -> LinearMaps:
    sides = [LinearMap.of(RNG.normal(size=(width, out)), RNG.normal(size=width)) for _ in range(2)]
    return LinearMaps(*sides)


def test_maps_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(MismatchError, match=r"\(3, 2\), less \(3,\), of texts \(3, 3\)"):
        LinearMaps(some_maps(3, 2).image, some_maps(3, 3).text)
    refused(MismatchError, r"\(3, 3\), less \(2,\)", LinearMaps, *[LinearMap.of(np.eye(3), np.zeros(2))] * 2)
    refused(NumericalError, "NaN or infinity", LinearMap.of, np.full((2, 2), np.inf), np.zeros(2))
