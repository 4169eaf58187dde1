"""The shape of a tree, counted a second way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from diptych.data.taxonomy import CategoryTree
from diptych.data.taxonomy.tree import Level, shape_of


def test_a_small_tree() -> None:
    tree = CategoryTree([("Men", "Shoes"), ("Men", "Hats"), ("Women", "Shoes", "Boots"), ("Toys",)])
    shape = shape_of(tree)
    assert shape.levels == (Level(1, 3, 1, 2, 1.5), Level(2, 3, 2, 1, 1.0), Level(3, 1, 1, 0, 0.0))
    assert [(name, [tree.text(node) for node in nodes]) for name, nodes in shape.shared] == [
        ("Shoes", ["Men > Shoes", "Women > Shoes"])
    ]
    assert shape.only_children == 2
    assert shape.to_dict()["shared_names"] == {"Shoes": 2}


def test_an_empty_tree() -> None:
    assert shape_of(CategoryTree([])).to_dict() == {
        "categories": 0,
        "levels": [],
        "shared_names": {},
        "only_children": 0,
    }


@given(st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple), min_size=1, max_size=12))
def test_levels_counted_from_the_paths(paths: set[tuple[str, ...]]) -> None:
    tree = CategoryTree(paths)
    shape = shape_of(tree)
    children = {path: [one for one in tree.paths if one[:-1] == path] for path in tree.paths}
    for level in shape.levels:
        own = [path for path in tree.paths if len(path) == level.level]
        counts = [len(children[path]) for path in own]
        some = [count for count in counts if count]
        assert (level.categories, level.leaves, level.most_children) == (
            len(own),
            counts.count(0),
            max(counts),
        )
        assert level.mean_children == (sum(some) / len(some) if some else 0)
    assert shape.categories == sum(level.categories for level in shape.levels)
    assert shape.only_children == sum(len(one) == 1 for one in children.values())
    names = [path[-1] for path in tree.paths]
    assert {name: len(nodes) for name, nodes in shape.shared} == {
        name: names.count(name) for name in names if names.count(name) > 1
    }
