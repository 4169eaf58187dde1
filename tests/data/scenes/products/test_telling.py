"""What is told is written and drawn: titles, attributes and pictures say what their records say they do."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.collection import Collection
from diptych.data.products import attributes_of, plain_text
from diptych.data.scenes import product_scenes
from diptych.data.scenes.products.facets import SAID
from diptych.data.scenes.products.product import BRANDS, spoilt, title_of_product


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return product_scenes(tmp_path_factory.mktemp("made") / "clean", 120, seed=5, size=32, workers=1)


def test_titles_say_what_is_told_and_nothing_else(clean: Collection) -> None:
    synonyms = 0
    for record in clean.records:
        title = record["title"].lower()
        brand = next(
            brand for brand in sorted(BRANDS, key=len, reverse=True) if title.startswith(brand.lower())
        )
        head = title.removeprefix(brand.lower()).split(",")[0]
        for facet, value in record["told"]["title"].items():
            said = [word for word in SAID[facet][value] if word in head]
            assert said, (facet, value, title)
            synonyms += SAID[facet][value][0] not in head
            head = head.replace(max(said, key=len), "", 1)
        assert not head.strip()
    told = sum(len(record["told"]["title"]) for record in clean.records)
    assert 0.2 < synonyms / told < 0.5  # 0.4 of those that have synonyms


def test_attributes_say_what_is_told_among_what_tells_nothing(clean: Collection) -> None:
    for record in clean.records:
        attributes = dict(attributes_of(record))
        told = record["told"]["attributes"]
        assert {facet: attributes[facet] for facet in told} == {
            facet: SAID[facet][value][0] for facet, value in told.items()
        }
        assert set(attributes) - set(told) <= {"brand", "weight", "country of origin"}


def test_pictures_show_the_background_that_is_told(clean: Collection) -> None:
    """The corners' mean colour, against those of the other pictures of each background."""
    told = np.array([record["told"]["picture"]["department"] for record in clean.records], dtype=object)
    corners = np.zeros((clean.n_images, 32, 32), dtype=bool)
    corners[:, :6, :6] = corners[:, -6:, :6] = corners[:, :6, -6:] = corners[:, -6:, -6:] = True
    pixels = np.stack([np.asarray(picture, dtype=float) for picture in clean.images()])
    means = np.stack([picture[where].mean(axis=0) for picture, where in zip(pixels, corners, strict=True)])
    right = 0
    for row in range(clean.n_images):
        others = np.arange(clean.n_images) != row
        centres = {name: means[(told == name) & others].mean(axis=0) for name in set(told[others])}
        guess = min(centres, key=lambda name: float(((centres[name] - means[row]) ** 2).sum()))
        right += guess == told[row]
    assert right / clean.n_images > 0.8


@given(
    st.integers(0, 2**32),
    st.fixed_dictionaries(
        {}, optional={facet: st.sampled_from(sorted(said)) for facet, said in SAID.items()}
    ),
)
def test_what_is_spoilt_can_be_read(seed: int, told: dict[str, str]) -> None:
    chance = random.Random(seed)
    title = title_of_product(told, chance, 0.4)
    assert plain_text(title) == title
    assert plain_text(spoilt(title, chance)) == title


def test_dirt_spoils_attributes_too(products: Collection, shop: Path) -> None:
    raw = [value for record in products.records for value in record["attributes"].values()]
    assert any("<" in value for value in raw)
    assert any(not plain_text(value) for value in raw)  # a name without a value
    assert not any("<" in value for record in products.records for _, value in attributes_of(record))
