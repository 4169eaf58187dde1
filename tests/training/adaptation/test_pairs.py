from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import UsageError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.training.adaptation import draw_pairs


def collection(counts: list[int]) -> Collection:
    """One picture per count, with as many captions."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return Collection(
        name="counted",
        image_ids=[f"i{row}" for row in range(len(counts))],
        captions=[f"caption {row}" for row in range(len(owners))],
        caption_ids=[f"c{row}" for row in range(len(owners))],
        caption_image=owners.astype(np.int64),
        splits=["train"] * len(counts),
        source=None,  # type: ignore[arg-type]
        source_rows=np.arange(len(counts)),
    )


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8).filter(any),
    st.integers(0, 50),
    st.sampled_from(["one", "all"]),
)
def test_pairs_are_pictures_with_their_own_captions(counts: list[int], seed: int, captions: str) -> None:
    whole = collection(counts)
    able = sum(count > 0 for count in counts)
    drawn = draw_pairs(whole, able, seed, captions)  # type: ignore[arg-type]
    assert sorted(drawn.images) == [row for row, count in enumerate(counts) if count]
    assert np.array_equal(whole.caption_image[drawn.captions], drawn.images[drawn.caption_image])
    assert len(drawn.captions) == (able if captions == "one" else sum(counts))
    assert drawn.positives.sum() == len(drawn.captions)
    assert drawn.positives[drawn.caption_image, np.arange(len(drawn.captions))].all()


def test_fewer_pairs_are_among_more_of_a_seed_and_other_seeds_draw_others(scenes_folder: Path) -> None:
    part = read_collection(scenes_folder).split("train")
    few, many = draw_pairs(part, 5, 3), draw_pairs(part, 40, 3)
    assert np.array_equal(many.images[:5], few.images)
    assert np.array_equal(many.captions[:5], few.captions)
    assert not np.array_equal(draw_pairs(part, 40, 4).images, many.images)
    first = part.caption_start[many.images]
    assert len(set((many.captions - first).tolist())) > 1  # not always the first caption


def test_no_pairs_are_none() -> None:
    drawn = draw_pairs(collection([1, 2]), 0)
    assert drawn.positives.shape == (0, 0)


@pytest.mark.parametrize("pairs", [-1, 3])
def test_more_than_there_are_are_refused(pairs: int) -> None:
    with pytest.raises(UsageError, match=rf"{pairs} pairs of counted, which has 2 pictures with captions"):
        draw_pairs(collection([1, 0, 2]), pairs)


def test_another_choice_of_captions_is_refused() -> None:
    with pytest.raises(UsageError, match="captions 'first'"):
        draw_pairs(collection([1]), 1, captions="first")  # type: ignore[arg-type]
