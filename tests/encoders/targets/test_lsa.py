from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, UsageError
from diptych.data.vocabulary import words
from diptych.encoders.targets.contract import open_target_model
from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis

CAPTIONS = [
    "a dog runs on the grass",
    "a brown dog runs after a ball",
    "two dogs play with a red ball on the grass",
    "a man rides a bicycle",
    "a man on a red bicycle rides on the street",
    "a woman crosses the street",
    "a woman and a man walk a dog on the street",
    "a child plays with a ball",
]


def slow(captions: list[str], texts: list[str], width: int) -> np.ndarray:
    """Cosines between texts after TF-IDF and NumPy's full singular value decomposition."""
    vocabulary = sorted({word for caption in captions for word in words(caption)})
    frequency = {word: sum(word in words(caption) for caption in captions) for word in vocabulary}

    def weigh(text: str) -> np.ndarray:
        row = np.array(
            [
                words(text).count(word) * (math.log((1 + len(captions)) / (1 + frequency[word])) + 1)
                for word in vocabulary
            ]
        )
        return row / np.linalg.norm(row)

    _, _, directions = np.linalg.svd(np.stack([weigh(caption) for caption in captions]))
    rows = np.stack([weigh(text) for text in texts]) @ directions[:width].T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def test_agrees_with_a_slow_form() -> None:
    model = LatentSemanticAnalysis.learn(CAPTIONS, 4)
    texts = [*CAPTIONS, "the dog and the dog", "bicycle"]
    rows = model.encode(texts)
    assert rows.shape == (10, 4)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(rows @ rows.T, slow(CAPTIONS, texts, 4), atol=1e-5)


@given(st.permutations(range(8)), st.integers(1, 9))
def test_a_row_depends_on_its_caption_alone(order: list[int], batch_size: int) -> None:
    model = LatentSemanticAnalysis.learn(CAPTIONS, 4)
    rows = model.encode(CAPTIONS)
    assert np.array_equal(model.encode([CAPTIONS[place] for place in order], batch_size), rows[order])
    turned = " ".join(reversed(words(CAPTIONS[2])))
    assert np.array_equal(model.encode([turned.upper()])[0], rows[2])


def test_a_caption_without_a_known_word_has_a_row_of_zeros() -> None:
    model = LatentSemanticAnalysis.learn(CAPTIONS, 4)
    rows = model.encode(["", "zebra giraffe", "zebra dog", "dog"])
    assert not rows[:2].any()
    assert np.array_equal(rows[2], rows[3])
    assert rows[3].any()


def test_what_the_directions_leave_out_is_zero_not_rounding() -> None:
    # The two leading directions are a + b and a − b; c is orthogonal to both.
    captions = ["a b", "a b", "a b", "a", "a", "b", "b", "c"]
    model = LatentSemanticAnalysis.learn(captions, 2)
    a, b, c = model.encode(["a", "b", "c"])
    assert abs(a @ b) < 1e-6
    assert not c.any()
    assert LatentSemanticAnalysis.learn([*captions, "c b"], 2).encode(["c"]).any()


@pytest.mark.parametrize(
    ("captions", "width", "message"),
    [
        (CAPTIONS, 8, "width 8 from 8 captions of 24 words, which give at most 7"),
        (["a b", "c d", "a d", "b c", "a c"], 4, "width 4 from 5 captions of 4 words, which give at most 3"),
        # Two different captions, however often they are repeated.
        (["a dog b cat", "a b"] * 5, 3, "width 3 from 10 captions of 4 words, which give at most 2"),
        (["dog"] * 3, 2, "width 2 from 3 captions of 1 words, which give at most 0"),
    ],
)
def test_a_width_that_the_captions_do_not_have(captions: list[str], width: int, message: str) -> None:
    refused(UsageError, re.escape(message), LatentSemanticAnalysis.learn, captions, width)


def test_captions_without_a_word() -> None:
    refused(DataError, "no word in 2 captions", LatentSemanticAnalysis.learn, ["", "  "], 2)


def test_titles_fold_plurals(tmp_path: Path) -> None:
    texts = ["Red dress", "Blue dress", "Men's T-shirt", "Red tshirt", "Blue belt"]
    titles = LatentSemanticAnalysis.learn(texts, 3, tokens="titles")
    captions = LatentSemanticAnalysis.learn(texts, 3)
    assert np.array_equal(titles.encode(["Dresses"]), titles.encode(["dress"]))
    assert np.array_equal(titles.encode(["T-Shirts"]), titles.encode(["tshirt"]))
    assert not captions.encode(["Dresses"]).any()
    opened = open_target_model(titles.save(tmp_path / "titles"))
    assert opened.fingerprint == titles.fingerprint != captions.fingerprint
    assert np.array_equal(opened.encode(["Dresses"]), titles.encode(["Dresses"]))
