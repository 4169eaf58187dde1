"""The plan of Figure 2.2: sixteen descendants, numbered and walked as the thesis does."""

from __future__ import annotations

from diptych.studies.reproducibility_orders import PAPERS, Node, tree_of


def numbers(node: Node) -> dict[int, list[int]]:
    """Parent → children, by the figure's numbers."""
    found = {}
    for one in node.upwards():
        if one.children:
            found[one.number] = [child.number for child in one.children]
    return found  # type: ignore[return-value]


def test_the_papers_tree() -> None:
    tree = tree_of(PAPERS)
    assert numbers(tree) == {
        0: [1, 2],
        1: [3, 4],
        2: [5, 6],
        3: [7, 8, 9],
        4: [10, 11],
        5: [12, 13, 14],
        6: [15, 16],
    }
    titles = {node.number: node.title for node in tree.upwards()}
    assert sorted(titles) == list(range(17))
    assert [titles[number] for number in (7, 8, 9, 10, 11)] == [
        *("CUB-200", "Fashion200k", "ABO", "MS COCO", "Flickr30k")
    ]
    assert [titles[number] for number in (12, 13, 14, 15, 16)] == [titles[n] for n in (7, 8, 9, 10, 11)]


def test_it_is_walked_from_the_leaves_to_the_root() -> None:
    order = [node.number for node in tree_of(PAPERS).upwards()]
    assert order == [*range(7, 17), 3, 4, 5, 6, 1, 2, 0]
    seen: set[int | None] = set()
    for node in tree_of(PAPERS).upwards():
        assert all(child.number in seen for child in node.children)
        seen.add(node.number)


def test_other_collections_are_leaves_without_a_number() -> None:
    tree = tree_of({"flickr8k": "scene", "COCO": "scene", "shop": "object", "mixed": ""})
    assert [(leaf.number, leaf.dataset, leaf.centric) for leaf in tree.leaves[:3]] == [
        (None, "shop", "object"),
        (10, "COCO", "scene"),
        (None, "flickr8k", "scene"),
    ]
    assert [leaf.direction for leaf in tree.leaves] == ["t2i"] * 3 + ["i2t"] * 3


def test_empty_branches_are_left_out() -> None:
    assert numbers(tree_of({"coco": "scene"})) == {0: [1, 2], 1: [4], 2: [6], 4: [10], 6: [15]}
    assert tree_of({}).leaves == []
