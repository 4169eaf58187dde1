from __future__ import annotations

import numpy as np
import pytest

from diptych.core.errors import NumericalError
from diptych.index.slots import IdTable
from diptych.index.vectors import RowStore


def test_rows_grow_behind_a_base_that_is_never_written():
    base = np.arange(6, dtype=np.float32).reshape(3, 2)
    base.setflags(write=False)
    store = RowStore(base)
    for value in range(5):
        store.append(np.full((1, 2), value, dtype=np.float32))
    assert len(store) == 8
    assert store.take(np.array([[0, 7], [3, 2]])).tolist() == [[[0, 1], [4, 4]], [[0, 0], [4, 5]]]
    assert [(start, len(block)) for start, block in store.blocks(2)] == [
        (0, 2),
        (2, 1),
        (3, 2),
        (5, 2),
        (7, 1),
    ]
    np.testing.assert_allclose(store.norms, np.linalg.norm(store.take(np.arange(8)), axis=1), rtol=1e-6)


def test_written_rows_are_a_numpy_file(tmp_path):
    store = RowStore(np.eye(4, dtype=np.float32))
    store.append(np.full((2, 4), 2, dtype=np.float32))
    store.write(tmp_path / "rows.npy", np.array([5, 0, 2]))
    written = np.load(tmp_path / "rows.npy", mmap_mode="r", allow_pickle=False)
    assert written.dtype == np.float32
    assert written.tolist() == [[2, 2, 2, 2], [1, 0, 0, 0], [0, 0, 1, 0]]


def test_norms_refuse_what_is_not_finite():
    with pytest.raises(NumericalError, match=r"row 1\) is not finite"):
        _ = RowStore(np.array([[1, 0], [np.nan, 0]], dtype=np.float32)).norms


def test_ids_keep_their_slots():
    table = IdTable(["a", "b", "c"])
    assert table.alive is None
    table.kill(["b"])
    table.append(["d", "b"])
    assert table.live_slots().tolist() == [0, 2, 3, 4]
    assert table.names[[0, 1, 4]].tolist() == ["a", "b", "b"]
    assert (len(table), table.live) == (5, 4)
    assert "b" in table
    table.kill(["b"])
    assert "b" not in table
    assert table.alive is not None
    assert table.alive.tolist() == [True, False, True, True, False]


def test_a_table_read_back_knows_its_dead():
    table = IdTable(["a", "b", "a"], np.array([True, False, False]))
    table.kill(["a"])
    assert table.live_slots().tolist() == [1]
