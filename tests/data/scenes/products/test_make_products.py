"""A shop is the same from the same seed, and its titles, attributes, pictures and tree say what its records say."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import DataError, ImageError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data import read_collection
from diptych.data.collection import Collection
from diptych.data.products import attributes_of, paths_of, plain_text
from diptych.data.scenes import make_product_scenes, product_scenes, read_product_scenes
from diptych.data.scenes.products import PRODUCTS, VERSION, Effects, Telling
from diptych.data.scenes.products.facets import DEPARTMENTS, SAID
from diptych.data.scenes.products.product import BRANDS, spoilt, title_of_product
from diptych.data.scenes.products.tree import ShopTree, grow

Options = dict[str, Any]


def every_byte(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_processes_change_no_byte(shop: Path, options: Options, tmp_path: Path) -> None:
    other = make_product_scenes(tmp_path / "other", 200, workers=2, **options)
    assert every_byte(shop) == every_byte(other)


def test_a_larger_shop_begins_with_the_smaller(shop: Path, options: Options, tmp_path: Path) -> None:
    fewer = make_product_scenes(tmp_path / "fewer", 70, workers=1, **options)
    assert (shop / PRODUCTS).read_bytes().startswith((fewer / PRODUCTS).read_bytes())
    many, few = every_byte(shop), every_byte(fewer)
    assert all(many[name] == content for name, content in few.items() if name.endswith(".png"))


def test_what_is_missing_changes_nothing_else(products: Collection, tmp_path: Path) -> None:
    whole = product_scenes(tmp_path / "whole", 200, seed=3, size=32, workers=1)
    assert whole.pictured.all()
    assert whole.n_captions == 200
    for row, (full, less) in enumerate(zip(whole.records, products.records, strict=True)):
        assert full["facts"] == less["facts"]
        assert full["belongs"] == less["belongs"] == full["category_paths"][0]
        assert less["title"] in ("", full["title"])
        assert {**full["told"], **less["told"]} == full["told"]
        told = dict(attributes_of(less))
        assert {**dict(attributes_of(full)), **told} == dict(attributes_of(full))
        if products.pictured[row]:
            assert np.array_equal(np.asarray(whole.image(row)), np.asarray(products.image(row)))


def test_shares_are_as_asked(products: Collection) -> None:
    lacking = {
        "picture": int((~products.pictured).sum()),
        "title": sum(not record["title"] for record in products.records),
        "attributes": sum(not attributes_of(record) for record in products.records),
        "category": sum(not paths_of(record) for record in products.records),
        "one place": sum(len(paths_of(record)) > 1 for record in products.records),
    }
    for what, count in lacking.items():
        assert 5 <= count <= 38, what  # 200 products, a tenth: 20 ± 4.3 standard deviations
    # the title, the attributes and the picture that are missing are not told of either
    for row, record in enumerate(products.records):
        assert ("picture" in record["told"]) == bool(products.pictured[row])
        assert ("title" in record["told"]) == bool(record["title"])


def test_records_are_products(shop: Path, products: Collection) -> None:
    assert products.split_sizes == {"train": 140, "test": 40, "val": 20}
    assert len(set(products.image_ids)) == 200
    lines = [json.loads(line) for line in (shop / PRODUCTS).read_text().splitlines()]
    spoilt = 0
    for row, (record, line) in enumerate(zip(products.records, lines, strict=True)):
        assert record["product"] == products.image_ids[row] == line["id"]
        assert products.captions_of(row) == ([record["title"]] if record["title"] else [])
        assert "<" not in record["title"]
        assert record["title"] == plain_text(line["title"] or "")
        spoilt += line["title"] not in (None, record["title"])
        for path in paths_of(record):
            assert 2 <= len(path) <= 9
        for name, value in attributes_of(record):
            assert record["told"]["attributes"].get(name, value) == value
        if not products.pictured[row]:
            with pytest.raises(ImageError, match="has no picture"):
                products.image(row)
    assert 25 <= spoilt <= 90


def test_two_places_are_in_two_departments(products: Collection) -> None:
    twice = [paths_of(record) for record in products.records if len(paths_of(record)) > 1]
    assert twice
    assert all(first[0] != second[0] for first, second in twice)
    sellers: dict[str, set[str]] = {}
    for leaf in grow(3).leaves:
        sellers.setdefault(leaf.values["shape"], set()).add(leaf.values["department"])
    for first, second in twice:  # of the same shape, where another department has it
        shape, other = first[1].split()[0].lower(), second[1].split()[0].lower()
        assert shape == other or len(sellers[shape]) == 1


def test_one_category_may_hold_half_of_all(tmp_path: Path) -> None:
    half = product_scenes(tmp_path / "half", 300, skew=0.5, size=32, workers=1)
    largest = Counter(tuple(record["belongs"]) for record in half.records).most_common(1)[0][1]
    assert 120 <= largest <= 200
    all_of_them = product_scenes(tmp_path / "all", 20, skew=1.0, size=32, workers=1)
    assert len({tuple(record["belongs"]) for record in all_of_them.records}) == 1


@pytest.mark.parametrize("levels", [(1, 1), (2, 2), (3, 4), (9, 9)])
def test_paths_have_the_levels_that_were_asked_for(levels: tuple[int, int], tmp_path: Path) -> None:
    made = product_scenes(tmp_path / "made", 60, levels=levels, size=32, workers=1)
    lengths = {len(record["belongs"]) for record in made.records}
    assert (min(lengths), max(lengths)) == levels


def test_the_reader_recognises_it(shop: Path, products: Collection) -> None:
    assert read_collection(shop).text_fingerprint == products.text_fingerprint
    with pytest.raises(UsageError, match="has no option 'images'"):
        read_collection(shop, images="elsewhere")


def test_what_a_seed_means_does_not_change_unnoticed(products: Collection) -> None:
    """If this fails on purpose, raise VERSION, so that nobody's cache holds the products of before."""
    told = fingerprint(products.captions, products.records)
    assert (VERSION, told) == (1, "b38053435baa31c7")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_products": 0}, "0 products"),
        ({"levels": (0, 3)}, "0 to 3 levels"),
        ({"levels": (4, 3)}, "4 to 3 levels"),
        ({"levels": (2, 10)}, "1 to 9"),
        ({"levels": (3,)}, "the least and the most"),
        ({"size": 8}, "size=32 to 1024"),
        ({"skew": 1.5}, "skew is 1.5"),
        ({"dirt": -0.1}, "dirt is -0.1"),
        ({"without_title": float("nan")}, "without_title is nan"),
        ({"workers": 0}, "workers=1 or more"),
        ({"effects": Effects(beside=2.0)}, "beside is 2.0"),
        ({"effects": Effects(title={"shape": Telling(0.5, 1.5)})}, "title: shape, right is 1.5"),
        ({"effects": Effects(picture={"shape": Telling(1.0)})}, "pictures tell shape"),
        ({"effects": Effects(title={"department": Telling(0.5)})}, "by the noun"),
        ({"effects": Effects(attributes={"noun": Telling(0.5)})}, "give it to titles alone"),
    ],
)
def test_impossible_wishes(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        make_product_scenes(tmp_path / "one", **{"n_products": 2, **options})
    assert not list(tmp_path.iterdir())


def test_an_unknown_facet_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="taste"):
        make_product_scenes(tmp_path / "one", 2, effects=Effects(title={"taste": Telling(0.5)}))


def test_what_is_damaged_is_said_to_be(tmp_path: Path) -> None:
    made = make_product_scenes(tmp_path / "made", 4, size=32)
    lines = (made / PRODUCTS).read_text().splitlines()
    (made / PRODUCTS).write_text("\n".join(lines[:3]) + "\n")
    with pytest.raises(DataError, match="holds 3 products, 4 expected"):
        read_product_scenes(made)
    (made / PRODUCTS).write_text("\n".join(lines)[:-20])
    with pytest.raises(DataError, match="line 4 is not JSON"):
        read_product_scenes(made)
    for line in ("[]", "3", '{"id": "p000003"}'):
        (made / PRODUCTS).write_text("\n".join([*lines[:3], line]) + "\n")
        with pytest.raises(DataError, match="is not as it was made"):
            read_product_scenes(made)
    (made / PRODUCTS).unlink()
    with pytest.raises(DataError, match="does not exist"):
        read_product_scenes(made)
    (made / "dataset.json").write_text('{"dataset":"product-scenes","version":0}')
    with pytest.raises(DataError, match="version 0"):
        read_product_scenes(made)
    (made / "dataset.json").write_text('{"dataset":"scenes"}')
    with pytest.raises(DataError, match="holds no product scenes"):
        read_product_scenes(made)


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


@pytest.fixture(scope="module")
def tree() -> ShopTree:
    return grow(0)


@pytest.mark.parametrize("seed", range(6))
def test_depths_are_uneven_and_as_the_thesis_has_them(seed: int) -> None:
    leaves = grow(seed).leaves
    assert {len(leaf.path) for leaf in leaves} == set(range(2, 10))
    assert sum(leaf.prior for leaf in leaves) == pytest.approx(1)
    assert sum(leaf.prior * len(leaf.path) for leaf in leaves) == pytest.approx(4.6, abs=0.3)


def test_a_level_adds_a_facet_and_its_word(tree: ShopTree) -> None:
    for leaf in tree.leaves:
        facets = list(leaf.values)
        assert facets[:2] == ["department", "shape"]
        assert len(set(facets)) == len(leaf.path)
        assert leaf.path[0] == leaf.values["department"]
        noun = DEPARTMENTS[leaf.path[0]].noun
        for facet, name in zip(facets[1:], leaf.path[1:], strict=True):
            words = name.lower().split()
            assert words[-2:] == [leaf.values["shape"], f"{noun}s"]
            assert leaf.values[facet] in words


def test_skew_leaves_the_rest_in_proportion(tree: ShopTree) -> None:
    skewed = tree.with_skew(0.5)
    largest = max(range(len(tree.leaves)), key=lambda place: tree.leaves[place].prior)
    for place, (one, other) in enumerate(zip(tree.leaves, skewed.leaves, strict=True)):
        assert other.path == one.path
        assert other.prior == pytest.approx(one.prior / 2 + (0.5 if place == largest else 0))
