from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diptych.encoders.rerank_pairs import PairPlan


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_every_pair_once_and_every_candidate_knows_its_pair(
    n: int, m: int, k: int, pictures: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    i2t = np.stack([random.permutation(m)[:k] for _ in range(n)])
    t2i = np.stack([random.permutation(n)[:k] for _ in range(m)])
    plan = PairPlan(i2t, t2i, pictures)
    assert len(plan) == -(-n // pictures)
    seen: list[tuple[int, int]] = []
    matching = [np.full(i2t.shape, np.nan), np.full(t2i.size, np.nan)]
    for number in range(len(plan)):
        block = plan.block(number)
        pairs = list(zip(block.images.tolist(), block.texts.tolist(), strict=True))
        assert pairs == sorted(pairs)
        assert all(block.first <= image < block.first + pictures for image, _ in pairs)
        assert plan.sizes[number] == len(block) == len(pairs)
        seen += pairs
        scores = block.images * 100.0 + block.texts  # a pair's score says which pair it is
        matching[0][block.first : block.first + len(block.i2t)] = scores[block.i2t]
        matching[1][block.t2i_cells] = scores[block.t2i]
    wanted = {(i, int(t)) for i in range(n) for t in i2t[i]} | {(int(i), t) for t in range(m) for i in t2i[t]}
    assert len(seen) == len(set(seen))
    assert set(seen) == wanted
    np.testing.assert_array_equal(matching[0], np.arange(n)[:, None] * 100.0 + i2t)
    np.testing.assert_array_equal(matching[1].reshape(t2i.shape), t2i * 100.0 + np.arange(m)[:, None])
