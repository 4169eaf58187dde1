"""Finer captions state what the coarse ones state and more, of the same scenes: read back from their text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import DataError, UsageError
from diptych.data import Collection, read_collection
from diptych.data.scenes import finer, make_scenes, scenes
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.facts import TOPICS
from diptych.data.scenes.world import generator, world_of
from tests.data.scenes.test_scenes_captions import read_back, values_stated


def collection_of(seed: int, n: int = 3, k: int = 5) -> Collection:
    facts = [world_of(seed, "test", index).facts() for index in range(n)]
    captions = [
        caption
        for index in range(n)
        for caption in write_captions(facts[index], generator(seed, "test", index, "captions"), k)
    ]
    return Collection(
        name="scenes",
        image_ids=[f"{index}.png" for index in range(n)],
        captions=[caption.text for caption in captions],
        caption_ids=[str(row) for row in range(n * k)],
        caption_image=np.repeat(np.arange(n), k),
        splits=["test"] * n,
        source=None,  # type: ignore[arg-type]
        source_rows=np.arange(n),
        records=[{"facts": one} for one in facts],
        caption_records=[{"states": caption.states} for caption in captions],
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), topics=st.integers(1, 9))
def test_a_finer_caption_says_what_was_said_and_more(seed: int, topics: int) -> None:
    coarse = collection_of(seed)
    fine = finer(coarse, topics, seed=seed)
    assert (fine.image_ids, fine.caption_ids, fine.splits) == (
        coarse.image_ids,
        coarse.caption_ids,
        coarse.splits,
    )
    for row, image in enumerate(coarse.caption_image):
        facts = coarse.records[image]["facts"]
        before, after = coarse.caption_records[row]["states"], fine.caption_records[row]["states"]
        assert after[: len(before)] == before
        assert len(set(after)) == len(after)
        left = sum(keys[0] in facts and keys[0] not in before for keys in TOPICS.values())
        added = sum(keys[0] in after and keys[0] not in before for keys in TOPICS.values())
        assert added == min(topics, left)
        assert read_back(fine.captions[row]) == values_stated(facts, after), fine.captions[row]


def test_a_caption_is_the_same_in_a_part_and_another_with_another_seed() -> None:
    coarse = collection_of(7, n=6)
    fine = finer(coarse)
    part = finer(coarse.subset([4, 1]))
    assert part.captions == fine.subset([4, 1]).captions
    assert finer(coarse).captions == fine.captions
    assert finer(coarse, seed=1).captions != fine.captions
    assert fine.text_fingerprint != coarse.text_fingerprint


def test_what_cannot_be_finer_is_said() -> None:
    coarse = collection_of(1)
    with pytest.raises(UsageError, match="0 further topics"):
        finer(coarse, 0)
    with pytest.raises(DataError, match="does not say which facts"):
        finer(replace(coarse, records=None))
    with pytest.raises(DataError, match="caption '0' has no facts"):
        finer(replace(coarse, caption_records=[{}] * coarse.n_captions))


def test_scenes_are_read_with_finer_captions(tmp_path: Path) -> None:
    folder = make_scenes(tmp_path / "scenes", 0, 0, 4, size=32, workers=1)
    coarse = read_collection(folder)
    fine = read_collection(folder, finer=2)
    assert fine.captions == finer(coarse, 2).captions
    made = scenes(0, 0, 4, size=32, workers=1, folder=folder, finer=2)
    assert made.captions == fine.captions
    assert "up to 2 further topics each, seed 0" in fine.notes[-1]
    assert fine.name == "scenes-finer"
    with pytest.raises(UsageError, match="finer is -1"):
        read_collection(folder, finer=-1)
    with pytest.raises(UsageError, match="finer is 'x'"):
        read_collection(folder, finer="x")
