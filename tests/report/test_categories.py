"""The page of an evaluation of category models, and the pages of a tree with its images."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed_page import Parsed
from refusals import refused
from tiny_catalogue import DRESSES, tiny_catalogue
from tiny_evaluation import evaluated, shop_and_maker

from diptych.commerce.catalogue import Catalogue, category_texts
from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.commerce.category_to_image.picking import Picks, pick
from diptych.commerce.category_to_image.rankers import LEADERBOARD
from diptych.commerce.category_to_image.results import (
    error_chart,
    error_table,
    measure_tables,
    short_path,
    sibling_table,
)
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import MismatchError
from diptych.report.categories import evaluation_page, split_tree, write_tree_pages

NASTY = '<script>alert("x")</script> & "quotes" \' / \ud800'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelsEvaluation, Catalogue]:
    folder = tmp_path_factory.mktemp("page")
    shop, maker = shop_and_maker(folder)
    test = shop.subset([row for row, name in enumerate(shop.splits) if name != "train"])
    return evaluated(shop, maker, folder / "evaluation"), test


def numbers() -> dict[str, Any]:
    """One setting of three models, by hand."""
    measures = ("P@1", "P@5", "P@10", "mAP@5", "mAP@10", "R-precision")

    def scored(name: str, share: float, sd: float | None = None) -> dict[str, Any]:
        def value(mean: float, sd: float | None = None) -> dict[str, Any]:
            return {"mean": mean, "sd": sd, "chance": 0.1, "low": mean - 0.05, "high": mean + 0.05}

        values = dict.fromkeys(("R@1", *LEADERBOARD), value(share)) | dict.fromkeys(
            measures, value(share, sd)
        )
        values |= dict.fromkeys(("mAP-hits@5", "mAP-hits@10"), value(share + 0.1))
        return {"model": name, "part": "all", "values": values}

    def differences(run: str, verdict: str) -> list[dict[str, str]]:
        return [{"run": run, "measure": name, "verdict": verdict} for name in measures]

    counts = {"asked": 4, "right": 1, "nothing": 0, "same_tree": 2, "other_tree": 1, "kinds": {"sibling": 2}}
    pair = {"left_as_right": 3, "right_as_left": 1, "confused": 4, "products": 16}
    return {
        "line": "9 categories ask 90 products",
        "scores": [scored("bm25", 0.2), scored("clip-i", 0.4, 0.01), scored("clip-ita", 0.4, 0.02)],
        "baseline": "clip-ita",
        "tests": "Holm over 4 comparisons",
        "differences": [*differences("bm25", "worse"), *differences("clip-i", "")],
        "errors": {"clip-i": {"runs": 2, "all": counts}},
        "siblings": {"clip-i": [{"left": ["A", "B"], "right": ["A", "C"], **pair}]},
    }


def test_tables_by_hand() -> None:
    table, intervals, leaderboard = measure_tables("all", numbers())
    bm25, clip_i, clip_ita, chance = table.rows
    assert [cell.text for cell in bm25] == ["BM25", *["20.0 ▼"] * 6, "20.0"]
    assert [cell.text for cell in clip_i] == ["CLIP-I", *["40.0 *"] * 7]
    assert [cell.strong for cell in clip_ita] == [False, *[True] * 7]
    assert (clip_ita[1].note, chance[1].text) == ("±2.0", "10.0")
    assert "Holm over 4" in table.after
    assert "mAP-hits@10" not in table.columns
    assert (intervals.rows[0][-1].text, intervals.rows[0][-1].note) == ("30.0", "25.0–35.0")
    assert leaderboard.columns == ("Model", *LEADERBOARD)
    [row] = error_table({"all": numbers()}, ["clip-i"]).rows
    assert [cell.text for cell in row] == ["CLIP-I", "2", "0.5", "0", "1", "0.5", "0", "0", "1", "0"]
    [line] = sibling_table("all", numbers(), "clip-i").rows
    assert [cell.text for cell in line] == ["B / C", "1.5", "0.5", "8", "25.0"]
    assert (line[0].note, short_path("abcdefg")) == ("A", "a › … › f › g")


def test_the_page_of_an_evaluation(made: tuple[ModelsEvaluation, Catalogue], tmp_path: Path) -> None:
    found, test = made
    for name in ("depths", "distances"):
        chart = error_chart(found.numbers["settings"], found.baseline, name)
        assert all(sum(series.y) == pytest.approx(100) for series in chart.series)  # type: ignore[arg-type]
    page = evaluation_page(found, test)
    html = page.save(tmp_path / "page.html").read_text(encoding="utf-8")
    text = Parsed(html).text
    best = max(found.value("most-specific", model, "P@1").mean for model in found.models)
    assert page.headlines[list(found.settings).index("most-specific")].value == f"{100 * best:.1f} %"
    for words in ("Most specific category", "CLIP-ITA", "seeds 0, 1", "R-precision", "LSA of", "edges on"):
        assert words in text, words
    assert html.count("data:image/jpeg") >= 6
    assert not re.search(r'(?:src|href)="(?!data:|#)', html)
    assert "data:image/jpeg" not in evaluation_page(found).html()
    refused(MismatchError, "the evaluation ranked products", evaluation_page, found, test.subset([0, 1]))


@pytest.fixture
def shop(tmp_path: Path) -> Catalogue:
    return tiny_catalogue(tmp_path / "shop")


def picks_of(shop: Catalogue, k: int = 3, **options: Any) -> Picks:
    random = np.random.default_rng(0)
    categories, products = (
        random.standard_normal((n, 4)).astype(np.float32) for n in (len(shop.tree), len(shop))
    )
    texts = category_texts(shop.tree, range(len(shop.tree)))
    return pick(categories, products, shop, k, texts=texts, beyond=True, **options)


def test_one_page(shop: Catalogue, tmp_path: Path) -> None:
    about = {"ranker": {"options": {"setting": "most-specific"}}, "trained_on": 7}
    picks = picks_of(shop, k=6, about=about)
    first, unreadable = write_tree_pages(picks, tmp_path / "sheet")
    assert [file.name for file in (tmp_path / "sheet").iterdir()] == ["tree.html"]
    assert not unreadable
    text = first.read_text("utf-8")
    page = Parsed(text)
    assert len([one for one in page.all("div", class_="group") if one["id"].startswith("c")]) == len(
        shop.tree
    )
    for state, number in (("right", 1), ("wrong", 0), ("unknown", -1)):
        assert len(page.all("span", class_=state)) >= int((picks.right == number).sum())
    # each image once, however many categories show it
    assert text.count("data:image/jpeg;base64,") == len(np.unique(picks.products))
    dresses = text[text.index(f'id="c{shop.tree.node(DRESSES)}"') :][:900]
    assert "--level: 4" in dresses
    assert "4 products with an image are sorted here, so at most 4 can be right" in dresses
    assert "Women › Clothing" in dresses
    warning = text.index("trained on most-specific categories only")
    assert warning < text.index("Images of ") < text.index('class="pic')
    assert "trained on 7 of these products" in text.lower()


def test_the_table_of_picks_and_images_that_are_corrupt(shop: Catalogue, tmp_path: Path) -> None:
    picks = picks_of(shop)
    [table] = picks.tables()
    heads = ["level", "categories", "images", "below 3 products", "% found", "without an image"]
    assert table.columns == heads
    for level, row in enumerate(table.rows, 1):
        here = np.flatnonzero(shop.tree.depth == level)
        right = sum(int((picks.right[picks.start[one] : picks.start[one + 1]] == 1).sum()) for one in here)
        could, few = np.minimum(3, picks.there[here]).sum(), np.sum(picks.there[here] < 3)
        values = [level, len(here), 3 * len(here), few, right / could, 0]
        assert [cell.value for cell in row] == pytest.approx(values)
    [members] = picks_of(shop, among="members").tables()
    assert "% found" not in members.columns
    (tmp_path / "shop" / "p00.png").write_bytes(b"no picture")
    (tmp_path / "shop" / "p01.png").unlink()
    first, unreadable = write_tree_pages(picks_of(shop, k=23), tmp_path / "sheet")
    assert sorted(unreadable) == ["p00", "p01"]
    page = Parsed(first.read_text("utf-8"))
    missing = page.all("span", class_="placeholder")
    assert len(missing) == 2 * len(shop.tree)
    assert {one["aria-label"] for one in missing} == {"p00: no image", "p01: no image"}
    assert "2 images could not be read" in page.text


def test_a_large_tree_has_several_pages(shop: Catalogue, tmp_path: Path) -> None:
    for old in ("tree-009.html", "tree-1234.html", "notes.html"):
        (tmp_path / old).write_text("old")
    first, _ = write_tree_pages(picks_of(shop), tmp_path, page_images=18)
    names = ["tree-001.html", "tree-002.html"]
    assert sorted(file.name for file in tmp_path.glob("*.html")) == ["notes.html", *names, "tree.html"]
    links = {one["href"] for one in Parsed(first.read_text("utf-8")).all("a")}
    men, women = shop.tree.node(("Men",)), shop.tree.node(("Women",))
    assert {*names, f"{names[0]}#c{men}", f"{names[1]}#c{women}"} <= links
    shown: list[str] = []
    for name in names:
        page = Parsed((tmp_path / name).read_text("utf-8"))
        shown += [one["id"] for one in page.all("div", class_="group")]
        assert any(one["href"] == "tree.html" for one in page.all("a"))
    assert shown == [f"c{node}" for node in range(len(shop.tree))]


def test_other_peoples_words_are_escaped(shop: Catalogue, tmp_path: Path) -> None:
    extra = ("Women", 'a "b" / <img src=x onerror=y>')
    tree = CategoryTree((*shop.tree.paths, extra, ("protocol",)), {("Women",): '<i>"7"</i>'})
    moved = np.array([tree.node(shop.tree.paths[place]) for place in shop.places.tolist()])
    odd = replace(shop, titles=[NASTY] * len(shop), tree=tree, places=moved, name="<b>shop</b>")
    first, _ = write_tree_pages(picks_of(odd), tmp_path / "sheet")
    text = first.read_text("utf-8")
    page = Parsed(text)
    assert len(page.all("script")) == 1
    for tag in ("img", "i"):
        assert not page.all(tag)
    assert any('alert("x")' in one.get("title", "") for one in page.all("span", class_="pic"))
    assert 'a "b" / <img src=x onerror=y>' in page.text
    assert '<i>"7"</i>' in page.text


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), limit=st.integers(1, 40))
def test_every_category_is_on_one_page_in_order(seed: int, limit: int) -> None:
    random = np.random.default_rng(seed)
    paths = [
        tuple(map(str, random.integers(0, 3, random.integers(1, 5)))) for _ in range(random.integers(1, 25))
    ]
    tree = CategoryTree(paths)
    images = random.integers(0, 9, len(tree))
    pages = split_tree(tree, images, limit)
    assert [node for page in pages for node in page.tolist()] == list(range(len(tree)))
    for page in pages:
        assert images[page].sum() <= limit or len(page) == 1
    for root in np.unique(tree.root):  # a tree that fits is not broken
        whole = np.flatnonzero(tree.root == root)
        on = [number for number, page in enumerate(pages) if np.isin(whole, page).any()]
        assert len(on) == 1 or images[whole].sum() > limit
