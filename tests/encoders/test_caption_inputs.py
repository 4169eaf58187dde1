from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import UsageError
from diptych.data.vocabulary import END, PADDING, SPECIAL, START, UNKNOWN, Vocabulary
from diptych.encoders.caption_inputs import TargetInputs, TokenInputs

WORDS = [f"word{i}" for i in range(40)]
VOCABULARY = Vocabulary([*SPECIAL, *WORDS])


def inputs(*counts: int) -> TokenInputs:
    """Captions of so many different words each."""
    return TokenInputs(*VOCABULARY.encode_all([" ".join(WORDS[:count]) for count in counts]))


def captions(tokens: torch.Tensor, lengths: torch.Tensor) -> list[list[int]]:
    """Token ids without padding, which has to be all that follows."""
    assert tokens.shape == (len(lengths), int(lengths.max()))
    found = []
    for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True):
        assert set(row[length:]) <= {PADDING}
        found.append(row[:length])
    return found


def test_without_noise_it_is_the_batch() -> None:
    given_captions = inputs(3, 0, 7)
    rows = np.array([2, 0, 1])
    assert given_captions.lengths.tolist() == [5, 2, 9]
    plain, noisy = given_captions.batch(rows), given_captions.augmented(rows, 0.0, 0.0, 0, 0)
    assert torch.equal(plain[0], noisy[0])
    assert torch.equal(plain[1], noisy[1])
    assert noisy[0].dtype == noisy[1].dtype == torch.int64


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


def test_a_caption_does_not_depend_on_its_neighbours() -> None:
    given_captions = inputs(12, 30, 3, 40, 25)
    together = captions(*given_captions.augmented(np.arange(5), 0.3, 0.3, 7, 2))
    for row in range(5):
        alone = captions(*given_captions.augmented(np.array([row]), 0.3, 0.3, 7, 2))
        assert alone == [together[row]]
    turned = captions(*given_captions.augmented(np.arange(5)[::-1], 0.3, 0.3, 7, 2))
    assert turned == together[::-1]


def test_seed_epoch_and_caption_make_other_noise() -> None:
    given_captions = inputs(40, 40)
    noise = {
        tuple(captions(*given_captions.augmented(np.array([row]), 0.5, 0.2, seed, epoch))[0])
        for row, seed, epoch in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 2**40, 0)]
    }
    assert len(noise) == 5


def test_words_are_dropped_as_often_as_said_and_evenly() -> None:
    given_captions = inputs(*[20] * 4000)
    tokens, lengths = given_captions.augmented(np.arange(4000), 0.1, 0.0, 3, 0)
    unknown = (tokens[:, 1:21] == UNKNOWN).double().mean(dim=0)
    assert torch.allclose(unknown, torch.full((20,), 0.1).double(), atol=0.03)  # five standard deviations
    tokens, lengths = given_captions.augmented(np.arange(4000), 0.0, 0.1, 3, 0)
    assert set(lengths.tolist()) == {20}
    gone = 1 - torch.bincount(tokens.flatten(), minlength=24)[4:24] / 4000
    assert torch.allclose(gone, torch.full((20,), 0.1), atol=0.03)


def test_vectors_are_batched_and_have_no_words() -> None:
    vectors = np.arange(12, dtype=np.float64).reshape(4, 3)
    targets = TargetInputs(vectors)
    rows, ones = targets.batch(np.array([3, 1]))
    assert rows.dtype == torch.float32
    assert rows.tolist() == [[9, 10, 11], [3, 4, 5]]
    assert ones.tolist() == [1, 1]
    assert targets.lengths.tolist() == [1, 1, 1, 1]
    with pytest.raises(UsageError, match=r"no word can be unknown \(0.1\)"):
        targets.augmented(np.array([0]), 0.1, 0.2, 0, 0)
