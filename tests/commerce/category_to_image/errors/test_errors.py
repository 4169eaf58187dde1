from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.category_to_image.errors import choose_examples, confused_siblings, count_errors, pooled
from diptych.core.errors import DataError
from diptych.data.taxonomy import CategoryTree

# Two trees; "Bags" stands under both.
TREE = CategoryTree(
    [
        ("Men", "Shoes", "Boots"),
        ("Men", "Shoes", "Trainers"),
        ("Men", "Bags"),
        ("Women", "Shoes", "Boots"),
        ("Women", "Bags", "Totes", "Canvas"),
    ]
)


def node(*path: str) -> int:
    return TREE.node(path)


MEN, WOMEN = node("Men"), node("Women")
SHOES, BOOTS, TRAINERS = node("Men", "Shoes"), node("Men", "Shoes", "Boots"), node("Men", "Shoes", "Trainers")
MEN_BAGS, TOTES = node("Men", "Bags"), node("Women", "Bags", "Totes")


def test_counts_by_hand() -> None:
    asked = np.array([BOOTS, BOOTS, MEN, SHOES, TOTES, TRAINERS, WOMEN])
    found = np.array([BOOTS, MEN, TRAINERS, MEN_BAGS, BOOTS, -1, MEN])
    counts = count_errors(TREE, asked, found)
    assert (counts.asked, counts.right, counts.nothing, counts.wrong) == (7, 1, 1, 5)
    assert (counts.same_tree, counts.other_tree) == (3, 2)
    # d(c, c_p) = depth(c_p) - depth(c) in the same tree: Boots -> Men, Men -> Trainers, Shoes -> Bags
    assert counts.depths == {-2: 1, 0: 1, 2: 1}
    # edges: 2, 2, 2; Totes (3) and Boots (3) meet above their roots: 6; Women and Men: 2
    assert counts.distances == {2: 4, 6: 1}
    assert counts.kinds == {"ancestor": 1, "descendant": 1, "sibling": 1, "other tree": 2}
    assert counts.same_tree_share == pytest.approx(3 / 5)


def test_by_paths_a_product_below_is_right() -> None:
    asked, found = np.array([SHOES, BOOTS]), np.array([BOOTS, SHOES])
    assert count_errors(TREE, asked, found).wrong == 2
    judged = count_errors(TREE, asked, found, np.array([True, False]))
    assert (judged.right, judged.wrong, judged.kinds) == (1, 1, {"ancestor": 1})


def test_nothing_wrong_has_no_share_and_odd_input_is_refused() -> None:
    assert count_errors(TREE, np.array([MEN]), np.array([MEN])).same_tree_share is None
    with pytest.raises(DataError, match="2 categories asked, 1 found"):
        count_errors(TREE, np.array([MEN, MEN]), np.array([MEN]))
    with pytest.raises(DataError, match="found no product"):
        count_errors(TREE, np.array([MEN]), np.array([-1]), np.array([True]))


def test_pooled_adds_up() -> None:
    one = count_errors(TREE, np.array([BOOTS, SHOES]), np.array([MEN, MEN]))
    two = count_errors(TREE, np.array([BOOTS, SHOES]), np.array([TRAINERS, -1]))
    both = pooled([one, two])
    assert (both.asked, both.same_tree, both.nothing) == (4, 3, 1)
    assert both.depths == {-2: 1, -1: 1, 0: 1}
    assert both.kinds == {"ancestor": 2, "sibling": 1}


@given(data=st.data())
def test_counts_agree_with_paths_read_one_by_one(data: st.DataObject) -> None:
    nodes = st.integers(0, len(TREE) - 1)
    asked = data.draw(st.lists(nodes, min_size=1, max_size=12))
    found = data.draw(st.lists(st.integers(-1, len(TREE) - 1), min_size=len(asked), max_size=len(asked)))
    counts = count_errors(TREE, np.array(asked), np.array(found))
    same = other = 0
    kinds: dict[str, int] = {}
    for c, p in zip(asked, found, strict=True):
        if p < 0 or c == p:
            continue
        a, b = TREE.paths[c], TREE.paths[p]
        same, other = same + (a[0] == b[0]), other + (a[0] != b[0])
        if a[0] != b[0]:
            kind = "other tree"
        elif a[: len(b)] == b:
            kind = "ancestor"
        elif b[: len(a)] == a:
            kind = "descendant"
        elif a[:-1] == b[:-1]:
            kind = "sibling"
        else:
            kind = "same tree"
        kinds[kind] = kinds.get(kind, 0) + 1
    assert (counts.same_tree, counts.other_tree) == (same, other)
    assert dict(counts.kinds) == kinds
    assert sum(counts.distances.values()) == counts.wrong == counts.asked - counts.right - counts.nothing


def test_siblings_by_hand() -> None:
    truth = np.array([BOOTS, BOOTS, BOOTS, TRAINERS, TRAINERS, SHOES, MEN, MEN_BAGS])
    guess = np.array([TRAINERS, TRAINERS, BOOTS, BOOTS, -1, MEN_BAGS, WOMEN, MEN_BAGS])
    first, second = confused_siblings(TREE, truth, guess)
    assert (first.left, first.right) == (BOOTS, TRAINERS)
    assert (first.left_as_right, first.right_as_left, first.products) == (2, 1, 5)
    assert first.share == pytest.approx(3 / 5)
    assert {second.left, second.right} == {SHOES, MEN_BAGS}  # two roots are of two trees, and no siblings
    assert confused_siblings(TREE, truth, guess, 1) == [first]
    assert confused_siblings(TREE, truth, truth) == []


def test_examples_show_every_kind_and_never_nothing() -> None:
    asked = np.array([BOOTS, BOOTS, SHOES, MEN, TRAINERS, TOTES])
    found = np.array([TRAINERS, SHOES, MEN_BAGS, WOMEN, TRAINERS, -1])
    right = asked == found
    score = np.array([0.9, 0.2, 0.8, 0.95, 0.7, 0.0])
    wrong = choose_examples(TREE, asked, found, right, score, 3, wrong=True)
    # one of each kind before a second sibling, another tree last of its turn
    assert wrong.tolist() == [0, 1, 3]
    assert choose_examples(TREE, asked, found, right, score, 9, wrong=True).tolist() == [0, 1, 3, 2]
    assert choose_examples(TREE, asked, found, right, score, 9, wrong=False).tolist() == [4]
