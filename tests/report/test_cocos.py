"""The COCOS page: its table, its figure, and a picture that shows them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from diptych.analysis import CocosReport, cocos_over
from diptych.core.errors import DataError
from diptych.data.batches import BatchPlan
from diptych.objectives import InfoNCE, Objective, Triplet
from diptych.report.cocos import cocos_figure, render_cocos, write_cocos_page, write_cocos_picture

OWNER = np.repeat(np.arange(20), 2)


def counted(objective: Objective, noise: float = 1.0, **options: Any) -> CocosReport:
    random = np.random.default_rng(0)
    images = np.eye(20, dtype=np.float32)
    texts = images[OWNER] + noise * random.normal(size=(40, 20)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    batches = BatchPlan(OWNER, 20, 10, "distinct").epoch(0)
    return cocos_over(images, texts, batches, objective, about={"dataset": "<things>"}, **options)


def words(svg: str) -> list[str]:
    tree = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_the_figure_is_labelled_with_units() -> None:
    svg = cocos_figure(counted(InfoNCE(0.1)))
    shown = words(svg)
    assert {"image → text", "text → image", "candidates per query", "summed weight per query"} <= set(shown)
    assert {"negatives", "positives", "ε = 0.01", "weight τ·|∂L/∂s|", "10⁻²"} <= set(shown)
    assert "in-modality negatives" not in shown
    assert "weight |∂L/∂s|" in words(cocos_figure(counted(InfoNCE(0.1), unit="score")))


def test_the_figure_says_what_a_logarithm_cannot_show() -> None:
    report = counted(Triplet(0.2))
    negatives = report.weights["i2t"]["negatives"]
    share = 100 * negatives.zeros / negatives.candidates
    assert 0 < share < 100
    assert f"{share:.1f} % of negatives weigh 0" in words(cocos_figure(report))


def test_one_direction_and_no_threshold() -> None:
    shown = words(cocos_figure(counted(Triplet(0.2, direction="t2i"), epsilon=0.0)))
    assert "text → image" in shown
    assert "image → text" not in shown
    assert not any(word.startswith("ε") for word in shown)


def test_the_page(parse: Callable[[str], Any], tmp_path: Path) -> None:
    report = counted(InfoNCE(0.1))
    page = parse(write_cocos_page(report, tmp_path / "cocos.html").read_text(encoding="utf-8"))
    assert not page.open
    assert len(page.all("svg", class_="figure")) == 1
    assert page.all("table", **{"aria-describedby": "protocol"})
    assert "dataset <things>" in page.text  # escaped, so it is text and not an element
    for spreads in report.counts.values():
        assert spreads["per_query"].show() in page.text
        assert spreads["positives_weight"].show(3) in page.text
    assert not page.all("section", id="notes")
    assert "http" not in page.text


def test_published_counts_are_called_so(parse: Callable[[str], Any]) -> None:
    page = parse(render_cocos(counted(Triplet(0.2), compat="published")))
    assert page.all("section", id="notes")
    assert "faults included" in page.text
    assert "compat published" in page.text


def test_nothing_moves_any_query(parse: Callable[[str], Any], tmp_path: Path) -> None:
    report = counted(Triplet(0.2), noise=0.0)
    with pytest.raises(DataError, match="no candidate has any weight"):
        cocos_figure(report)
    page = parse(render_cocos(report))
    assert not page.all("svg")
    assert "No candidate has any weight" in page.text
    with Image.open(write_cocos_picture(report, tmp_path / "cocos.png")) as picture:
        assert picture.width == 1440


def test_the_picture(tmp_path: Path) -> None:
    report = counted(InfoNCE(0.1))
    with Image.open(write_cocos_picture(report, tmp_path / "cocos.png", resolution=50)) as picture:
        assert picture.width == 480
        assert picture.height > 250
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1_000_000)}
    assert (255, 255, 255) in colours
    # Bars of both kinds: some blue and some orange.
    assert any(blue - red > 100 for red, _, blue in colours)
    assert any(red - blue > 100 for red, _, blue in colours)
