from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused
from torch import nn

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.data.vocabulary import PADDING, SPECIAL, UNKNOWN, Vocabulary
from diptych.encoders.caption_tower import CaptionTower, CaptionTowerConfig

GOLDEN = Path(__file__).parents[1] / "golden"
VOCABULARY = Vocabulary([*SPECIAL, *(f"word{i}" for i in range(26))])

PUBLISHED = {"fc.projector.0.": "head.1.", "fc.projector.2.": "head.4.", "bn.": "head.5."}


def tower(width: int = 8, **options: object) -> CaptionTower:
    torch.manual_seed(0)
    return CaptionTower(CaptionTowerConfig(word_width=6, **options), width, VOCABULARY).double().eval()


def test_agrees_with_the_published_tower() -> None:
    golden = np.load(GOLDEN / "gru_caption_encoder_vsepp.npz", allow_pickle=False)
    published = tower(10)
    published.load_state_dict({k[2:]: torch.tensor(golden[k]) for k in golden.files if k.startswith("w.")})
    rows = published(torch.tensor(golden["token_ids"]), torch.tensor(golden["lengths"]))
    np.testing.assert_allclose(rows.detach(), golden["embedding"], atol=1e-9)
    (rows * torch.tensor(golden["cotangent"])).sum().backward()
    np.testing.assert_allclose(published.embed.weight.grad, golden["grad_embed_weight"], atol=1e-9)
    np.testing.assert_allclose(published.rnn.weight_hh_l0.grad, golden["grad_weight_hh_l0"], atol=1e-9)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("pool", ["last", "mean", "max"])
@pytest.mark.parametrize("head", ["none", "linear", "mlp"])
def test_padding_and_neighbours_change_nothing(bidirectional: bool, pool: str, head: str) -> None:
    model = tower(bidirectional=bidirectional, pool=pool, head=head)
    captions = [[1, 5, 6, 7, 2], [1, 9, 2], [1, 4, 8, 2]]
    tokens = torch.full((3, 9), PADDING)
    for row, caption in enumerate(captions):
        tokens[row, : len(caption)] = torch.tensor(caption)
    together = model(tokens, torch.tensor([5, 3, 4]))
    for row, caption in enumerate(captions):
        alone = model(torch.tensor([caption]), torch.tensor([len(caption)]))
        torch.testing.assert_close(together[row], alone[0])
    torch.testing.assert_close(together.norm(dim=1), torch.ones(3, dtype=torch.float64))


def one_direction(model: CaptionTower, tokens: torch.Tensor, suffix: str) -> torch.Tensor:
    """(t, state) outputs of one direction by a separate one-directional GRU."""
    state = model.rnn.hidden_size
    alone = nn.GRU(6, state, batch_first=True).double()
    alone.load_state_dict({name: getattr(model.rnn, name + suffix) for name in alone.state_dict()})
    outputs: torch.Tensor = alone(model.embed(tokens)[None])[0][0]
    return outputs


@pytest.mark.parametrize("compat", ["none", "last-token"])
def test_each_direction_is_taken_where_it_should(compat: str) -> None:
    model = tower(bidirectional=True, compat=compat)
    tokens = torch.tensor([1, 5, 6, 7, 2])
    forward = one_direction(model, tokens, "")[-1]
    backward = one_direction(model, tokens.flip(0), "_reverse")
    # Right: the backward half has read the whole caption; as published: only the last token.
    half = backward[-1] if compat == "none" else backward[0]
    expected = nn.functional.normalize(torch.cat([forward, half]), dim=0)
    torch.testing.assert_close(model(tokens[None], torch.tensor([5]))[0], expected)


def test_word_dropout_is_of_words_only_and_in_training_only() -> None:
    model = tower(word_dropout=0.99).train()
    seen: list[torch.Tensor] = []
    model.embed.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    tokens = torch.tensor([[1, *range(4, 24), 2, 0]])
    torch.manual_seed(0)
    model(tokens, torch.tensor([22]))
    model.eval()(tokens, torch.tensor([22]))
    assert (seen[0][0, 1:21] == UNKNOWN).sum() >= 18
    assert seen[0][0, [0, 21, 22]].tolist() == [1, 2, 0]
    assert torch.equal(seen[1], tokens)


def test_word_vectors_start_the_words_they_know(tmp_path: Path) -> None:
    vectors = np.array([[1, 2, 3, 4], [-4, -3, -2, -1]], dtype=np.float32)
    np.savez(tmp_path / "v.npz", words=np.array(["word3", "elsewhere"]), vectors=vectors)
    with_vectors = tower(word_vectors=str(tmp_path / "v.npz")).embed.weight
    without = tower().embed.weight
    changed = (with_vectors != without).any(dim=1)
    assert changed.nonzero().flatten().tolist() == [7]
    cosine = nn.functional.cosine_similarity(
        with_vectors[7, :4], torch.tensor([1.0, 2, 3, 4]).double(), dim=0
    )
    assert cosine.item() == pytest.approx(1.0)
    assert torch.equal(with_vectors[7, 4:], without[7, 4:])


def test_what_is_no_file_of_word_vectors(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", numbers=np.zeros(3))
    refused(StorageError, "is not a file of word vectors", tower, word_vectors=str(tmp_path / "other.npz"))
    np.savez(tmp_path / "wide.npz", words=np.array(["a"]), vectors=np.zeros((1, 99), np.float32))
    with pytest.raises(MismatchError, match=r"\(1, 99\) do not fit word_width 6"):
        tower(word_vectors=str(tmp_path / "wide.npz"))


def test_a_state_that_does_not_fit_needs_a_head() -> None:
    refused(UsageError, "hidden_state 4 differs from the shared width 8", tower, hidden_state=4)
    assert tower(hidden_state=4, head="linear")(torch.tensor([[1, 2]]), torch.tensor([2])).shape == (1, 8)
    refused(UsageError, "is odd", tower, width=7, bidirectional=True)


@pytest.mark.parametrize("form", ["infonce", "triplet"])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_agrees_with_the_published_two_directional_tower(form: str, mode: str) -> None:
    golden = np.load(GOLDEN / "ltd_bigru_caption_encoder.npz", allow_pickle=False)
    model = CaptionTower(
        CaptionTowerConfig(
            word_width=6,
            bidirectional=True,
            head="mlp",
            hidden=10,
            bias=False,
            batch_norm=form == "triplet",
            compat="last-token",
        ),
        10,
        Vocabulary([*SPECIAL, *(f"word{i}" for i in range(16))]),
    ).double()
    prefix = f"{form}.w."
    weights = {}
    for key in golden.files:
        if key.startswith(prefix):
            name = key.removeprefix(prefix)
            for old, new in PUBLISHED.items():
                name = new + name.removeprefix(old) if name.startswith(old) else name
            weights[name] = torch.tensor(golden[key])
    model.load_state_dict(weights)
    rows = model.train(mode == "train")(torch.tensor(golden["token_ids"]), torch.tensor(golden["lengths"]))
    np.testing.assert_allclose(rows.detach(), golden[f"{form}.embedding_{mode}_mode"], atol=1e-9)
