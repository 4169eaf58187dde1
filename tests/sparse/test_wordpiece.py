from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.sparse.wordpiece import CONTINUATION, learn_pieces, word_counts


def slow_pieces(counts: dict[str, int], merges: int) -> set[str]:
    """Every piece that a word is made of after so many joins, pairs counted anew each time."""
    words = {
        word: [letter if place == 0 else CONTINUATION + letter for place, letter in enumerate(word)]
        for word in counts
    }
    letters = {piece for word in words.values() for piece in word}
    for _ in range(merges):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, split in words.items():
            for left, right in pairwise(split):
                pairs[left, right] += counts[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        for split in words.values():
            place = 0
            while place < len(split) - 1:
                if (split[place], split[place + 1]) == best:
                    split[place : place + 2] = [best[0] + best[1].removeprefix(CONTINUATION)]
                place += 1
    return letters | {piece for word in words.values() for piece in word}


def test_words_are_counted_in_lower_case_without_accents_and_apart_from_marks() -> None:
    assert word_counts(["A Café-dog, a cafe!", ""]) == Counter(
        {"a": 2, "cafe": 2, "-": 1, "dog": 1, ",": 1, "!": 1}
    )


def test_frequent_pairs_become_words_and_pieces_in_between_give_their_place_up() -> None:
    # "do" and "dog" are made on the way; nothing but "dog" and "dogs" is left in use.
    assert learn_pieces({"dog": 5, "dogs": 3, "cat": 1}, 8, 2) == ["dog", "dogs", "d", "##g", "##o", "##s"]


def test_rare_letters_and_pairs_are_no_pieces() -> None:
    pieces = learn_pieces({"on": 9, "no": 1}, 100, 2)
    assert pieces == ["on", "o", "##n"]
    assert set(learn_pieces({"on": 9, "no": 1}, 100, 1)) == {"on", "no", "o", "n", "##n", "##o"}


def test_of_too_many_letters_the_most_frequent_are_kept() -> None:
    assert learn_pieces({"ab": 3, "c": 9, "d": 1}, 2, 1) == ["c", "##b"]  # "##b" comes before "a"


def test_equally_frequent_pairs_are_joined_in_the_order_of_their_text() -> None:
    # "##a" + "##b" and "x" + "##a" both occur once; one join fits into the size.
    assert learn_pieces({"xab": 1}, 4, 1) == learn_pieces({"xab": 1}, 4, 1)
    assert "##ab" in learn_pieces({"xab": 1}, 4, 1)


def test_no_words_no_pieces() -> None:
    assert learn_pieces({}, 10, 1) == []


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=7), st.integers(1, 5), min_size=1, max_size=8),
    st.integers(6, 24),
)
def test_agrees_with_counting_pairs_anew_each_time(counts: dict[str, int], size: int) -> None:
    found = set(learn_pieces(counts, size, 1))
    assert len(found) <= size
    known = []
    for merges in range(40):
        known.append(slow_pieces(counts, merges))
        if len(known[-1]) >= size:
            break
    assert found in known


@given(st.dictionaries(st.text("abcd", min_size=1, max_size=6), st.integers(1, 9), max_size=10))
def test_the_order_of_the_words_does_not_matter(counts: dict[str, int]) -> None:
    backwards = dict(reversed(list(counts.items())))
    assert learn_pieces(counts, 20, 1) == learn_pieces(backwards, 20, 1)


@pytest.mark.parametrize("word", ["aaaa", "aaaaa", "ababab"])
def test_overlapping_pairs_are_counted_as_they_stand(word: str) -> None:
    assert set(learn_pieces({word: 2}, 30, 1)) == slow_pieces({word: 2}, 30)
