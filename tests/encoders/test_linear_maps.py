from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError
from diptych.encoders.adapted import LinearMap, LinearMaps
from diptych.encoders.tensors import save_tensors

RNG = np.random.default_rng(0)


def maps(width: int = 3, out: int = 2) -> LinearMaps:
    sides = [LinearMap.of(RNG.normal(size=(width, out)), RNG.normal(size=width)) for _ in range(2)]
    return LinearMaps(*sides)


def test_a_map_by_hand() -> None:
    turned = LinearMap.of(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([1.0, 0.0]))
    rows = np.array([[1.0, 3.0], [5.0, 3.0]], dtype=np.float32)
    assert np.allclose(turned(rows, "image", range(2)), [[1.0, 0.0], [0.6, 0.8]])


def test_the_identity_gives_the_same_bits() -> None:
    rows = RNG.normal(size=(5, 3)).astype(np.float32)  # not even of unit length
    same = LinearMaps.identity(3)
    assert same.is_identity
    assert same.image(rows, "image", range(5)) is rows
    assert not maps(3, 3).is_identity
    shifted = LinearMap(np.eye(3, dtype=np.float32), np.array([0, 0, 0.1], dtype=np.float32))
    assert not LinearMaps(shifted, shifted).is_identity


def test_rows_that_are_not_finite_are_named() -> None:
    with pytest.raises(NumericalError, match="text c1"):
        maps().text(np.array([[0.0, 1.0, 0.0], [np.nan, 0.0, 0.0]], np.float32), "text", ["c0", "c1"])


def test_saved_and_loaded(tmp_path: Path) -> None:
    first = maps()
    first.save(tmp_path / "maps.safetensors")
    again = LinearMaps.load(tmp_path / "maps.safetensors")
    assert again.fingerprint == first.fingerprint != maps().fingerprint
    assert np.array_equal(again.image.matrix, first.image.matrix)
    assert np.array_equal(again.text.mean, first.text.mean)
    assert (again.takes, again.width) == (3, 2)


def test_maps_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(MismatchError, match=r"\(3, 2\), of texts of \(3, 3\)"):
        LinearMaps(maps(3, 2).image, maps(3, 3).text)
    with pytest.raises(DataError, match="mean of shape"):
        LinearMap.of(np.eye(3), np.zeros(2))
    with pytest.raises(NumericalError, match="NaN or infinity"):
        LinearMap.of(np.full((2, 2), np.inf), np.zeros(2))


def test_a_file_of_other_things_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "maps.safetensors"
    with pytest.raises(StorageError, match="does not exist"):
        LinearMaps.load(file)
    file.write_bytes(b"no")
    with pytest.raises(StorageError, match="not a safetensors file"):
        LinearMaps.load(file)
    save_tensors({"weights": torch.zeros(2)}, file)
    with pytest.raises(StorageError, match="holds weights, no maps"):
        LinearMaps.load(file)
    parts = {f"{side}.{part}": torch.zeros(2) for side in ("image", "text") for part in ("matrix", "mean")}
    save_tensors(parts, file)
    with pytest.raises(StorageError, match="is damaged: a map of shape"):
        LinearMaps.load(file)
