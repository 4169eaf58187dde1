"""The contact sheet of a tree: what is on which page, right and wrong, other people's words, damaged pictures."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_catalogue import DRESSES, tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import category_texts
from diptych.commerce.category_to_image.picking import Picks, pick_rows
from diptych.data.taxonomy import CategoryTree
from diptych.report.categories_tree import pages_of, write_tree_sheet


@pytest.fixture
def shop(tmp_path: Path) -> Catalogue:
    return tiny_catalogue(tmp_path / "shop")


def picks_of(shop: Catalogue, k: int = 3, **options: Any) -> Picks:
    random = np.random.default_rng(0)
    categories, products = (
        random.standard_normal((n, 4)).astype(np.float32) for n in (len(shop.tree), len(shop))
    )
    texts = category_texts(shop.tree, range(len(shop.tree)))
    return pick_rows(categories, products, shop, k, texts=texts, **options)


def test_one_page(shop: Catalogue, tmp_path: Path, parse: Callable[[str], Any]) -> None:
    picks = picks_of(shop)
    first, unreadable = write_tree_sheet(picks, tmp_path / "sheet")
    assert [file.name for file in (tmp_path / "sheet").iterdir()] == ["tree.html"]
    assert not unreadable
    text = first.read_text("utf-8")
    page = parse(text)
    assert len(page.all("section", class_="category")) == len(shop.tree)
    for state, value in (("right", 1), ("wrong", 0), ("unknown", -1)):
        assert len(page.all("span", class_="pic") and page.all("span", role="img", class_=state)) == int(
            (picks.right == value).sum()
        )
    distinct = len(np.unique(picks.products))
    assert (
        text.count("data:image/jpeg;base64,") == distinct
    )  # each picture once, however many categories show it
    assert "http://" not in text
    assert "https://" not in text
    assert "<script" not in text
    dresses = text[text.index(f'id="c{shop.tree.node(DRESSES)}"') :]
    assert "--depth: 3" in dresses[:40]
    assert "of 4 products there" in dresses[:900]
    assert "Women &gt; Clothing" in dresses[:900]


def test_a_large_tree_has_several_pages(shop: Catalogue, tmp_path: Path, parse: Callable[[str], Any]) -> None:
    picks = picks_of(shop)
    for old in ("tree-009.html", "tree-1234.html", "notes.html"):
        (tmp_path / old).write_text("old")
    first, _ = write_tree_sheet(picks, tmp_path, page_pictures=18)
    names = sorted(file.name for file in tmp_path.glob("*.html"))
    assert names == ["notes.html", "tree-001.html", "tree-002.html", "tree.html"]
    index = parse(first.read_text("utf-8"))
    links = [one["href"] for one in index.all("a")]
    assert {"tree-001.html", "tree-002.html"} <= set(links)
    men, women = shop.tree.node(("Men",)), shop.tree.node(("Women",))
    assert f"tree-001.html#c{men}" in links
    assert f"tree-002.html#c{women}" in links
    shown: list[str] = []
    for name in names[1:3]:
        page = parse((tmp_path / name).read_text("utf-8"))
        shown += [one["id"] for one in page.all("section", class_="category")]
        assert any(one["href"] == "tree.html" for one in page.all("a"))
    assert shown == [f"c{node}" for node in range(len(shop.tree))]


def test_other_peoples_words_are_escaped(
    shop: Catalogue, tmp_path: Path, parse: Callable[[str], Any]
) -> None:
    nasty = '<script>alert("x")</script> & "quotes" \' / \ud800'
    tree = CategoryTree(
        (*shop.tree.paths, ("Women", 'a "b" / <img src=x onerror=y>')), {("Women",): '<i>"7"</i>'}
    )
    moved = np.array([tree.node(shop.tree.paths[place]) for place in shop.places.tolist()])
    odd = replace(shop, titles=[nasty] * len(shop), tree=tree, places=moved, name="<b>shop</b>")
    first, _ = write_tree_sheet(picks_of(odd), tmp_path / "sheet")
    text = first.read_text("utf-8")
    page = parse(text)
    assert not page.all("script")
    assert not page.all("img")
    assert not page.all("b")
    assert any('alert("x")' in one.get("title", "") for one in page.all("li"))
    assert 'a "b" / <img src=x onerror=y>' in page.text
    assert '<i>"7"</i>' in page.text


def test_a_damaged_picture_is_a_named_placeholder(
    shop: Catalogue, tmp_path: Path, parse: Callable[[str], Any]
) -> None:
    (tmp_path / "shop" / "p00.png").write_bytes(b"no picture")
    (tmp_path / "shop" / "p01.png").unlink()
    first, unreadable = write_tree_sheet(picks_of(shop, k=23), tmp_path / "sheet")
    assert sorted(unreadable) == ["p00", "p01"]
    page = parse(first.read_text("utf-8"))
    missing = page.all("span", class_="missing")
    assert len(missing) == 2 * len(shop.tree)
    assert {one["aria-label"] for one in missing} == {"p00: cannot be read", "p01: cannot be read"}
    assert "2 pictures could not be read" in page.text


def test_a_category_without_pictures_says_so(shop: Catalogue, tmp_path: Path) -> None:
    tree = CategoryTree((*shop.tree.paths, ("Toys",)))
    moved = np.array([tree.node(shop.tree.paths[place]) for place in shop.places.tolist()])
    empty = replace(shop, tree=tree, places=moved)
    first, _ = write_tree_sheet(picks_of(empty, among="members"), tmp_path / "sheet")
    assert first.read_text("utf-8").count('<p class="none">no picture</p>') == 1


def test_no_frame_is_green_where_nobody_said(
    shop: Catalogue, tmp_path: Path, parse: Callable[[str], Any]
) -> None:
    unsorted = replace(shop, place_start=np.zeros(25, np.int64), places=np.zeros(0, np.int64))
    first, _ = write_tree_sheet(picks_of(unsorted), tmp_path / "sheet")
    page = parse(first.read_text("utf-8"))
    assert len(page.all("span", class_="pic")) == len(page.all("span", role="img", class_="unknown")) > 0


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), limit=st.integers(1, 40))
def test_every_category_is_on_one_page_in_order(seed: int, limit: int) -> None:
    random = np.random.default_rng(seed)
    paths = [
        tuple(map(str, random.integers(0, 3, random.integers(1, 5)))) for _ in range(random.integers(1, 25))
    ]
    tree = CategoryTree(paths)
    nodes = np.flatnonzero(random.random(len(tree)) < 0.8)
    pictures = random.integers(0, 9, len(nodes))
    pages = pages_of(tree, nodes, pictures, limit)
    assert [place for page in pages for place in page.tolist()] == list(range(len(nodes)))
    for page in pages:
        assert pictures[page].sum() <= limit or len(page) == 1
    roots = tree.root[nodes]
    for root in np.unique(roots):  # a tree that fits is not broken
        whole = np.flatnonzero(roots == root)
        on = [number for number, page in enumerate(pages) if np.isin(whole, page).any()]
        assert len(on) == 1 or pictures[whole].sum() > limit or root not in nodes


def test_the_style_names_each_picture_once(shop: Catalogue, tmp_path: Path) -> None:
    first, _ = write_tree_sheet(picks_of(shop, k=23), tmp_path)
    names = re.findall(r"^\.p(\d+) \{", first.read_text("utf-8"), re.MULTILINE)
    assert names == [str(place) for place in range(23)]
