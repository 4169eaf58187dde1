from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.category_to_image.results import choose_examples, confused_siblings, count_errors
from diptych.commerce.taxonomy import CategoryTree

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


def test_by_paths_a_product_below_is_right() -> None:
    asked, found = np.array([SHOES, BOOTS]), np.array([BOOTS, SHOES])
    assert count_errors(TREE, asked, found)["wrong"] == 2
    judged = count_errors(TREE, asked, found, np.array([True, False]))
    assert (judged["right"], judged["wrong"], judged["kinds"]) == (1, 1, {"ancestor": 1})
    assert count_errors(TREE, np.array([MEN]), np.array([MEN]))["same_tree_share"] is None


@given(data=st.data())
def test_counts_agree_with_paths_read_one_by_one(data: st.DataObject) -> None:
    nodes = st.integers(0, len(TREE) - 1)
    asked = data.draw(st.lists(nodes, min_size=1, max_size=12))
    found = data.draw(st.lists(st.integers(-1, len(TREE) - 1), min_size=len(asked), max_size=len(asked)))
    counts = count_errors(TREE, np.array(asked), np.array(found))
    same = other = 0
    kinds, depths, distances = Counter[str](), Counter[int](), Counter[int]()
    for c, p in zip(asked, found, strict=True):
        if p < 0 or c == p:
            continue
        a, b = TREE.paths[c], TREE.paths[p]
        same, other = same + (a[0] == b[0]), other + (a[0] != b[0])
        shared = sum(a[:level] == b[:level] for level in range(1, min(len(a), len(b)) + 1))
        distances[len(a) + len(b) - 2 * shared] += 1  # two roots hang under nothing: 2 edges apart
        if a[0] == b[0]:
            depths[len(b) - len(a)] += 1
        rules = {"other tree": a[0] != b[0], "ancestor": a[: len(b)] == b, "descendant": b[: len(a)] == a}
        rules |= {"sibling": a[:-1] == b[:-1], "same tree": True}
        kinds[next(kind for kind, holds in rules.items() if holds)] += 1
    wrong, nothing = same + other, found.count(-1)
    assert counts == {
        "asked": len(asked),
        "right": len(asked) - wrong - nothing,
        "nothing": nothing,
        "same_tree": same,
        "other_tree": other,
        "depths": depths,
        "distances": distances,
        "kinds": kinds,
        "wrong": wrong,
        "same_tree_share": pytest.approx(same / wrong) if wrong else None,
    }


def path(node: int) -> list[str]:
    return list(TREE.paths[node])


def test_siblings_by_hand() -> None:
    truth = np.array([BOOTS, BOOTS, BOOTS, TRAINERS, TRAINERS, SHOES, MEN, MEN_BAGS])
    guess = np.array([TRAINERS, TRAINERS, BOOTS, BOOTS, -1, MEN_BAGS, WOMEN, MEN_BAGS])
    first, second = confused_siblings(TREE, truth, guess)
    assert (first["left"], first["right"], first["products"]) == (path(BOOTS), path(TRAINERS), 5)
    assert (first["left_as_right"], first["right_as_left"], first["confused"]) == (2, 1, 3)
    # two roots are of two trees, and no siblings
    assert sorted([second["left"], second["right"]]) == sorted([path(SHOES), path(MEN_BAGS)])
    assert confused_siblings(TREE, truth, truth) == []


def test_examples_show_every_kind_and_never_nothing() -> None:
    asked = np.array([BOOTS, BOOTS, SHOES, MEN, TRAINERS, TOTES, BOOTS])
    found = np.array([TRAINERS, SHOES, MEN_BAGS, WOMEN, TRAINERS, -1, BOOTS])
    score = np.array([0.9, 0.2, 0.8, 0.95, 0.7, 0.0, 0.6])
    # the surest of two siblings and of two right ones in a tree
    assert choose_examples(TREE, asked, found, asked == found, score) == [3, 0, 4, 1]
