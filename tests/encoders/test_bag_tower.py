from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from refusals import refused
from torch import nn

from diptych.core.errors import UsageError
from diptych.data.vocabulary import SPECIAL, Vocabulary
from diptych.encoders.caption_tower import BagTower, BagTowerConfig
from diptych.encoders.tower import ProjectionConfig
from diptych.encoders.two_tower import TwoTowerEncoder

from .tiny_towers import two_tower

WORDS = [f"word{number}" for number in range(400)]
VOCABULARY = Vocabulary([*SPECIAL, *WORDS])


def tower(width: int = 8, projection: ProjectionConfig | None = None, **options: object) -> BagTower:
    torch.manual_seed(0)
    return BagTower(BagTowerConfig(**options), width, VOCABULARY, projection=projection).eval()


def encoder(width: int = 256, **text: object) -> TwoTowerEncoder:
    return two_tower(VOCABULARY, width, text={"kind": "bag", **text})


def some_captions(n: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 40))) for _ in range(n)]


def shuffled(captions: list[str], seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.sample(words, len(words))) for words in map(str.split, captions)]


def test_a_row_is_the_head_of_the_mean() -> None:
    model = tower(word_width=6, head="linear").double()
    tokens, lengths = model.inputs(["word1 word0 word1", "", "zebra"]).batch(np.arange(3))
    assert tokens.tolist() == [[1, 5, 4, 5, 2], [1, 2, 0, 0, 0], [1, 3, 2, 0, 0]]
    table, layer = model.embed.weight, model.head[1]
    means = torch.stack([(table[1] + 2 * table[5] + table[4] + table[2]) / 5, (table[1] + table[2]) / 2])
    expected = nn.functional.normalize(means @ layer.weight.T + layer.bias, dim=1)
    torch.testing.assert_close(model(tokens, lengths)[:2], expected)
    # In training, without dropout, the same by one product for all.
    torch.testing.assert_close(model.train()(tokens, lengths), model.eval()(tokens, lengths))


@pytest.mark.parametrize("head", ["none", "linear", "mlp"])
def test_order_batch_and_padding_change_no_bit(head: str) -> None:
    words = {} if head == "none" else {"word_width": 300}
    model, captions = encoder(head=head, **words), some_captions(300)
    rows = model.encode_texts(captions)
    assert len(np.unique(rows, axis=0)) == len(captions)
    for seed in range(3):
        assert np.array_equal(model.encode_texts(shuffled(captions, seed)), rows)
    others = shuffled(captions, 3)
    for size in (1, 3, 64):
        assert np.array_equal(model.encode_texts(others, batch_size=size), rows)
    for place in (0, 7, 299):
        assert np.array_equal(model.encode_texts(others[place : place + 1])[0], rows[place])
    order = np.random.default_rng(0).permutation(len(captions))
    assert np.array_equal(model.encode_texts([others[place] for place in order]), rows[order])
    beside_a_long_one = model.encode_texts([" ".join(some_captions(300, 1)), *others])
    assert np.array_equal(beside_a_long_one[1:], rows)


def test_all_words_count_however_many_there_are() -> None:
    model = encoder(width=16)
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


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="word_width 6 differs from the shared width 8") as caught:
        tower(word_width=6)
    assert "head = 'linear'" in caught.value.fix
    refused(ValidationError, "batch_norm is of a head", BagTowerConfig, head="none", batch_norm=True)
    for unknown in ("max_tokens", "word_dropout", "bidirectional"):
        refused(ValidationError, "Extra inputs", BagTowerConfig, **{unknown: 1})
