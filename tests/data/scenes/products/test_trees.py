"""Trees of shops: functions of the seed, of uneven depth, whose names say what is in them."""

from __future__ import annotations

import pytest

from diptych.data.scenes.products.facets import DEPARTMENTS
from diptych.data.scenes.products.tree import ShopTree, grow


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
