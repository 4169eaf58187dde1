"""Bags of terms and matches as users read them, and that nothing of a score is lost on the way."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, StorageError, UsageError
from diptych.metrics.sparse_products import SparseProducts
from diptych.sparse.explain import Bag, Contribution, Match, explain_match, top_terms
from diptych.sparse.training import train_sparsifier
from diptych.sparse.vocabulary import SPECIAL_TERMS, TermVocabulary, bert_tokenizer, is_content

from .small_pairs import DATA, WORDS, options

PIECES = [*SPECIAL_TERMS, "a", ".", "dog", "mo", "##ped", "skate", "##board", "red", "##s", "n"]
CAPTIONS = ["a red moped", "Two mopeds.", "a moped", "dog on a skateboard", "dogs", "a dog"]
TERMS = ["[CLS]", "dog", "mo", "##ped", "red", "##s"]


def sparse(values):
    return csr_array(np.asarray(values, dtype=np.float32))


def row(special=0, **weights):
    """A row over ``PIECES``; ``__ped`` is ``##ped``, ``special`` the weight of [CLS]."""
    values = np.zeros((1, len(PIECES)), dtype=np.float32)
    values[0, 2] = special
    for term, weight in weights.items():
        values[0, PIECES.index(term.replace("__", "##"))] = weight
    return sparse(values)


@pytest.fixture
def vocabulary():
    return TermVocabulary(bert_tokenizer(PIECES))


@pytest.fixture
def traced(vocabulary):
    vocabulary.trace(CAPTIONS)
    return vocabulary


def test_words_that_say_something():
    for word in ("dog", "café", "3d", "犬", "well-known"):
        assert is_content(word), word
    for word in ("", ".", "##ing", "[PAD]", "[unused3]", "the", "with", "n", "7", "'s", "-"):
        assert not is_content(word), word


def test_pieces_are_traced_to_the_words_they_stood_in(traced, tmp_path):
    both = "moped/mopeds"
    # A dog is a word more often than a part of one.
    assert traced.origins == {
        **{"mo": both, "##ped": both, "skate": "skateboard", "##board": "skateboard"},
        "##s": "dogs/mopeds",
    }
    names = {term: traced.shown(column) for column, term in enumerate(PIECES)}
    assert {term: name for term, name in names.items() if name} == {
        "dog": "dog",
        "red": "red",
        **traced.origins,
    }
    assert traced.shown(PIECES.index("##s"), "cats") == "cats"
    traced.save(tmp_path)
    assert TermVocabulary.load(tmp_path).origins == traced.origins
    for content in ("[]", '{"mo": ["moped"]}'):
        (tmp_path / "origins.json").write_text(content)
        refused(StorageError, "not a table of pieces", TermVocabulary.load, tmp_path)


def test_own_terms_are_marked(vocabulary):
    weights = row(special=9, dog=1, mo=2, __ped=3, red=2, a=8, n=4)
    marked = [("moped", 5, True), ("red", 2, False), ("dog", 1, False)]
    assert Bag("a", weights, ["a moped"]).top(vocabulary, 4) == marked
    # An image's pieces are not named by its captions; of an old head those that begin a word are shown.
    of_image = [("mo", 2, True), ("red", 2, False)]
    assert Bag("a", weights, ["a moped"], image=Image.new).top(vocabulary, 2) == of_image
    vocabulary.trace(CAPTIONS)
    (first, *_) = Bag("a", weights, ["a moped"], image=Image.new).top(vocabulary, 2)
    assert first == ("moped/mopeds", 5, True)


def test_a_match_by_hand(traced):
    query, item = sparse([[1, 2, 0, 3, 1, 0]]), sparse([[2, 0, 5, 2, 2, 1]])
    assert explain_match(query, item, TERMS) == [
        Contribution("##ped", 3, 2, 6),
        Contribution("[CLS]", 1, 2, 2),
        Contribution("red", 1, 2, 2),
    ]
    assert explain_match(query, sparse([[0, 0, 1, 0, 0, 0]]), TERMS) == []
    said = Bag("q", row(a=1, mo=1, __ped=1, red=2, __s=1), ["a moped"])
    seen = Bag("i", row(a=4, mo=2, __ped=0.5, red=1, __s=1), image=Image.new)
    words = [Contribution("moped", 2, 2.5, 2.5), Contribution("red", 2, 1, 2.0)]
    assert Match.of(traced, said, seen, 2) == (9.5, words, 2, 5.0)
    assert Match.of(traced, said, seen, 9) == (9.5, [*words, Contribution("dogs/mopeds", 1, 1, 1.0)], 1, 4.0)
    assert Match.of(traced, Bag("q", said.row), seen, 1).terms == [Contribution("moped/mopeds", 2, 2.5, 2.5)]


def test_what_does_not_fit():
    five, six = sparse([[1] * 5]), sparse([[1] * 6])
    refused(DataError, r"the row has shape \(2, 6\)", top_terms, sparse([[1] * 6] * 2), TERMS, 3)
    refused(MismatchError, "6 terms for the query of 5", explain_match, five, five, TERMS)
    refused(UsageError, "k is 0", top_terms, six, TERMS, 0)


@given(seed=st.integers(0, 2**32))
def test_contributions_add_up_to_the_score(seed):
    random = np.random.default_rng(seed)
    rows = csr_array((random.exponential(size=(2, 40)) * (random.random((2, 40)) < 0.6)).astype(np.float32))
    terms = [str(column) for column in range(40)]
    found = explain_match(rows[[0]], rows[[1]], terms)
    score = SparseProducts(rows[[0]], rows[[1]]).pairs(np.array([0]), np.array([0]))[0]
    in_order = sorted(found, key=lambda one: int(one.term))
    assert reduce(add, (one.contribution for one in in_order), 0.0) == score  # the same bits
    assert [one.contribution for one in found] == sorted((one.contribution for one in found), reverse=True)


@given(
    seed=st.integers(0, 2**32),
    captions=st.lists(st.sampled_from(CAPTIONS), max_size=4),
    said=st.sampled_from([*CAPTIONS, "", "a sign. n"]),
    shown=st.integers(0, 12),
)
def test_every_shown_term_is_a_word_and_nothing_of_the_score_is_lost(seed, captions, said, shown):
    random, vocabulary = np.random.default_rng(seed), TermVocabulary(bert_tokenizer(PIECES))
    vocabulary.trace(captions)
    rows = csr_array(
        (random.exponential(size=(2, len(PIECES))) * (random.random((2, len(PIECES))) < 0.8)).astype(
            np.float32
        )
    )
    query, item = Bag("q", rows[[0]], [said]), Bag("i", rows[[1]], captions, Image.new)
    score, terms, more, rest = Match.of(vocabulary, query, item, shown)
    assert score == SparseProducts(rows[[0]], rows[[1]]).pairs(np.array([0]), np.array([0]))[0]
    assert sum(one.contribution for one in terms) + rest == pytest.approx(score)
    assert len(terms) <= shown
    assert len(terms) + more <= len(np.intersect1d(rows[[0]].indices, rows[[1]].indices))
    assert (more > 0) or rest == 0
    names = [one.term for one in terms]
    assert len(set(names)) == len(names)
    for name in [*names, *(name for name, *_ in [*query.top(vocabulary, 15), *item.top(vocabulary, 15)])]:
        assert not name.startswith("##")
        assert name not in {*SPECIAL_TERMS, "a", ".", "n"}
        assert all(
            one in ("mo", "skate") or one in " ".join([*CAPTIONS, said]).lower() for one in name.split("/")
        )


def test_a_trained_head_says_what_the_caption_says(tmp_path):
    """Rows of the small pairs are sums of their words' vectors: of the first three terms most are the caption's."""
    quick = options(vocabulary={"terms": "words"}, loss={"words": 1.0}, training={"epochs": 30})
    head = train_sparsifier(DATA, quick, tmp_path / "head")
    assert sorted(head.vocabulary.terms) == sorted(WORDS)
    rows = head.embed(DATA.texts, DATA.captions).rows
    right = [
        word in caption.split()
        for place, caption in enumerate(DATA.captions)
        for word, *_ in Bag("", rows[[place]], [caption]).top(head.vocabulary, 3)
    ]
    assert np.mean(right) > 0.6  # by chance a quarter; without loss.words 0.46
