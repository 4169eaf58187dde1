from __future__ import annotations

import re

import pytest
from refusals import refused

from diptych.core.errors import UsageError
from diptych.data.known import KNOWN, Form, KnownDataset, centric_of, known_by_name
from diptych.data.readers import READERS


@pytest.mark.parametrize("dataset", list(KNOWN), ids=lambda one: one.name)
def test_each_says_what_a_person_needs(dataset: KnownDataset) -> None:
    for said in (dataset.title, dataset.description, dataset.citation, dataset.licence, dataset.layout):
        assert said.strip()
    assert dataset.where
    assert dataset.readings
    for reading in dataset.readings:
        reader = READERS.get(reading.reader)
        for option in re.findall(r"--reader-option (\w+)=", reading.options):
            assert option in reader.options
        if "--images" in reading.options:
            assert "images" in reader.options
    for form in dataset.forms:
        for size in form.sizes.values():
            assert size.images > 0
            assert all(count >= size.images for count in size.captions)


def form(name: str, number: int = 0) -> Form:
    return KNOWN.get(name).forms[number]


def total(one: Form) -> int:
    return sum(size.images for size in one.sizes.values())


def test_sizes_add_up() -> None:
    # The numbers of the whole datasets, from the thesis and the publications, not from these files.
    for number in (0, 1):
        coco = form("coco", number)
        assert total(coco) == 123_287
        assert sum(max(size.captions, default=0) for size in coco.sizes.values()) == 616_767
    assert total(form("flickr30k", 0)) == 31_014
    assert total(form("flickr30k", 1)) == 31_783
    assert total(form("flickr8k")) == 8_000
    assert total(form("cub", 0)) == total(form("cub", 1)) == 11_788
    assert total(form("fashion200k")) == 201_838
    assert form("coco-fg").sizes["test"].images == 5_000
    assert form("flickr30k-fg").sizes["test"].captions == {5_000: "5 of each"}
    assert {split: size.images for split, size in form("abo").sizes.items()} == {
        "train": 48_693,
        "val": 10_127,
        "test": 10_210,
    }
    assert form("coco").sizes["test"].captions == {25_010: "all", 25_000: "the first five of each"}


def test_from_a_collections_name_to_the_dataset() -> None:
    known = {"coco": "coco COCO_val2017 coco_mini coco_karpathy", "coco-fg": "coco-fg coco_fg"}
    known |= {"flickr30k": "f30k_precomp", "flickr8k": "flickr8k", "fashion200k": "fashion200k"}
    known |= {"fashion-products": "fashion_products_small", "conceptual-captions": "cc3m"}
    for dataset, names in known.items():
        assert [one and one.name for one in map(known_by_name, names.split())] == [dataset] * len(
            names.split()
        )
    assert [known_by_name(name) for name in ("cocoon", "my-coco", "shop", "")] == [None] * 4


def test_centric_as_given_before_as_known() -> None:
    assert centric_of(None, "coco") == "scene"
    assert centric_of("object", "coco") == "object"
    assert centric_of(None, "shop") is None
    assert centric_of(None, "cc12m") is None
    refused(UsageError, "centric is 'both'", centric_of, "both", "coco")
