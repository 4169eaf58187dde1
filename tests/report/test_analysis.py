"""Pages of gradient counts, granularity, information audits and protocols."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counted_language import counted
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from two_stage import TwoStage, published_recalls, rounded

from diptych.analysis import CocosReport, cocos_over
from diptych.analysis.granularity import Granularity, compare_granularity, granularity
from diptych.analysis.information import Audit
from diptych.analysis.information.audit_report import (
    AuditProtocol,
    GroupFigure,
    Held,
    Probing,
    QuestionFigure,
    Side,
)
from diptych.core.errors import DataError, UsageError
from diptych.data.batches import BatchPlan
from diptych.evaluation.printed import Target, read_digits
from diptych.evaluation.variants import Exploration, Inputs, MatrixScores, explore
from diptych.metrics import GroundTruth
from diptych.objectives import InfoNCE, Objective, Triplet
from diptych.report.cocos import cocos_figure, render_cocos, write_cocos_page, write_cocos_picture
from diptych.report.granularity import (
    bins_of,
    cell,
    render_granularity,
    shares,
    write_granularity_page,
)
from diptych.report.information import (
    MOST_BARS,
    gap_figure,
    questions_figure,
    render_audit,
    write_audit_page,
)
from diptych.report.protocol import render_protocol

OWNER = np.repeat(np.arange(20), 2)


def report_of(objective: Objective, noise: float = 1.0, **options: Any) -> CocosReport:
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
    svg = cocos_figure(report_of(InfoNCE(0.1)))
    shown = words(svg)
    assert {"image → text", "text → image", "candidates per query", "summed weight per query"} <= set(shown)
    assert {"negatives", "positives", "ε = 0.01", "weight τ·|∂L/∂s|", "10⁻²"} <= set(shown)
    assert "in-modality negatives" not in shown
    assert "weight |∂L/∂s|" in words(cocos_figure(report_of(InfoNCE(0.1), unit="score")))


def test_the_page(parse: Callable[[str], Any], tmp_path: Path) -> None:
    report = report_of(InfoNCE(0.1))
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


def test_nothing_moves_any_query(parse: Callable[[str], Any], tmp_path: Path) -> None:
    report = report_of(Triplet(0.2), noise=0.0)
    with pytest.raises(DataError, match="no candidate has any weight"):
        cocos_figure(report)
    page = parse(render_cocos(report))
    assert not page.all("svg")
    assert "No candidate has any weight" in page.text
    with Image.open(write_cocos_picture(report, tmp_path / "cocos.png")) as picture:
        assert picture.width == 1440


def test_the_picture(tmp_path: Path) -> None:
    report = report_of(InfoNCE(0.1))
    with Image.open(write_cocos_picture(report, tmp_path / "cocos.png", resolution=50)) as picture:
        assert picture.width == 480
        assert picture.height > 250
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1_000_000)}
    assert (255, 255, 255) in colours
    # Bars of both kinds: some blue and some orange.
    assert any(blue - red > 100 for red, _, blue in colours)
    assert any(red - blue > 100 for red, _, blue in colours)


COARSE = ["a dog", "a dog on grass", "three dogs", "a <b>man</b> in a hat", "running"]
FINE = ["a small dog", "a red dog on grass", "three small dogs", "a happy man in a red hat", "two old boys"]


def measured(captions: list[str], name: str, compat: str = "none") -> Granularity:
    return granularity(captions, language=counted(), name=name, compat=compat)


@pytest.fixture(scope="module")
def both() -> tuple[Granularity, Granularity]:
    return measured(COARSE, "coarse & co"), measured(FINE, "fine")


def test_a_page_of_two(both: tuple[Granularity, Granularity], tmp_path: Path) -> None:
    page = write_granularity_page(tmp_path / "p.html", both, compare_granularity(*both)).read_text("utf-8")
    assert "<h1>Granularity of coarse &amp; co and fine</h1>" in page
    for one in both:
        for feature in one.features:
            assert f">{cell(feature.mean, feature.decimals)}</span>" in page
            assert feature.definition in page
        assert one.line().replace("&", "&amp;") in page
    assert "a &lt;b&gt;man&lt;/b&gt; in a hat" in page
    assert "<b>man" not in page
    assert "1 caption has no value (no noun that the WordNet has 1)" in page
    assert 'id="comparison"' in page
    assert "Welch&#39;s t-test over images" in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


def test_a_page_of_one_has_no_comparison(both: tuple[Granularity, Granularity]) -> None:
    page = render_granularity(both[:1])
    assert "<h1>Granularity of coarse &amp; co</h1>" in page
    assert 'id="comparison"' not in page
    for number in (0, 3):
        with pytest.raises(UsageError, match=f"a page of {number} collections"):
            render_granularity([both[0]] * number)


@given(values=st.lists(st.floats(0, 1e6) | st.just(float("nan")), min_size=0, max_size=30))
def test_every_caption_with_a_value_is_in_a_bin(values: list[float]) -> None:
    given_values = np.array(values, dtype=np.float64)
    bins = bins_of([given_values])
    assert np.all(np.diff(bins.edges) > 0)
    known = int((~np.isnan(given_values)).sum())
    assert shares(given_values, bins).sum() == pytest.approx(1.0 if known else 0.0)


def held(share: float, there: float = 3.0) -> Held:
    return Held(share, share - 0.05, share + 0.05, there, 100)


def question(key: str, share: float, entropy: float = 2.0) -> QuestionFigure:
    probing = Probing(held(share, entropy), 0.8, 0.3, 0.4, -0.02, 0.01)
    return QuestionFigure(
        key, 4, (400, 100), entropy, 0.31, {"shared": 1.0}, {"linear": probing, "mlp": probing}
    )


def side(kinds: dict[str, float], questions: list[QuestionFigure], notes: tuple[str, ...] = ()) -> Side:
    return Side(
        (400, 100, 100),
        tuple(
            GroupFigure(name, {"linear": held(share), "mlp": held(share + 0.02)}, {"linear": 0.0, "mlp": 0.0})
            for name, share in kinds.items()
        ),
        tuple(questions),
        notes,
    )


KINDS = {"shared": 0.9, "specific": 0.4, "undescribed": -0.1, "one caption": 0.7, "task-relevant": 0.6}


@pytest.fixture
def found() -> Audit:
    images = [question("main.shape", 0.31), question("light", 0.02), question("main.colour", 0.62)]
    captions = [question("main.shape", 0.97), question("unstated light", 0.0)]
    without = {
        "image": side(KINDS, images),
        "caption": side({"shared": 0.95, "unstated": 0.0}, captions, ("facts: 2 with one value.",)),
    }
    carrying = {
        "image": side({**KINDS, "shortcut": 0.8}, [*images, question("digit <6>", 0.99)]),
        "caption": side({"shared": 0.5, "shortcut": 0.9}, captions),
    }
    protocol = AuditProtocol(
        "facts",
        {"linear": "soft-max", "mlp": "perceptron"},
        400,
        0,
        1000,
        0.95,
        (400, 100, 100),
        {"dataset": "<s>"},
    )
    return Audit(protocol, {"without": without, "with": carrying})


def test_the_gap_says_where_rows_stand(found: Audit) -> None:
    svg = gap_figure(found)
    shown = words(svg)
    assert {"one caption 3.0", "all captions 3.0", "held 1.8", "bits per image"} <= set(shown)
    assert "without shortcuts 1.8 of 3.0 bits per image are held; one caption states 3.0" in svg


def test_questions_are_sorted_by_what_is_held(found: Audit) -> None:
    shown = [
        word
        for word in words(questions_figure(found, "image"))
        if "." in word or word in ("light", "digit <6>")
    ]
    assert shown == ["digit <6>", "main.colour", "main.shape", "light"]
    # what a caption does not state has no bar of its own
    assert "unstated light" not in words(questions_figure(found, "caption"))


def test_many_questions_are_cut_to_those_with_most_bits(found: Audit, parse: Callable[[str], Any]) -> None:
    many = [question(f"word{number:03}", 0.5, 0.1 + number / 100) for number in range(MOST_BARS + 5)]
    sides = {"image": side({"shared": 0.5}, many), "caption": side({"words": 0.5}, many)}
    audit = Audit(replace(found.protocol, content="words"), {"without": sides})
    shown = [word for word in words(questions_figure(audit, "image")) if word.startswith("word")]
    assert len(shown) == MOST_BARS
    assert min(shown) == "word005"
    page = parse(render_audit(audit, "run"))
    assert f"The {MOST_BARS} with the most bits; the table has 5 more." in page.text
    assert not page.all("section", id="gap")
    assert "Every word" in page.text
    with pytest.raises(DataError, match="no gap to draw"):
        gap_figure(audit)


def test_the_page_information(found: Audit, parse: Callable[[str], Any], tmp_path: Path) -> None:
    path = write_audit_page(found, tmp_path / "report.html", "runs <b>")
    page = parse(path.read_text(encoding="utf-8"))
    assert not page.open
    assert len(page.all("svg", class_="figure")) == 4
    assert "Information audit of runs <b>" in page.text  # escaped, so it is text and not an element
    assert "dataset <s>" in page.text
    for said in (
        "stated by exactly one of several captions",
        "85.0–95.0",
        "Selectivity",
        "compare one kind between runs",
        "never described) with",
    ):
        assert said in page.text, said
    assert "Without shortcuts, caption rows: facts: 2 with one value." in page.text
    assert len(page.all("details")) == 4
    assert "http" not in page.text
    # the gap: 3.0 bits there, 60 % of them held
    assert "1.8" in page.text
    assert "1.2" in page.text


@pytest.fixture(scope="module")
def protocol_found() -> Exploration:
    model = TwoStage(150)
    truth = GroundTruth.from_caption_image(model.home, 150)
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    label = "table <1>"
    inputs = Inputs(
        {"test": MatrixScores(model.contrastive, truth, matching=model.matching)},
        Target.of(printed, 2, label),
    )
    return explore(inputs, threads=1, exhaustive=1, changes=1)


def test_the_page_says_all(protocol_found: Exploration) -> None:
    digits = read_digits(protocol_found.target, protocol_found.galleries)
    page = render_protocol(
        protocol_found.target, digits, protocol_found, name="a run", lines=["test: 150 images"]
    )
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
    for printed in protocol_found.target.cells.values():
        assert f"<td>{printed}</td>" in page


def test_without_embeddings_the_digits_alone() -> None:
    target = Target.of({"i2t R@1": 63.3, "i2t R@5": 91.1, "i2t R@10": 91.1}, 1)
    page = render_protocol(target, read_digits(target))
    assert "<h1>What the digits of these numbers say</h1>" in page
    assert "ranking 2 to 5 candidates" in page
    assert "Verdict" not in page
    nothing = Target.of({"rsum": 400.0}, 1)
    assert "Nothing that other digits" in render_protocol(nothing, read_digits(nothing))
