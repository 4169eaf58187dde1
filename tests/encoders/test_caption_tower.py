from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from refusals import refused
from torch import nn

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.data.vocabulary import END, PADDING, SPECIAL, START, UNKNOWN, Vocabulary
from diptych.encoders.caption_tower import (
    BagTower,
    BagTowerConfig,
    CaptionTower,
    CaptionTowerConfig,
    TargetTower,
    TargetTowerConfig,
)
from diptych.encoders.targets.contract import TargetModel, TargetOptions, make_target_model
from diptych.encoders.tower import ProjectionConfig, TokenInputs
from diptych.encoders.two_tower import TwoTowerEncoder

from .tiny_towers import two_tower

VOCABULARY = Vocabulary([*SPECIAL, *(f"word{i}" for i in range(26))])


def tower(width: int = 8, **options: object) -> CaptionTower:
    torch.manual_seed(0)
    return CaptionTower(CaptionTowerConfig(word_width=6, **options), width, VOCABULARY).double().eval()


def one_direction(model: CaptionTower, tokens: torch.Tensor, suffix: str) -> torch.Tensor:
    """(t, state) outputs of one direction by a separate one-directional GRU."""
    state = model.rnn.hidden_size
    single = nn.GRU(6, state, batch_first=True).double()
    single.load_state_dict({name: getattr(model.rnn, name + suffix) for name in single.state_dict()})
    outputs: torch.Tensor = single(model.embed(tokens)[None])[0][0]
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


BAG_WORDS = [f"word{number}" for number in range(400)]
BAG_VOCABULARY = Vocabulary([*SPECIAL, *BAG_WORDS])


def bag(width: int = 8, projection: ProjectionConfig | None = None, **options: object) -> BagTower:
    torch.manual_seed(0)
    return BagTower(BagTowerConfig(**options), width, BAG_VOCABULARY, projection=projection).eval()


def bag_encoder(width: int = 256, **text: object) -> TwoTowerEncoder:
    return two_tower(BAG_VOCABULARY, width, text={"kind": "bag", **text})


def some_captions(n: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(BAG_WORDS, k=draw.randint(1, 40))) for _ in range(n)]


def shuffled(captions: list[str], seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.sample(words, len(words))) for words in map(str.split, captions)]


def test_a_row_is_the_head_of_the_mean() -> None:
    model = bag(word_width=6, head="linear").double()
    tokens, lengths = model.inputs(["word1 word0 word1", "", "zebra"]).batch(np.arange(3))
    assert tokens.tolist() == [[1, 5, 4, 5, 2], [1, 2, 0, 0, 0], [1, 3, 2, 0, 0]]
    table, layer = model.embed.weight, model.head[1]
    means = torch.stack([(table[1] + 2 * table[5] + table[4] + table[2]) / 5, (table[1] + table[2]) / 2])
    expected = nn.functional.normalize(means @ layer.weight.T + layer.bias, dim=1)
    torch.testing.assert_close(model(tokens, lengths)[:2], expected)
    # In training, without dropout, the same by one product for all.
    torch.testing.assert_close(model.train()(tokens, lengths), model.eval()(tokens, lengths))


def test_all_words_count_however_many_there_are() -> None:
    model = bag_encoder(width=16)
    long = ["word0"] * 4999
    rows = model.encode_texts(
        [" ".join([*long, "word7"]), " ".join(["word7", *long]), " ".join([*long, "word9"])]
    )
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])
    assert model.describe()["text"] == {"limit": None, "words": 404, "cut": "none", "order": "ignored"}
    # An ending is one more part of the bag, and nothing makes room for it.
    assert model.with_endings(["word0 word1"], ["word2"]) == ["word0 word1 word2"]
    tokens, _ = model.model.text.inputs(["word0 word1"]).batch(np.arange(1), ["word2"])
    assert tokens.tolist() == [[1, 4, 5, 6, 2]]


CAPTIONS = ["a red star", "a blue ring", "a red ring", "two blue stars", "a star left of a ring"]


def targets() -> TargetModel:
    return make_target_model(TargetOptions(kind="lsa", width=3), CAPTIONS)


def target_tower(width: int = 3, **options: object) -> TargetTower:
    torch.manual_seed(0)
    return TargetTower(TargetTowerConfig.model_validate(options), width, targets())


def test_without_a_head_targets_are_fixed() -> None:
    model = target_tower()
    assert list(model.parameters()) == []
    rows = model(*model.inputs(CAPTIONS).batch(np.array([4, 0])))
    np.testing.assert_allclose(rows, targets().encode(CAPTIONS)[[4, 0]], atol=1e-6)


def test_a_head_fine_tunes_them() -> None:
    model = target_tower(width=5, head="mlp")
    assert [(name, tuple(value.shape)) for name, value in model.named_parameters()] == [
        ("head.1.weight", (3, 3)),
        ("head.4.weight", (5, 3)),
    ]
    vectors, ones = model.inputs(CAPTIONS).batch(np.arange(5))
    hidden = torch.relu(vectors @ model.head[1].weight.T)
    expected = nn.functional.normalize(hidden @ model.head[4].weight.T, dim=1)
    torch.testing.assert_close(model(vectors, ones), expected)
    linear = target_tower(width=4, head="linear", bias=True, batch_norm=True)
    assert len(list(linear.parameters())) == 4
    assert linear(vectors, ones).shape == (5, 4)


WORDS = [f"word{i}" for i in range(40)]
INPUT_VOCABULARY = Vocabulary([*SPECIAL, *WORDS])


def inputs(*counts: int) -> TokenInputs:
    """Captions of so many different words each."""
    return TokenInputs(
        *INPUT_VOCABULARY.encode_all([" ".join(WORDS[:count]) for count in counts]), INPUT_VOCABULARY
    )


def captions(tokens: torch.Tensor, lengths: torch.Tensor) -> list[list[int]]:
    """Token ids without padding, which has to be all that follows."""
    assert tokens.shape == (len(lengths), int(lengths.max()))
    found = []
    for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True):
        assert set(row[length:]) <= {PADDING}
        found.append(row[:length])
    return found


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.floats(0, 1),
    st.floats(0, 0.99),
    st.integers(0, 2**31),
)
def test_start_and_end_stay_and_a_share_of_the_words_goes(
    counts: list[int], unknown: float, deleted: float, seed: int
) -> None:
    rows = np.arange(len(counts))
    found = captions(*inputs(*counts).augmented(rows, unknown, deleted, seed, 1))
    for count, caption in zip(counts, found, strict=True):
        assert (caption[0], caption[-1]) == (START, END)
        words = caption[1:-1]
        assert len(words) == count - int(deleted * count + 1e-9)
        known = [word for word in words if word != UNKNOWN]
        # What is left stands in its order: the words of these captions are numbered upwards.
        assert known == sorted(set(known))
        assert all(4 <= word < 4 + count for word in known)


def test_words_are_dropped_as_often_as_given_and_evenly() -> None:
    given_captions = inputs(*[20] * 4000)
    tokens, lengths = given_captions.augmented(np.arange(4000), 0.1, 0.0, 3, 0)
    unknown = (tokens[:, 1:21] == UNKNOWN).double().mean(dim=0)
    assert torch.allclose(unknown, torch.full((20,), 0.1).double(), atol=0.03)  # five standard deviations
    tokens, lengths = given_captions.augmented(np.arange(4000), 0.0, 0.1, 3, 0)
    assert set(lengths.tolist()) == {20}
    gone = 1 - torch.bincount(tokens.flatten(), minlength=24)[4:24] / 4000
    assert torch.allclose(gone, torch.full((20,), 0.1), atol=0.03)


DIGITS = Vocabulary.build(["w0 w1 w2 w3 w4 w5 w6 w7 w8 w9"], 1, tuple("0123456789"))


def ended_inputs(texts: list[str], max_tokens: int | None = None) -> TokenInputs:
    return TokenInputs(*DIGITS.encode_all(texts, max_tokens), DIGITS, max_tokens)


def long(count: int) -> str:
    return " ".join(f"w{place}" for place in range(count))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.none() | st.integers(8, 14), st.data())
def test_the_limit_cuts_the_caption_and_never_the_ending(
    counts: list[int], limit: int | None, data: st.DataObject
) -> None:
    """Rows say which captions, endings which place in the batch; without a limit nothing is cut."""
    code = st.integers(0, 999_999).map(lambda number: " ".join(f"{number:06d}"))
    endings = [data.draw(code | st.just("")) for _ in counts]
    rows = np.array(data.draw(st.permutations(range(len(counts)))))
    tokens, lengths = ended_inputs([long(count) for count in counts], limit).batch(rows, endings)
    assert tokens.dtype == lengths.dtype == torch.int64
    for row, ending, caption in zip(rows.tolist(), endings, captions(tokens, lengths), strict=True):
        digits = [DIGITS.entries.index(word) for word in ending.split()]
        kept = counts[row] if limit is None else min(counts[row], limit - 2 - len(digits))
        assert caption == [*DIGITS.encode(long(kept))[:-1], *digits, END]
        assert limit is None or len(caption) <= limit


@pytest.mark.parametrize(
    ("bidirectional", "pool", "head"),
    [(False, "last", "none"), (True, "mean", "linear"), (False, "max", "mlp"), (True, "last", "mlp")],
)
def test_padding_and_neighbours_change_nothing(bidirectional: bool, pool: str, head: str) -> None:
    model = tower(bidirectional=bidirectional, pool=pool, head=head)
    captions = [[1, 5, 6, 7, 2], [1, 9, 2], [1, 4, 8, 2]]
    tokens = torch.full((3, 9), PADDING)
    for row, caption in enumerate(captions):
        tokens[row, : len(caption)] = torch.tensor(caption)
    together = model(tokens, torch.tensor([5, 3, 4]))
    for row, caption in enumerate(captions):
        torch.testing.assert_close(
            together[row], model(torch.tensor([caption]), torch.tensor([len(caption)]))[0]
        )
    torch.testing.assert_close(together.norm(dim=1), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("head", ["none", "mlp"])
def test_order_batch_and_padding_change_no_bit_of_a_bag(head: str) -> None:
    model = bag_encoder(head=head, **({} if head == "none" else {"word_width": 300}))
    captions = some_captions(300)
    rows = model.encode_texts(captions)
    assert len(np.unique(rows, axis=0)) == len(captions)
    others = shuffled(captions, 3)
    for size in (1, 3, 256):
        assert np.array_equal(model.encode_texts(others, batch_size=size), rows)
    order = np.random.default_rng(0).permutation(len(captions))
    assert np.array_equal(model.encode_texts([others[place] for place in order]), rows[order])
    after_a_long_one = model.encode_texts([" ".join(some_captions(300, 1)), *others])
    assert np.array_equal(after_a_long_one[1:], rows)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", numbers=np.zeros(3))
    np.savez(tmp_path / "wide.npz", words=np.array(["a"]), vectors=np.zeros((1, 99), np.float32))
    refused(StorageError, "is not a file of word vectors", tower, word_vectors=str(tmp_path / "other.npz"))
    message = r"\(1, 99\) do not fit word_width 6"
    refused(MismatchError, message, tower, word_vectors=str(tmp_path / "wide.npz"))
    refused(UsageError, "hidden_state 4 differs from the shared width 8", tower, hidden_state=4)
    assert tower(hidden_state=4, head="linear")(torch.tensor([[1, 2]]), torch.tensor([2])).shape == (1, 8)
    refused(UsageError, "is odd", tower, width=7, bidirectional=True)
    error = refused(UsageError, "word_width 6 differs from the shared width 8", bag, word_width=6)
    assert "head = 'linear'" in error.fix
    refused(ValidationError, "batch_norm is of a head", BagTowerConfig, head="none", batch_norm=True)
    for unknown in ("max_tokens", "word_dropout", "bidirectional"):
        refused(ValidationError, "Extra inputs", BagTowerConfig, **{unknown: 1})
    error = refused(UsageError, "the targets' width 3 differs from the shared width 8", target_tower, width=8)
    assert "model.width = 3" in error.fix
    projected = TargetTower(TargetTowerConfig(), 8, targets(), projection=ProjectionConfig(base=3, hidden=4))
    assert projected(torch.eye(3), torch.ones(3)).shape == (3, 8)
    refused(ValidationError, "batch_norm is of a head", TargetTowerConfig, batch_norm=True)


def test_a_caption_does_not_depend_on_its_neighbours_nor_an_ending_on_noise() -> None:
    given_captions = inputs(12, 30, 3, 40, 25)
    together = captions(*given_captions.augmented(np.arange(5), 0.3, 0.3, 7, 2))
    for rows in ([2], [4, 3, 2, 1, 0]):
        found = captions(*given_captions.augmented(np.array(rows), 0.3, 0.3, 7, 2))
        assert found == [together[row] for row in rows]
    noisy = ended_inputs([long(9)] * 40), np.arange(40), 0.9, 0.5, 3, 1
    with_it = captions(*noisy[0].augmented(*noisy[1:], ["0 1 2 3 4 5"] * 40))
    for ended, bare in zip(with_it, captions(*noisy[0].augmented(*noisy[1:])), strict=True):
        assert ended == [*bare[:-1], 4, 5, 6, 7, 8, 9, END]
    assert sum(caption.count(UNKNOWN) for caption in with_it) > 100
    message = "captions of 7 tokens have no room .*set model.text.max_tokens to at least 8"
    refused(UsageError, message, ended_inputs(["w1 w2"], 7).batch, np.array([0]), ["0 0 0 0 0 1"])
    fits = ended_inputs(["w1 w2"], 8).batch(np.array([0]), ["0 0 0 0 0 1"])
    assert captions(*fits)[0][1:-1] == [4] * 5 + [5]
