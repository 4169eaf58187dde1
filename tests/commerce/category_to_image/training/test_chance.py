from __future__ import annotations

import numpy as np
import pytest
import torch
from diptych.commerce.category_to_image.training.adamw import AdamW
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


def test_adamw_by_its_formula() -> None:
    value = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
    other = torch.nn.Parameter(torch.tensor(3.0))
    still = torch.nn.Parameter(torch.tensor(4.0))
    parameters = {"value": value, "other": other, "still": still}
    optimizer = AdamW(parameters, 0.1, 0.5, frozenset({"other"}))
    p, m, v = np.array([1.0, -2.0, 0.5, 3.0]), np.zeros(4), np.zeros(4)
    for step in range(1, 5):
        g = np.array([0.3, -1.0, 0.0, 2.0]) * step
        value.grad, other.grad = torch.tensor(g[:3]).float(), torch.tensor(g[3]).float()
        if step == 3:  # put away and taken out again
            kept, optimizer = optimizer.state(), AdamW(parameters, 0.1, 0.5, frozenset({"other"}))
            optimizer.restore(kept)
        optimizer.step()
        p[:3] *= 1 - 0.1 * 0.5
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        p -= 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        np.testing.assert_allclose([*value.tolist(), other.item()], p, rtol=1e-5)
        assert value.grad is None
    assert still.item() == 4.0
    with pytest.raises(KeyError):
        optimizer.restore(
            {"value|first": torch.zeros(2), "value|second": torch.zeros(2), "value|steps": torch.ones(())}
        )
