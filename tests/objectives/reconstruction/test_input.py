from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import UsageError
from diptych.objectives.reconstruction import InputTargetDecoder, token_reconstruction_loss

GOLDEN = Path(__file__).parents[2] / "golden" / "itd_input_decoder.npz"


def slow(logits: np.ndarray, tokens: np.ndarray, lengths: np.ndarray) -> list[float]:
    """Eq. 4 word by word: each caption's sum of −log p(next word)."""
    sums = []
    for row, ids, length in zip(logits, tokens, lengths, strict=True):
        total = 0.0
        for step in range(length - 1):
            total -= math.log(math.exp(row[step][ids[step + 1]]) / sum(math.exp(x) for x in row[step]))
        sums.append(total)
    return sums


def random_case(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    lengths = random.integers(2, 7, size=4)
    tokens = random.integers(1, 9, size=(4, 6))
    tokens[np.arange(6) >= lengths[:, None]] = 0
    logits = random.normal(0, 2, (4, 6, 9))
    return torch.from_numpy(logits), torch.from_numpy(tokens), torch.from_numpy(lengths)


def golden_case() -> tuple[InputTargetDecoder, dict[str, torch.Tensor]]:
    golden = np.load(GOLDEN, allow_pickle=False)
    values = {name: torch.tensor(golden[name]) for name in golden.files}
    decoder = InputTargetDecoder(20, 10, word_width=6).double()
    decoder.load_state_dict({name[2:]: value for name, value in values.items() if name.startswith("w.")})
    return decoder, values


def test_agrees_with_the_published_code() -> None:
    decoder, golden = golden_case()
    inputs = golden["z_captions"], golden["token_ids"], golden["lengths"]
    logits = decoder(*inputs)
    np.testing.assert_allclose(logits.detach(), golden["logits"], atol=1e-9)
    for compat, reduction, name in (
        ("none", "mean", "loss_corrected_vocab_axis_softmax"),
        ("none", "token-mean", "loss_corrected_mean_per_token"),
        ("time-axis", "mean", "loss_official_time_axis_softmax"),
    ):
        loss = token_reconstruction_loss(logits, *inputs[1:], compat, reduction)  # type: ignore[arg-type]
        assert loss.item() == pytest.approx(golden[name].item(), abs=1e-9)
        direct = decoder.loss(*inputs, compat, reduction)  # type: ignore[arg-type]
        assert direct.item() == pytest.approx(golden[name].item(), abs=1e-9)


@given(st.integers(0, 10_000))
def test_agrees_with_a_slow_form(seed: int) -> None:
    logits, tokens, lengths = random_case(seed)
    sums = slow(logits.numpy(), tokens.numpy(), lengths.numpy())
    each = token_reconstruction_loss(logits, tokens, lengths, reduction="none")
    assert each.tolist() == pytest.approx(sums)
    assert token_reconstruction_loss(logits, tokens, lengths).item() == pytest.approx(sum(sums) / 4)
    per_token = token_reconstruction_loss(logits, tokens, lengths, reduction="token-mean").item()
    assert per_token == pytest.approx(sum(sums) / (int(lengths.sum()) - 4))


@given(st.integers(0, 10_000))
def test_padding_is_nowhere(seed: int) -> None:
    logits, tokens, lengths = random_case(seed)
    loss = token_reconstruction_loss(logits, tokens, lengths, reduction="none")
    inside = torch.arange(6) < lengths[:, None]
    others = token_reconstruction_loss(
        logits.masked_fill(~inside[:, :, None], 50.0),
        tokens.masked_fill(~inside, 8),
        lengths,
        reduction="none",
    )
    assert torch.equal(others, loss)
    wider = torch.cat([logits, logits], 1), torch.cat([tokens, tokens], 1)
    assert torch.equal(token_reconstruction_loss(*wider, lengths, reduction="none"), loss)
    # The published soft-max sees the padding.
    published = token_reconstruction_loss(logits, tokens, lengths, "time-axis", "none")
    assert not torch.allclose(token_reconstruction_loss(*wider, lengths, "time-axis", "none"), published)


def test_uniform_logits_cost_the_vocabulary() -> None:
    tokens = torch.tensor([[1, 5, 6, 2], [1, 2, 0, 0]])
    lengths = torch.tensor([4, 2])
    each = token_reconstruction_loss(torch.zeros(2, 4, 9), tokens, lengths, reduction="none")
    assert each.tolist() == pytest.approx([3 * math.log(9), math.log(9)])
    published = token_reconstruction_loss(torch.zeros(2, 4, 9), tokens, lengths, "time-axis", "none")
    assert published.tolist() == pytest.approx([3 * math.log(4), math.log(4)])


def test_no_state_has_read_the_token_it_predicts() -> None:
    torch.manual_seed(0)
    decoder = InputTargetDecoder(9, 5, word_width=4)
    captions = torch.randn(1, 5)
    tokens, lengths = torch.tensor([[1, 4, 5, 2]]), torch.tensor([4])
    before = decoder(captions, tokens, lengths)
    after = decoder(captions, torch.tensor([[1, 4, 7, 2]]), lengths)
    # Token 2 is predicted at step 1 and read at step 2.
    assert torch.equal(after[:, :2], before[:, :2])
    assert not torch.allclose(after[:, 2], before[:, 2])
    # The last step predicts nothing: the end token's own embedding has no gradient.
    decoder.loss(captions, tokens, lengths).backward()
    assert decoder.embed.weight.grad is not None
    assert decoder.embed.weight.grad.abs().sum(dim=1).nonzero().flatten().tolist() == [1, 4, 5]


@pytest.mark.parametrize("reduction", ["mean", "token-mean", "none"])
@pytest.mark.parametrize("compat", ["none", "time-axis"])
def test_the_lean_loss_is_the_loss(compat: str, reduction: str) -> None:
    torch.manual_seed(1)
    decoder = InputTargetDecoder(9, 5, word_width=4).double()
    _, tokens, lengths = random_case(3)
    captions = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    gradients = []
    for loss in (
        decoder.loss(captions, tokens, lengths, compat, reduction),  # type: ignore[arg-type]
        token_reconstruction_loss(
            decoder(captions, tokens, lengths),
            tokens,
            lengths,
            compat,
            reduction,  # type: ignore[arg-type]
        ),
    ):
        gradients.append(torch.autograd.grad(loss.sum(), [captions, *decoder.parameters()]))
    for lean, full in zip(*gradients, strict=True):
        torch.testing.assert_close(lean, full)
    assert gradients[0][0].abs().min() > 0


def test_logits_are_made_for_predicted_tokens_only() -> None:
    decoder = InputTargetDecoder(9, 5, word_width=4)
    made = []
    decoder.token_prediction_layer.register_forward_hook(lambda *arguments: made.append(arguments[2].shape))
    tokens = torch.zeros(3, 50, dtype=torch.int64)
    decoder.loss(torch.zeros(3, 5), tokens, torch.tensor([4, 2, 5]))
    assert made == [(8, 9)]


def test_what_does_not_fit_is_named() -> None:
    decoder = InputTargetDecoder(9, 5, word_width=4)
    tokens, lengths = torch.ones(2, 3, dtype=torch.int64), torch.tensor([3, 2])
    with pytest.raises(UsageError, match=r"\(2, 6\)"):
        decoder(torch.zeros(2, 6), tokens, lengths)
    with pytest.raises(UsageError, match=r"\(3, 5\), tokens \(2, 3\)"):
        decoder.loss(torch.zeros(3, 5), tokens, lengths)
    with pytest.raises(UsageError, match="from 2 to 4 for 3 tokens"):
        decoder.loss(torch.zeros(2, 5), tokens, torch.tensor([2, 4]))
    with pytest.raises(UsageError, match="captions of length 1"):
        decoder.loss(torch.zeros(2, 5), tokens, torch.tensor([1, 1]))
    with pytest.raises(UsageError, match=r"\(2, 4, 9\), tokens \(2, 3\)"):
        token_reconstruction_loss(torch.zeros(2, 4, 9), tokens, lengths)
    with pytest.raises(UsageError, match="compat 'time'"):
        decoder.loss(torch.zeros(2, 5), tokens, lengths, compat="time")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="reduction 'sum'"):
        decoder.loss(torch.zeros(2, 5), tokens, lengths, reduction="sum")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="0 words"):
        InputTargetDecoder(0, 5)


def test_half_precision_rows() -> None:
    torch.manual_seed(0)
    decoder = InputTargetDecoder(9, 5, word_width=4)
    _, tokens, lengths = random_case(5)
    with torch.autocast("cpu", torch.bfloat16):
        loss = decoder.loss(torch.randn(4, 5), tokens, lengths)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(float(lengths.sum() - 4) / 4 * math.log(9), rel=0.3)
