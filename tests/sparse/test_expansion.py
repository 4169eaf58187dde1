from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import MismatchError, UsageError
from diptych.sparse.expansion import ExpansionControl, caption_probability, expand, word_probability
from diptych.sparse.options import ExpansionOptions

WEIGHTS = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], dtype=np.float32)
OWN = np.array([[True, False, True, False], [False, False, True, True]])
WORDS = np.array([1, 1, 0, 0])


def algorithm_1(weights, own, caption, words, printed):
    """EXPAND as it is printed, number by number; the prose leaves out its ``else`` branch."""
    expanded = np.array(weights, dtype=np.float64)
    captions = np.broadcast_to(np.asarray(caption, dtype=np.float64), len(expanded))
    for i in range(len(expanded)):
        for k in range(expanded.shape[1]):
            if not own[i][k]:
                expanded[i, k] *= captions[i] * words[k]
            elif printed:
                expanded[i, k] *= words[k]
    return expanded


@given(st.integers(0, 2**32 - 1), *[st.booleans()] * 4)
def test_expand_is_algorithm_1(seed, printed, one_draw, as_integers, without_words):
    generator = np.random.default_rng(seed)
    weights = generator.random((3, 5), dtype=np.float32)
    own = generator.integers(0, 2, (3, 5))
    caption = int(generator.integers(0, 2)) if one_draw else generator.integers(0, 2, 3)
    words = None if without_words else generator.integers(0, 2, 5).astype(np.float32)
    given_own = own if as_integers else own.astype(bool)
    form: Any = "printed" if printed else "prose"
    chances = np.ones(5) if words is None else words
    expected = algorithm_1(weights, own, caption, chances, printed)
    found = expand(weights, given_own, caption, words, form)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    drawn = None if words is None else torch.from_numpy(words)
    tensors = expand(torch.from_numpy(weights), torch.from_numpy(given_own), caption, drawn, form)
    assert tensors.dtype == torch.float32
    np.testing.assert_array_equal(tensors.numpy(), expected)
    if one_draw:  # one caption alone
        assert expand(weights[0], given_own[0], caption, words, form).tolist() == expected[0].tolist()


def test_probabilities_rise_by_equation_3_6():
    for epochs in [1, 3, 10, 200]:
        frequency = np.array([0.0, 0.25, 1.0])
        caption = Fraction(0)
        words = [1 - Fraction(share) for share in frequency.tolist()]
        for epoch in range(epochs):
            assert caption_probability(epoch, epochs) == pytest.approx(float(caption), abs=1e-12)
            found = word_probability(frequency, epoch, epochs)
            np.testing.assert_allclose(found, [float(word) for word in words], atol=1e-12)
            caption += Fraction(1, epochs)
            words = [
                word + Fraction(share) / epochs for word, share in zip(words, frequency.tolist(), strict=True)
            ]
        assert caption_probability(epochs, epochs) == 1.0
        np.testing.assert_array_equal(word_probability(frequency, epochs, epochs), 1.0)


def test_the_published_schedule_reaches_one_at_95_per_cent():
    assert caption_probability(95, 200, "published") == pytest.approx(0.5)
    assert caption_probability(189, 200, "published") == pytest.approx(189 / 190)
    assert [caption_probability(epoch, 200, "published") for epoch in (190, 191, 199)] == [1.0, 1.0, 1.0]
    frequency = np.array([0.4])
    assert word_probability(frequency, 95, 200, "published") == pytest.approx(0.8)
    assert word_probability(frequency, 195, 200, "published") == 1.0


def control(mode, epochs=10, seed=0, frequency=None, **options):
    shares = None if frequency is None else np.array(frequency)
    return ExpansionControl(ExpansionOptions(mode=mode, **options), shares, epochs, seed)


def test_how_often_a_term_may_be_an_expansion():
    frequency = [1.0, 0.5, 0.1, 0.0]
    words = control("c+w", seed=3, frequency=frequency)
    for epoch in (0, 5):
        drawn = np.array([words.word_draws(epoch, step) for step in range(4000)])
        expected = 1 - np.array(frequency) * (1 - epoch / 10)
        np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.032)
        assert drawn[:, 3].all()
    # The terms' draws do not go together with each other.
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.07


def test_mode_c_w_is_expand_with_its_draws():
    for form in ("prose", "printed"):
        words = control("c+w", seed=5, frequency=[0.9, 0.5, 0.5, 0.9], form=form)
        kinds = set()
        for epoch in (0, 5, 9):
            for step in range(30):
                caption, drawn = words.caption_draw(epoch, step), words.word_draws(epoch, step)
                allowed = words.allowed(epoch, step, OWN)
                expected = expand(WEIGHTS, OWN, caption, drawn, form)
                found = WEIGHTS if allowed is None else WEIGHTS * allowed
                np.testing.assert_array_equal(found, expected)
                kinds.add((caption, allowed is None))
        assert (True, False) in kinds


@settings(max_examples=30)
@given(st.integers(0, 50), st.integers(0, 1000), st.integers(0, 2**31))
def test_draws_depend_on_seed_epoch_and_step_alone(epoch, step, seed):
    one, other = (control("c+w", 60, seed, [0.5] * 64) for _ in range(2))
    other.allowed(epoch + 1, step, np.zeros((1, 64), dtype=bool))
    assert one.caption_draw(epoch, step) == other.caption_draw(epoch, step)
    np.testing.assert_array_equal(one.word_draws(epoch, step), other.word_draws(epoch, step))
    further = one.word_draws(epoch, step + 1)
    assert further is not None
    assert not np.array_equal(one.word_draws(epoch, step), further)


def test_what_does_not_fit_is_refused():
    shapes = [(OWN[:, :3], 1, None), (OWN[:1], 1, None), (OWN, [1, 0, 1], None)]
    shapes += [(OWN, 1, WORDS[:3]), (OWN, 1, [[1]])]
    for own, caption, words in shapes:
        for weights in (WEIGHTS, torch.from_numpy(WEIGHTS)):
            refused(MismatchError, "of shape", expand, weights, own, caption, words)
    refused(UsageError, "sparse", expand, csr_array(WEIGHTS), OWN, 1)
    refused(UsageError, "sparse", expand, WEIGHTS, csr_array(OWN), 1)
    refused(UsageError, "'literal'", expand, WEIGHTS, OWN, 1, None, "literal")
