from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.category_to_image.training.train import StepDropout, batches_of, hidden_modalities


@given(st.integers(2, 60), st.integers(2, 20), st.integers(0, 5))
def test_an_epoch_has_every_pair_once_and_no_batch_of_one(n: int, size: int, epoch: int) -> None:
    batches = list(batches_of(n, size, 0, epoch))
    assert sorted(np.concatenate(batches).tolist()) == list(range(n))
    assert min(map(len, batches)) > 1
    assert max(map(len, batches)) <= size + 1


def test_the_order_belongs_to_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(list(batches_of(50, 8, seed, epoch))).tolist()  # type: ignore[no-any-return]

    assert order(0, 1) == order(0, 1)
    assert order(0, 1) != order(0, 2)
    assert order(0, 1) != order(1, 1)


def test_a_product_has_one_modality_hidden_whoever_is_in_its_batch() -> None:
    rows = np.arange(20_000)
    hidden = hidden_modalities(0.3, 3, 0, 4, rows)
    assert hidden is not None
    shares = np.bincount(hidden + 1, minlength=4) / len(rows)
    np.testing.assert_allclose(shares, [0.7, 0.1, 0.1, 0.1], atol=0.01)
    some = hidden_modalities(0.3, 3, 0, 4, rows[100:103])
    assert some is not None
    assert some.tolist() == hidden[100:103].tolist()
    assert hidden_modalities(0.0, 3, 0, 0, rows) is None
    assert hidden_modalities(0.3, 1, 0, 0, rows) is None


def test_dropout_belongs_to_the_step_and_keeps_the_mean() -> None:
    first, again, other = (StepDropout(0.25, 0, 2, step) for step in (7, 7, 8))
    one = first(400, 101)
    assert one.dtype == torch.float32
    assert one.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float(one.mean()) == pytest.approx(1, abs=0.02)
    assert torch.equal(one, again(400, 101))
    assert not torch.equal(one, other(400, 101))
    assert not torch.equal(one, first(400, 101))  # the next layer drops others
