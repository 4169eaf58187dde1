"""The page of an evaluation of category models, and the contact sheet of a tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_catalogue import DRESSES, tiny_catalogue
from tiny_evaluation import evaluated, shop_and_maker

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import category_texts
from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.commerce.category_to_image.picking import Picks, pick_rows
from diptych.core.errors import MismatchError
from diptych.data.taxonomy import CategoryTree
from diptych.report.categories_evaluation import (
    Gallery,
    categories_page,
    evaluation_findings,
    evaluation_headlines,
    render_categories_page,
    write_categories_page,
)
from diptych.report.categories_tables import error_table, measure_table, sibling_table
from diptych.report.categories_tree import pages_of, write_tree_sheet


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelsEvaluation, Catalogue]:
    folder = tmp_path_factory.mktemp("page")
    shop, maker = shop_and_maker(folder)
    test = shop.subset([row for row, name in enumerate(shop.splits) if name != "train"])
    return evaluated(shop, maker, folder / "evaluation"), test


def value(mean: float, sd: float | None = None, chance: float = 0.1) -> dict[str, object]:
    return {
        "mean": mean,
        "sd": sd,
        "values": [mean],
        "chance": chance,
        "low": mean - 0.05,
        "high": mean + 0.05,
    }


def numbers() -> dict[str, object]:
    """One setting of three models, by hand."""
    rows = [
        {
            "model": name,
            "label": name.upper(),
            "trained": name != "bm25",
            "values": {
                "P@1": value(share, sd),
                "mAP@10": value(share, sd),
                "mAP-hits@10": value(share + 0.1),
            },
            "products": {"R@1": value(share)},
        }
        for name, share, sd in (("bm25", 0.2, None), ("clip-i", 0.4, 0.01), ("clip-ita", 0.4, 0.02))
    ]
    return {
        "line": "9 categories ask 90 products",
        "categories": 9,
        "products": 90,
        "table": rows,
        "baseline": "clip-ita",
        "comparison": "differences to clip-ita; p of 10 swaps; Holm over 4 comparisons",
        "differences": [
            {"run": run, "measure": name, "verdict": verdict}
            for run, verdict in (("bm25", "worse"), ("clip-i", ""))
            for name in ("P@1", "mAP@10")
        ],
    }


def test_the_table_marks_the_best_and_what_differs() -> None:
    table = measure_table("one", numbers())
    bm25, clip_i, clip_ita, chance = table.rows
    assert [cell.text for cell in bm25] == ["BM25", "20.0 ▼", "20.0 ▼", "20.0"]
    assert [cell.strong for cell in clip_i] == [False, True, True, True]
    assert [cell.strong for cell in clip_ita] == [False, True, True, True]
    assert clip_ita[1].note == "±2.0"
    assert chance[1].text == "10.0"
    assert "Holm over 4" in table.after
    assert "mAP-hits@10" not in table.columns


def test_findings_name_ties_and_what_is_not_decided() -> None:
    [finding] = evaluation_findings("most-specific", numbers())
    assert "CLIP-I and CLIP-ITA are best: mAP@10 of 40.0 %." in finding
    assert "BM25 is worse than CLIP-ITA" in finding
    assert "between CLIP-ITA and CLIP-I these categories do not decide" in finding
    [headline] = evaluation_headlines({"most-specific": numbers()})
    assert (headline.value, headline.note) == ("40.0 %", "2 models; chance 10.0 %")
    one = {**numbers(), "table": numbers()["table"][2:], "differences": [], "comparison": None}  # type: ignore[index]
    [alone] = evaluation_findings("all", one)
    assert alone.startswith("All categories: CLIP-ITA has mAP@10 of 40.0 % (35.0–45.0); 40.0 % of products")


def test_counts_are_means_over_seeds() -> None:
    counts = {"asked": 4, "right": 1, "nothing": 0, "same_tree": 2, "other_tree": 1, "kinds": {"sibling": 2}}
    said = {**numbers(), "errors": {"clip-i": {"runs": 2, "all": counts}}}
    [row] = error_table("errors", {"all": said}, ["clip-i"], folded=False).rows
    assert [cell.text for cell in row] == ["CLIP-I", "2", "0.5", "0", "1", "0.5", "0", "0", "1", "0"]
    pair = {"left": ["A", "B"], "right": ["A", "C"], "left_as_right": 3, "right_as_left": 1, "confused": 4,
            "products": 16}  # fmt: skip
    [line] = sibling_table("siblings", [pair], 2).rows
    assert [cell.text for cell in line] == ["B / C", "1.5", "0.5", "8", "25.0"]
    assert line[0].note == "A"


def test_a_whole_page(made: tuple[ModelsEvaluation, Catalogue], tmp_path: Path) -> None:
    found, test = made
    file = write_categories_page(tmp_path / "page.html", found, test)
    page = unescape(file.read_text(encoding="utf-8"))
    for text in (
        "Most specific category",
        "CLIP-ITA",
        "seeds 0, 1",
        "R-precision",
        "Women",
        "LSA of",
        "colours and edges",
    ):
        assert text in page, text
    value = found.value("most-specific", "bm25", "P@1").mean
    assert f"{100 * value:.1f}" in page
    assert page.count("data:image/jpeg") >= 6
    assert "<script" not in page
    assert re.search(r"default-src 'none'; img-src data:; style-src", page)
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "diptych categories evaluate DATA --out EVALUATION --model bm25,sentence,clip-i,clip-ita" in page


def test_without_products_placeholders_stand_in(made: tuple[ModelsEvaluation, Catalogue]) -> None:
    found, test = made
    page = categories_page(found)
    galleries = [block for section in page.sections for block in section.blocks if isinstance(block, Gallery)]
    assert galleries
    assert all(item.picture is None for gallery in galleries for item in gallery.items)
    assert "no picture of p" in render_categories_page(page)
    with pytest.raises(MismatchError, match="the evaluation ranked products"):
        categories_page(found, test.subset([0, 1]))


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


def test_other_peoples_text_is_escaped(made: tuple[ModelsEvaluation, Catalogue]) -> None:
    found, _ = made
    page = categories_page(found)
    galleries = [
        replace(block, items=[replace(item, title="<b>x</b>", asked="<i>y</i>") for item in block.items])
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Gallery)
    ]
    section = replace(page.sections[-1], blocks=galleries)
    text = render_categories_page(replace(page, sections=[section]))
    assert "<b>x" not in text
    assert "<i>y" not in text
    assert "&lt;b&gt;x" in text
