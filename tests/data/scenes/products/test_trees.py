"""Trees of shops: functions of the seed, of uneven depth, whose names say what is in them."""

from __future__ import annotations

from collections import Counter

import pytest

from diptych.data.scenes.products.facets import DEPARTMENTS, SAID
from diptych.data.scenes.products.tree import FREE, ShopTree, grow


@pytest.fixture(scope="module")
def tree() -> ShopTree:
    return grow(0)


@pytest.mark.parametrize("seed", range(6))
def test_depths_are_uneven_and_as_the_thesis_has_them(seed: int) -> None:
    leaves = grow(seed).leaves
    assert {len(leaf.path) for leaf in leaves} == set(range(2, 10))
    assert sum(leaf.prior for leaf in leaves) == pytest.approx(1)
    assert sum(leaf.prior * len(leaf.path) for leaf in leaves) == pytest.approx(4.6, abs=0.3)


def test_the_seed_is_the_tree(tree: ShopTree) -> None:
    assert grow(0) == tree
    assert grow(1).paths != tree.paths


def test_leaves_are_no_ones_parents_and_nodes_are_their_paths(tree: ShopTree) -> None:
    inner = {leaf.path[:level] for leaf in tree.leaves for level in range(1, len(leaf.path))}
    leaves = [leaf.path for leaf in tree.leaves]
    assert len(set(leaves)) == len(leaves)
    assert not inner & set(leaves)
    assert set(tree.paths) == inner | set(leaves)


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


def test_some_names_stand_under_several_parents(tree: ShopTree) -> None:
    parents = Counter(path[-1] for path in tree.paths)
    shared = {name for name, count in parents.items() if count > 1}
    assert 0 < len(shared) < 0.1 * len(tree.paths)
    roots = {name: {path[0] for path in tree.paths if path[-1] == name} for name in shared}
    assert any(len(some) > 1 for some in roots.values())


def test_values_by_number(tree: ShopTree) -> None:
    for facet, said in SAID.items():
        for leaf, number in zip(tree.leaves, tree.values_of(facet), strict=True):
            if facet == "noun":
                assert list(said)[number] == DEPARTMENTS[leaf.path[0]].noun
            else:
                assert (list(said)[number] if number != FREE else None) == leaf.values.get(facet)


def test_skew_leaves_the_rest_in_proportion(tree: ShopTree) -> None:
    skewed = tree.with_skew(0.5)
    largest = max(range(len(tree.leaves)), key=lambda place: tree.leaves[place].prior)
    for place, (one, other) in enumerate(zip(tree.leaves, skewed.leaves, strict=True)):
        assert other.path == one.path
        assert other.prior == pytest.approx(one.prior / 2 + (0.5 if place == largest else 0))
