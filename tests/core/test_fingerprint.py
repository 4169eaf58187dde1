from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.fingerprint import (
    fingerprint,
    fingerprint_arrays,
    fingerprint_bytes,
    fingerprint_file,
    fingerprint_lists,
)


def test_what_counts_in_a_fingerprint(tmp_path: Path) -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert len(fingerprint(None)) == 16
    base = fingerprint_arrays({"x": np.zeros((2, 3), np.float32)})
    assert base == fingerprint_arrays([("x", np.zeros((2, 3), np.float32))])
    assert base != fingerprint_arrays({"y": np.zeros((2, 3), np.float32)})
    assert base != fingerprint_arrays({"x": np.zeros((3, 2), np.float32)})
    assert base != fingerprint_arrays({"x": np.zeros((2, 3), np.int32)})
    assert fingerprint_arrays({"x": np.float64(1)}) != fingerprint_arrays({"x": np.float64(2)})
    content = b"same" * (1 << 19)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(content)
    assert fingerprint_file(tmp_path / "a") == fingerprint_file(tmp_path / "b") == fingerprint_bytes(content)
    (tmp_path / "b").write_bytes(b"other")
    assert fingerprint_file(tmp_path / "a") != fingerprint_file(tmp_path / "b")


@settings(max_examples=30)
@given(
    st.lists(st.one_of(st.text(max_size=4), st.integers(), st.dictionaries(st.text(max_size=2), st.none())))
)
def test_lists_that_are_gone_through_count_like_lists(values: list[object]) -> None:
    many = values * 800
    assert fingerprint_lists(iter(values), iter(many), []) == fingerprint(values, many, [])
    assert fingerprint("text", iter(many), 3) == fingerprint("text", many, 3)
