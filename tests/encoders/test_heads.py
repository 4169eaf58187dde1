from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from diptych.encoders.tower import LinearHead, MLPHead, make_head


@pytest.mark.parametrize("hidden", [None, 7])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_layers_are_as_asked(hidden: int | None, bias: bool, batch_norm: bool) -> None:
    head = make_head(5, 3, hidden, 0.0, bias, batch_norm)
    linear = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in linear] == (
        [(5, 3)] if hidden is None else [(5, 7), (7, 3)]
    )
    assert all((layer.bias is not None) is bias for layer in linear)
    assert isinstance(list(head.children())[-1], nn.BatchNorm1d) is batch_norm


def test_the_start_is_uniform_in_the_bound() -> None:
    torch.manual_seed(0)
    layer = LinearHead(300, 500)[1]
    bound = math.sqrt(6 / 800)
    assert 0.99 * bound < layer.weight.abs().max().item() <= bound
    assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.01)
    assert not layer.bias.any()


def test_by_hand() -> None:
    head = MLPHead(2, 1, 2, bias=False)
    with torch.no_grad():
        head[1].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, -1.0]]))
        head[4].weight.copy_(torch.tensor([[2.0, 3.0]]))
    assert head(torch.tensor([[5.0, 7.0], [-1.0, -2.0]])).tolist() == [[10.0], [6.0]]


def test_batch_norm_is_of_the_batch_in_training_and_of_what_it_saw_after() -> None:
    head = make_head(4, 3, None, batch_norm=True)
    rows = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    trained = head.train()(rows)
    torch.testing.assert_close(trained.mean(dim=0), torch.zeros(3), atol=1e-6, rtol=0)
    torch.testing.assert_close(trained.var(dim=0, correction=0), torch.ones(3), atol=1e-3, rtol=0)
    assert not torch.allclose(head.eval()(rows), trained)
