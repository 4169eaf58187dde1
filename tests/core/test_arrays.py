from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.arrays import read_arrays, write_arrays
from diptych.core.errors import StorageError


def test_written_and_read_again_to_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "one.npz"
    values = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["x", "yz"])}
    write_arrays(file, **values)
    a, b = read_arrays(file, ("a", "b"))
    assert np.array_equal(a, values["a"])
    assert b.tolist() == ["x", "yz"]
    before = file.read_bytes()
    write_arrays(file, **values)
    assert file.read_bytes() == before


def test_damaged_missing_and_pickled_ones_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "one.npz"
    with pytest.raises(StorageError, match="cannot be read"):
        read_arrays(file, ("a",))
    write_arrays(file, a=np.arange(3))
    with pytest.raises(StorageError, match="b"):
        read_arrays(file, ("a", "b"))
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(StorageError, match="remove it"):
        read_arrays(file, ("a",))
    np.savez(file, a=np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(StorageError, match="cannot be read"):
        read_arrays(file, ("a",))
