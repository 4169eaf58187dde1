from __future__ import annotations

from dataclasses import replace

import numpy as np
from refusals import refused

from diptych.analysis.information.questions import (
    FUNCTION_WORDS,
    LEAST_IMAGES,
    UNSTATED,
    caption_facts,
    caption_words,
    carried_codes,
    content_words,
    has_facts,
    image_facts,
    image_words,
    stated_keys,
)
from diptych.core.errors import DataError
from diptych.data.readers import read_collection
from diptych.data.scenes import described

# One image with three captions, one with one.
FACTS = [{"shape": "star", "size": "big", "place": "top", "light": "left"}, {"shape": "ring", "light": "top"}]
STATES = [[("shape", "size"), ("shape", "size", "place"), ("shape",)], [("shape",)]]


def column(answers, group, key):
    return answers.groups[group][:, answers.keys.index(key)].tolist()


def test_groups_are_those_of_described(scenes_folder):
    scenes = read_collection(scenes_folder).split("train")
    found = image_facts(scenes, stated_keys(scenes))
    for image in range(scenes.n_images):
        states = [
            scenes.caption_records[row]["states"] for row in range(*scenes.caption_start[image : image + 2])
        ]
        told = described(scenes.records[image]["facts"], states)
        for group in ("shared", "partial", "specific", "undescribed"):
            mine = {key for key, weight in zip(found.keys, found.groups[group][image], strict=True) if weight}
            assert mine == set(getattr(told, group)), (image, group)


def test_caption_groups_by_hand(told):
    part = told(FACTS, STATES)
    stated = caption_facts(part, stated=True)
    assert stated.values[:, 1].tolist() == ["big", "big", None, None]
    assert stated.images.tolist() == [0, 0, 0, 1]
    assert column(stated, "shared", "shape") == [1, 1, 1, 1]
    assert column(stated, "partial", "size") == [1, 1, 0, 0]
    assert column(stated, "specific", "place") == [0, 1, 0, 0]
    rest = caption_facts(part, stated=False)
    assert column(rest, "unstated", f"{UNSTATED}size") == [0, 0, 1, 0]
    assert column(rest, "unstated", f"{UNSTATED}place") == [1, 0, 1, 0]
    # what no caption states is not asked of a caption at all
    assert column(rest, "unstated", f"{UNSTATED}light") == [0, 0, 0, 0]


def test_a_code_per_caption(told):
    codes = [["000000", "000001", "000002"], ["000003"]]
    found = carried_codes(told(FACTS, STATES, shortcuts=codes, ends=codes))
    assert found.keys[6] == "code 2 digit 1"
    assert found.values[1, 6] is None
    # each code is stated by one of three captions; all of them are task-relevant
    np.testing.assert_allclose(found.groups["one caption"][0], 1 / 3)
    assert (found.groups["task-relevant"][0] == 1).all()
    assert found.groups["task-relevant"][1].sum() == 6


def test_facts_of_part_of_the_records(told):
    part = told([*FACTS, {"shape": "bar"}], [*STATES, [("shape",), ("shape",)]])
    # the first image says no facts, and the first caption of the last states nothing
    odd = replace(
        part,
        records=[{}, *(part.records or ())[1:]],
        caption_records=[*(part.caption_records or ())[:4], {}, {"states": None}],
    )
    assert has_facts(odd)
    found = image_facts(odd, stated_keys(odd))
    assert found.keys == ("shape", "light")
    assert found.values[:, 0].tolist() == [None, "ring", "bar"]
    assert column(found, "shared", "shape") == [0, 1, 0]
    assert column(found, "undescribed", "shape") == [0, 0, 1]
    assert caption_facts(odd, stated=True).values[:, 0].tolist() == [None] * 3 + ["ring", None, None]
    assert not has_facts(replace(part, caption_records=[{}] * 6))


def test_facts_and_states_of_another_shape_are_named(told):
    part = told(FACTS, STATES)
    odd = replace(part, records=[(part.records or ())[0], {"facts": "blue"}])
    refused(DataError, "facts of image i1 of told are 'blue'", image_facts, odd, frozenset())
    odd = replace(part, caption_records=[*(part.caption_records or ())[:3], {"states": "shape"}])
    refused(DataError, "caption c3 of told states 'shape'", caption_facts, odd, stated=True)


CAPTIONS = [
    ["A dog runs.", "The dog, brown", "dog dog"],
    ["a dog and a ball", "a cat", "a bird"],
    ["a Dog", "dog", "cat"],
    ["nobody", "nothing", "none"],
    ["one dog"],
]


def test_image_words_by_hand(told):
    found = image_words(told(None, [], captions=CAPTIONS), ["dog"])
    assert found.keys == ("dog (all captions)", "dog (several captions)", "dog (one caption)")
    assert found.values[:, 0].tolist() == ["yes", None, None, "no", "yes"]
    assert found.values[:, 1].tolist() == [None, None, "yes", "no", None]
    assert found.values[:, 2].tolist() == [None, "yes", None, "no", None]
    assert found.groups["shared"].sum(axis=0).tolist() == [3, 0, 0]
    assert found.groups["specific"].sum(axis=0).tolist() == [0, 0, 2]


def test_caption_words_by_hand(told):
    found = caption_words(told(None, [], captions=CAPTIONS[:2]), ["dog", "ball"])
    assert found.values[:, 0].tolist() == ["yes", "yes", "yes", "yes", "no", "no"]
    assert found.values[:, 1].tolist() == ["no", "no", "no", "yes", "no", "no"]
    assert found.images.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.groups["words"].all()


def test_which_words_are_asked(told):
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
