"""What is in a scene, what its picture shows, and what its captions say, read back from their text."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import every_byte
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.data import Collection, read_collection
from diptych.data.readers.karpathy import read_karpathy
from diptych.data.scenes import described, finer, make_scenes, read_scenes, scenes
from diptych.data.scenes import facts as words
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import (
    BACKGROUNDS,
    COLOURS,
    DESCRIBABLE,
    FACT_VALUES,
    MATERIALS,
    SHAPES,
    SHARED,
    TOPICS,
    Described,
)
from diptych.data.scenes.world import SPLITS, SceneObject, World, generator, home_split, world_of


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(-5, 10_000), split=st.sampled_from(SPLITS), index=st.integers(0, 10_000))
def test_every_world_is_as_its_facts_say(seed: int, split: str, index: int) -> None:
    world = world_of(seed, split, index)
    assert world == world_of(seed, split, index)
    facts = world.facts()
    assert home_split(facts) == split
    assert set(facts) <= set(FACT_VALUES)
    assert all(value in FACT_VALUES[key] for key, value in facts.items())
    assert facts["count"] == str(len(world.objects))
    radii = [item.radius for item in world.objects]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] >= 1.1 * radii[1]
    assert len({(item.shape, item.colour) for item in world.objects}) == len(world.objects)
    main = world.objects[0]
    for item in world.objects:
        assert 0 < item.x < 1
        assert 0 < item.y < 1
    for other in world.objects[1:]:
        # left or above is never a matter of a pixel, and nothing is hidden behind the main object
        assert abs(abs(main.x - other.x) - abs(main.y - other.y)) > 0.05
        assert math.hypot(main.x - other.x, main.y - other.y) > 0.7 * (main.radius + other.radius)


def test_no_two_splits_share_a_describable_world_and_hardly_two_images_do() -> None:
    seen: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for split in SPLITS:
        facts = [world_of(7, split, index).facts() for index in range(300)]
        seen[split] = {tuple((key, one[key]) for key in DESCRIBABLE if key in one) for one in facts}
        assert len(seen[split]) == 300
    assert not seen["train"] & seen["val"]
    assert not seen["train"] & seen["test"]
    assert not seen["val"] & seen["test"]


def test_every_fact_shows_and_is_described() -> None:
    facts = {"a": "1", "b": "1", "c": "1", "d": "1"}
    assert described(facts, [["a", "b"], ["a", "b", "c"], ["a"]]) == Described(
        shared=("a",), partial=("b",), specific=("c",), undescribed=("d",)
    )
    # one caption: what it states is shared, not specific; no caption: nothing is described
    assert described(facts, [["a"]]) == Described(("a",), (), (), ("b", "c", "d"))
    assert described(facts, []) == Described((), (), (), ("a", "b", "c", "d"))
    refused(DataError, "caption 1 states 'x'", described, facts, [["a"], ["x"]])
    # Changing one fact, with the same noise, changes far more than rounding would.
    before = pixels(WORLD)
    changed = [replace(WORLD, light="right"), replace(WORLD, tint="warm"), replace(WORLD, frame="black")]
    changed += [replace(WORLD, background=kind) for kind in BACKGROUNDS if kind != "sand"]
    for attribute, values in (("shape", SHAPES), ("colour", COLOURS), ("material", MATERIALS)):
        others = [
            replace(STAR, **{attribute: value}) for value in values if value != getattr(STAR, attribute)
        ]
        changed += [replace(WORLD, objects=(star, RING)) for star in others]
    for world in changed:
        assert np.abs(pixels(world) - before).mean() > 1.0, world


STAR = SceneObject("star", "red", "large", "matte", 0.5, 0.5, 0.3)
RING = replace(STAR, shape="ring", colour="blue", x=0.2, y=0.2, radius=0.1)
WORLD = World((STAR, RING), "sand", "left", "neutral", "none")


def pixels(world: World, seed: int = 0, size: int = 64) -> np.ndarray:
    return np.asarray(draw_world(world, random.Random(seed), size), dtype=np.float64)


KINDS = {
    "shape": words.SHAPE_WORDS,
    "colour": words.COLOUR_WORDS,
    "size": words.SIZE_WORDS,
    "material": words.MATERIAL_WORDS,
    "place": words.PLACE_PHRASES,
    "background": words.BACKGROUND_PHRASES,
    "count": words.COUNT_WORDS,
    "relation": {
        value: said + words.RELATION_INVERSE[value] for value, said in words.RELATION_PHRASES.items()
    },
}
READINGS = sorted(
    ((phrase, kind, value) for kind, table in KINDS.items() for value, p in table.items() for phrase in p),
    key=lambda reading: -len(reading[0]),
)


def kind_of(key: str) -> str:
    return "relation" if key.startswith("relation.") else key.split(".")[-1]


def read_back(text: str) -> dict[str, set[str]]:
    """The values a text says, per kind of fact: longest phrases first, each word read once."""
    text = text.lower()
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for phrase, kind, value in READINGS:
        text, times = re.subn(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])", "…", text)
        if times:
            found[kind].add(value)
    return found


def values_stated(facts: dict[str, str], states: tuple[str, ...]) -> dict[str, set[str]]:
    stated: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for key in states:
        stated[kind_of(key)].add(facts[key])
    return stated


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), k=st.integers(1, 12))
def test_text_says_exactly_what_is_recorded(seed: int, k: int) -> None:
    facts = world_of(seed, "train", 0).facts()
    captions = write_captions(facts, generator(seed, "train", 0, "captions"), k)
    assert len(captions) == k
    for caption in captions:
        assert set(SHARED) <= set(caption.states) <= set(facts)
        assert len(set(caption.states)) == len(caption.states)
        assert read_back(caption.text) == values_stated(facts, caption.states), caption.text


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


def test_scenes_are_read_with_finer_captions(tmp_path: Path) -> None:
    folder = make_scenes(tmp_path / "scenes", 0, 0, 4, size=32, workers=1)
    coarse = read_collection(folder)
    fine = read_collection(folder, finer=2)
    assert fine.captions == finer(coarse, 2).captions
    made = scenes(0, 0, 4, size=32, workers=1, folder=folder, finer=2)
    assert made.captions == fine.captions
    assert "up to 2 further topics each, seed 0" in fine.notes[-1]
    assert fine.name == "scenes-finer"
    refused(UsageError, "finer is -1", read_collection, folder, finer=-1)
    refused(UsageError, "finer is 'x'", read_collection, folder, finer="x")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_scenes(tmp_path_factory.mktemp("made") / "small", 140, 6, 6, seed=3, k=3, size=32, workers=1)


def test_processes_change_no_byte(small: Path, tmp_path: Path) -> None:
    other = make_scenes(tmp_path / "other", 140, 6, 6, seed=3, k=3, size=32, workers=2)
    assert every_byte(small) == every_byte(other)


def test_the_collection_holds_facts_and_what_captions_state(small: Path) -> None:
    collection = read_scenes(small)
    assert collection.split_sizes == {"train": 140, "val": 6, "test": 6}
    assert (collection.captions_per_image == 3).all()
    assert collection.image(0).size == (32, 32)
    for row in range(0, collection.n_images, 17):
        states = [collection.caption_records[3 * row + number]["states"] for number in range(3)]
        told = described(collection.records[row]["facts"], states)
        assert told.shared == ("main.shape", "main.colour")
        assert told.specific
        assert told.undescribed
    assert "seed 3" in collection.notes[0]
    refused(UnknownNameError, "train, val", collection.split, "dev")


def test_the_file_is_karpathys_and_any_reader_of_it_agrees(small: Path) -> None:
    ours, theirs = read_scenes(small), read_karpathy(small / "dataset.json")
    for column in ("image_ids", "captions", "caption_ids", "splits"):
        assert list(getattr(theirs, column)) == list(getattr(ours, column))
    for row, image in enumerate(json.loads((small / "dataset.json").read_text())["images"]):
        assert image["sentids"] == [sentence["sentid"] for sentence in image["sentences"]]
        assert {sentence["imgid"] for sentence in image["sentences"]} == {image["imgid"]} == {row}


def test_the_usual_number_of_objects_goes_without_saying(small: Path) -> None:
    """Scenes of before there was another number are found again, byte for byte."""
    before = every_byte(small)
    make_scenes(small, 140, 6, 6, seed=3, k=3, size=32, objects=[2, 4], workers=1)
    assert every_byte(small) == before
    header = json.loads((small / "dataset.json").read_text())
    assert ("objects" in header, header["fingerprint"]) == (False, "d3a9da74bf2d4b32")
    assert read_scenes(small).centric == "scene"
    with pytest.raises(UsageError, match=r"objects=\(2, 4\).*objects=\(1, 1\) was requested"):
        make_scenes(small, 140, 6, 6, seed=3, k=3, size=32, objects=1)
