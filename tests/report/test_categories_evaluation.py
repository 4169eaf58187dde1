"""The page of an evaluation of models: numbers, marks, figures, pictures, and what is other people's text."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from tiny_evaluation import evaluated, shop_and_maker

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.core.errors import MismatchError
from diptych.report.categories_evaluation import (
    Gallery,
    bars_figure,
    categories_page,
    evaluation_findings,
    evaluation_headlines,
    level_figure,
    render_categories_page,
    write_categories_page,
)
from diptych.report.categories_tables import error_table, measure_table, seen_table, short_path, sibling_table
from diptych.report.intent_content import Page, render_page


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


def test_figures_say_what_they_show() -> None:
    groups = [
        {"group": level, "categories": 4, "values": {"P@1": {"mean": level / 10}}} for level in (1, 2, 3)
    ]
    drawn = level_figure("levels", "by level", {"A": groups, "B": groups[1:]}, "P@1")
    assert "A 10.0 at level 1, 20.0 at level 2, 30.0 at level 3; B 20.0 at level 2" in drawn
    bars = bars_figure("depths", "d", {-1: 6, 2: 2}, "d(c, c_p)", zero=True, runs=2)
    assert "d, 8 errors: 75 % at -1, 25 % at +2." in bars
    assert "var(--blue" in bars
    assert "var(--orange" in bars
    assert bars_figure("one", "d", {0: 3}, "d", zero=True)


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


def test_long_paths_keep_their_ends() -> None:
    assert short_path(["A", "B", "C"]) == "A › B › C"
    assert short_path(["A", "B", "C", "D", "E"]) == "A › … › D › E"


def test_seen_and_unseen_have_a_row_each() -> None:
    groups = [
        {
            "group": group,
            "categories": 3 + group,
            "values": {name: {"mean": 0.5, "sd": None} for name in NAMES},
        }
        for group in (0, 1)
    ]
    said = {**numbers(), "seen": {"clip-ita": groups}}
    unseen, seen = seen_table("seen", {"all": said}, ["clip-ita"], folded=False).rows
    assert [cell.text for cell in unseen] == ["CLIP-ITA, unseen", "3", "50.0", "50.0", "50.0"]
    assert seen[0].text == "CLIP-ITA, seen"


NAMES = ("P@1", "mAP@10", "mAP-hits@10")


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


def test_pages_of_intent_fetch_nothing_still() -> None:
    assert "default-src 'none'; style-src 'unsafe-inline'" in unescape(render_page(Page("a", "b")))
