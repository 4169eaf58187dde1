"""Words as questions, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diptych.analysis.information.questions import (
    FUNCTION_WORDS,
    LEAST_IMAGES,
    caption_words,
    content_words,
    image_words,
)
from diptych.core.errors import DataError
from diptych.data.collection import Collection

CAPTIONS = [
    ["A dog runs.", "The dog, brown", "dog dog"],
    ["a dog and a ball", "a cat", "a bird"],
    ["a Dog", "dog", "cat"],
    ["nobody", "nothing", "none"],
    ["one dog"],
]


def test_image_words_by_hand(told: Callable[..., Collection]) -> None:
    found = image_words(told(None, [], captions=CAPTIONS), ["dog"])
    assert found.keys == ("dog (all captions)", "dog (several captions)", "dog (one caption)")
    assert found.values[:, 0].tolist() == ["yes", None, None, "no", "yes"]
    assert found.values[:, 1].tolist() == [None, None, "yes", "no", None]
    assert found.values[:, 2].tolist() == [None, "yes", None, "no", None]
    assert found.groups["shared"].sum(axis=0).tolist() == [3, 0, 0]
    assert found.groups["specific"].sum(axis=0).tolist() == [0, 0, 2]


def test_caption_words_by_hand(told: Callable[..., Collection]) -> None:
    found = caption_words(told(None, [], captions=CAPTIONS[:2]), ["dog", "ball"])
    assert found.values[:, 0].tolist() == ["yes", "yes", "yes", "yes", "no", "no"]
    assert found.values[:, 1].tolist() == ["no", "no", "no", "yes", "no", "no"]
    assert found.images.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.groups["words"].all()


def test_which_words_are_asked(told: Callable[..., Collection]) -> None:
    n = 2 * LEAST_IMAGES + 10
    captions = [
        [
            "the everywhere "
            + ("dog " if image < LEAST_IMAGES else "")
            + ("ball " if image <= LEAST_IMAGES else ""),
            "rare" if image < LEAST_IMAGES - 1 else "with dogs",
        ]
        for image in range(n)
    ]
    found = content_words(told(None, [], captions=captions))
    # "dogs" and "everywhere" are in too many images, "rare" in too few, "the" and "with" say nothing
    assert found == ("ball", "dog")
    assert content_words(told(None, [], captions=captions), most=1) == ("ball",)
    assert {"the", "with"} <= FUNCTION_WORDS


def test_no_word_within_the_bounds(told: Callable[..., Collection]) -> None:
    with pytest.raises(DataError, match=f"{LEAST_IMAGES} to 1 of 2 training images"):
        content_words(told(None, [], captions=[["a dog"], ["a cat"]]))
