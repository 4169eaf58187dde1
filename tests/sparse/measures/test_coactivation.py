from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError
from diptych.sparse.measures import empty_share, flops, nonzeros

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "d2s_metrics.json").read_text())
TEXTS = csr_array(np.array([[1, 0, 2, 0], [0, 0, 3, 1]], dtype=np.float32))
IMAGES = csr_array(np.array([[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0.5, 0]], dtype=np.float32))


def test_by_hand() -> None:
    # common terms of captions 0 and 1 with pictures 0, 1, 2: 2, 0, 1 and 1, 0, 1
    assert flops(TEXTS, IMAGES) == 5 / 6
    assert nonzeros(TEXTS) == 2
    assert nonzeros(IMAGES) == 4 / 3
    assert empty_share(IMAGES) == 1 / 3
    assert empty_share(TEXTS) == 0


def test_golden() -> None:
    texts, images = (
        csr_array(np.array(GOLDEN[name], dtype=np.float32)) for name in ("sparse_text", "sparse_img")
    )
    assert flops(texts, images) == pytest.approx(GOLDEN["results"]["flops"], abs=1e-12)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 6), m=st.integers(1, 6))
def test_the_double_sum(seed: int, n: int, m: int) -> None:
    random = np.random.default_rng(seed)
    texts, images = ((random.random((size, 9)) < 0.3).astype(np.float32) for size in (n, m))
    found = flops(csr_array(3 * texts), csr_array(0.1 * images))
    assert found == pytest.approx(np.mean([[t @ i for i in images] for t in texts]))


def test_a_stored_zero_is_no_term() -> None:
    rows = csr_array(
        (np.array([0, 2], dtype=np.float32), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 3)
    )
    assert nonzeros(rows) == 0.5
    assert empty_share(rows) == 0.5
    assert flops(rows, rows) == 0.25


def test_nothing_and_other_terms() -> None:
    with pytest.raises(MismatchError, match="rows of 4 terms, pictures of 3"):
        flops(TEXTS, IMAGES[:, :3])
    with pytest.raises(DataError, match="0 captions and 3 pictures"):
        flops(TEXTS[:0], IMAGES)
    for measure in (nonzeros, empty_share):
        with pytest.raises(DataError, match="a mean over no rows"):
            measure(TEXTS[:0])
