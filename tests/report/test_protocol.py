"""The page of an exploration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from two_stage import TwoStage, published_recalls, rounded

from diptych.evaluation.printed import Target, read_digits
from diptych.evaluation.variants import Exploration, Inputs, MatrixScores, explore, explore_scores
from diptych.metrics import GroundTruth
from diptych.report.protocol import distance_figure, render_protocol, shown_variants, write_protocol_page


@pytest.fixture(scope="module")
def found() -> Exploration:
    model = TwoStage(150)
    truth = GroundTruth.from_caption_image(model.home, 150)
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    label = "table <1>"
    inputs = Inputs(
        {"test": MatrixScores(model.contrastive, truth, matching=model.matching)},
        Target.of(printed, 2, label),
    )
    return explore(inputs, threads=1, exhaustive=1, changes=1)


def test_the_page_says_all(found: Exploration) -> None:
    digits = read_digits(found.target, found.galleries)
    page = render_protocol(found.target, digits, found, name="a run", lines=["test: 150 images"])
    assert "table &lt;1&gt;" in page
    assert "<1>" not in page
    for part in (
        "k_test = 2 explains it",
        "no proof of it",
        "a run",
        "test: 150 images",
        "to 5 candidates of each",
    ):
        assert part in page
    assert page.count('<svg class="figure"') == 1
    assert "k_test = 2 0.0" in page  # the figure in words
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "").replace(
        "https", "http"
    )
    for cell in found.target.cells.values():
        assert f"<td>{cell}</td>" in page


def test_without_embeddings_the_digits_alone() -> None:
    target = Target.of({"i2t R@1": 63.3, "i2t R@5": 91.1, "i2t R@10": 91.1}, 1)
    page = render_protocol(target, read_digits(target))
    assert "<h1>What the digits of these numbers say</h1>" in page
    assert "ranking 2 to 5 candidates" in page
    assert "Verdict" not in page
    nothing = Target.of({"rsum": 400.0}, 1)
    assert "Nothing that other digits" in render_protocol(nothing, read_digits(nothing))


def test_variants_with_the_same_numbers_are_shown_once(found: Exploration) -> None:
    shown = shown_variants(found, 100)
    assert shown[0] is found.as_given
    assert shown[1].line() == "k_test = 2"
    values = [(*(round(value, 6) for value in one.values.values()), len(one.exact)) for one in shown]
    assert len(set(values)) == len(values) < len(found.variants)
    assert len(shown_variants(found, 3)) == 3


def test_the_figure_has_a_bar_per_axis(found: Exploration) -> None:
    figure = distance_figure(found)
    for one in found.single_changes:
        assert one.best.line()[:45] in figure
    assert "default protocol" in figure


def test_long_names_are_broken_and_never_cut() -> None:
    model = TwoStage(60)
    printed = published_recalls(model.contrastive, None, model.home, 0)
    turned = {
        f"{side} R@{k}": printed[f"{side} R@{k2}"]
        for side in ("i2t", "t2i")
        for k, k2 in ((1, 5), (5, 10), (10, 1))
    }
    found = explore_scores(
        model.contrastive, 5, rounded(turned), threads=1, changes=1, axes=["columns", "ties"]
    )
    name = "columns = i2t and t2i rotated to R@5, R@10, R@1"
    assert found.explanations[0].line() == name
    figure = distance_figure(found)
    assert "…" not in figure
    drawn = re.sub(r'aria-label="[^"]*"', "", figure)
    assert name not in drawn  # it would take half of the figure
    assert all(word in drawn for word in name.split())
    page = render_protocol(found.target, found.digits, found)
    assert 'table class="variants"' in page
    assert "tbody th { white-space: nowrap" not in page


def test_warnings_stand_first_and_apart() -> None:
    model = TwoStage(60)
    printed = rounded(published_recalls(model.contrastive, None, model.home, 0))
    inputs = Inputs(
        {"test": MatrixScores(model.contrastive, GroundTruth.from_caption_image(model.home, 60))},
        Target.of(printed, 2),
        ("OTHER DATA: these are <others>",),
    )
    found = explore(inputs, threads=1, exhaustive=1, changes=1, axes=["ties"])
    page = render_protocol(found.target, found.digits, found)
    assert '<p class="warning" role="alert">OTHER DATA: these are &lt;others&gt;.</p>' in page
    assert page.count("OTHER DATA") == 1
    assert "The default protocol gives such numbers." in page
    assert "needed to explain" not in page


def test_the_page_is_written_whole(found: Exploration, tmp_path: Path) -> None:
    path = write_protocol_page(tmp_path / "report.html", found.target, read_digits(found.target), found)
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
