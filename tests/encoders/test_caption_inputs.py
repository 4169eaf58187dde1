from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import UsageError
from diptych.data.vocabulary import END, PADDING, SPECIAL, START, UNKNOWN, Vocabulary
from diptych.encoders.tower import TokenInputs

WORDS = [f"word{i}" for i in range(40)]
VOCABULARY = Vocabulary([*SPECIAL, *WORDS])


def inputs(*counts: int) -> TokenInputs:
    """Captions of so many different words each."""
    return TokenInputs(*VOCABULARY.encode_all([" ".join(WORDS[:count]) for count in counts]), VOCABULARY)


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


def test_a_caption_does_not_depend_on_its_neighbours() -> None:
    given_captions = inputs(12, 30, 3, 40, 25)
    together = captions(*given_captions.augmented(np.arange(5), 0.3, 0.3, 7, 2))
    for row in range(5):
        alone = captions(*given_captions.augmented(np.array([row]), 0.3, 0.3, 7, 2))
        assert alone == [together[row]]
    turned = captions(*given_captions.augmented(np.arange(5)[::-1], 0.3, 0.3, 7, 2))
    assert turned == together[::-1]


def test_words_are_dropped_as_often_as_said_and_evenly() -> None:
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


def test_an_ending_stands_before_the_end_as_if_it_had_been_written() -> None:
    texts, endings = [long(3), "", long(7)], ["0 0 1 2 3 4", "9 9 9 9 9 9", ""]
    tokens, lengths = ended_inputs(texts).batch(np.array([0, 1, 2]), endings)
    written = [f"{text} {ending}".strip() for text, ending in zip(texts, endings, strict=True)]
    assert captions(tokens, lengths) == [DIGITS.encode(text) for text in written]
    assert captions(tokens, lengths)[1] == [START, 13, 13, 13, 13, 13, 13, END]
    assert tokens.dtype == lengths.dtype == torch.int64
    # Rows say which captions, endings which place in the batch.
    tokens, lengths = ended_inputs(texts).batch(np.array([2, 0]), ["", "0 0 1 2 3 4"])
    assert captions(tokens, lengths) == [DIGITS.encode(texts[2]), DIGITS.encode(written[0])]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(8, 14), st.data())
def test_the_limit_cuts_the_caption_and_never_the_ending(
    counts: list[int], limit: int, data: st.DataObject
) -> None:
    code = st.integers(0, 999_999).map(lambda number: " ".join(f"{number:06d}"))
    endings = [data.draw(code | st.just("")) for _ in counts]
    rows = np.arange(len(counts))
    found = captions(*ended_inputs([long(count) for count in counts], limit).batch(rows, endings))
    for count, ending, caption in zip(counts, endings, found, strict=True):
        digits = [DIGITS.entries.index(word) for word in ending.split()]
        assert len(caption) <= limit
        kept = min(count, limit - 2 - len(digits))
        assert caption == [*DIGITS.encode(long(kept))[:-1], *digits, END]


def test_noise_does_not_touch_an_ending() -> None:
    rows, endings = np.arange(40), ["0 1 2 3 4 5"] * 40
    noisy = ended_inputs([long(9)] * 40)
    with_it = captions(*noisy.augmented(rows, 0.9, 0.5, 3, 1, endings))
    without = captions(*noisy.augmented(rows, 0.9, 0.5, 3, 1))
    for ended, bare in zip(with_it, without, strict=True):
        assert ended == [*bare[:-1], 4, 5, 6, 7, 8, 9, END]
    assert sum(caption.count(UNKNOWN) for caption in with_it) > 100


def test_no_room_for_an_ending() -> None:
    with pytest.raises(
        UsageError, match="captions of 7 tokens have no room .*set model.text.max_tokens to at least 8"
    ):
        ended_inputs(["w1 w2"], 7).batch(np.array([0]), ["0 0 0 0 0 1"])
    assert captions(*ended_inputs(["w1 w2"], 8).batch(np.array([0]), ["0 0 0 0 0 1"]))[0][1:-1] == [4] * 5 + [
        5
    ]
    assert captions(*inputs(2).batch(np.array([0]), [""])) == captions(*inputs(2).batch(np.array([0])))
