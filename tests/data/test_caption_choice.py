"""Which captions count, in one word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diptych.core.errors import UsageError
from diptych.data import Collection, choose_captions
from diptych.data.images import FolderSource


@pytest.fixture
def whole() -> Collection:
    """Forty pictures with five captions, one with three."""
    counts = np.array([5] * 40 + [3])
    names = [f"{row}.jpg" for row in range(len(counts))]
    home = np.repeat(np.arange(len(counts)), counts)
    ids = [f"{names[image]}#{place}" for image, place in zip(home, np.arange(len(home)), strict=True)]
    return Collection(
        name="made-up",
        image_ids=names,
        captions=[f"caption {place}" for place in range(len(home))],
        caption_ids=ids,
        caption_image=home,
        splits=["test"] * len(names),
        source=FolderSource("nowhere", names),
        source_rows=np.arange(len(names)),
        centric="scene",
    )


def test_words_and_what_they_choose(whole: Collection) -> None:
    assert choose_captions(whole, "all") is whole
    first = choose_captions(whole, "first")
    assert first.captions == whole.first_captions().captions
    assert first.notes == ("the first caption of each image",)
    four = choose_captions(whole, "first:4")
    assert four.captions_per_image.tolist() == [4] * 40 + [3]
    assert four.notes == ("the first 4 captions of each image",)
    for word, seed in (("random", 0), ("random:0", 0), ("random:7", 7)):
        found = choose_captions(whole, word)
        assert found.captions == whole.random_captions(seed=seed).captions
        assert found.notes == (f"1 caption of each image, drawn with seed {seed}",)
    assert choose_captions(whole, "random:7").captions != choose_captions(whole, "random").captions
    assert choose_captions(replace(whole, centric="object"), "random").centric == "object"


@pytest.mark.parametrize("word", ["", "one", "first:", "first:0", "random:x", "random:-1", "All", "all:2"])
def test_other_words_are_refused(whole: Collection, word: str) -> None:
    with pytest.raises(UsageError, match="all, first, first:K, random or random:SEED"):
        choose_captions(whole, word)
