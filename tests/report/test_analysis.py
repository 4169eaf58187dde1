"""Pages of gradient counts, granularity, information audits and protocols."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counted_language import counted
from hypothesis import given
from hypothesis import strategies as st
from parsed_page import Parsed
from PIL import Image
from refusals import refused
from two_stage import TwoStage, published_recalls, rounded

from diptych.analysis.cocos import cocos_over
from diptych.analysis.cocos_report import CocosReport
from diptych.analysis.granularity.compare import compare_granularity
from diptych.analysis.granularity.measure import granularity
from diptych.analysis.granularity.result import (
    Granularity,
    bins_of,
    comparison_table,
    granularity_charts,
    granularity_tables,
)
from diptych.analysis.information.audit import (
    Audit,
    AuditProtocol,
    GroupFigure,
    Held,
    Probing,
    QuestionFigure,
    Side,
)
from diptych.analysis.information.tables import (
    MOST_BARS,
    gap_charts,
    gap_tables,
    kinds_tables,
    question_charts,
    question_tables,
)
from diptych.core.errors import UsageError
from diptych.core.table import Table
from diptych.data.batches import BatchPlan
from diptych.evaluation.printed.target import as_target
from diptych.evaluation.variants.exploration import Exploration, axes_tables, variants_table
from diptych.evaluation.variants.explore import explore
from diptych.evaluation.variants.recompute import Scored
from diptych.metrics import GroundTruth
from diptych.objectives import InfoNCE, Objective, Triplet
from diptych.report.analysis import audit_page, cocos_page, granularity_page, protocol_page
from diptych.report.figures import summary, write_picture

OWNER = np.repeat(np.arange(20), 2)


def report_of(objective: Objective, noise: float = 1.0, **options: Any) -> CocosReport:
    random = np.random.default_rng(0)
    images = np.eye(20, dtype=np.float32)
    texts = images[OWNER] + noise * random.normal(size=(40, 20)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    batches = BatchPlan(OWNER, 20, 10, "distinct").epoch(0)
    return cocos_over(images, texts, batches, objective, about={"dataset": "<things>"}, **options)


def cells(table: Table, head: str) -> dict[str, str]:
    """The cells of one row, by column."""
    row = next(row for row in table.rows if row[0].text == head)
    return dict(zip(table.columns, [cell.line for cell in row], strict=True))


def test_gradient_counts(tmp_path: Path) -> None:
    report = report_of(InfoNCE(0.1))
    page = Parsed(cocos_page(report).html())
    assert "dataset <things>" in page.text  # escaped, so it is text and not an element
    (table,) = report.tables()
    shown = cells(table, "C^q")
    assert shown["image → text"] == report.counts["i2t"]["per_query"].show()
    assert cells(table, "W^+")["text → image"] == report.counts["t2i"]["positives_weight"].show(3)
    charts = report.charts()
    assert [chart.title for chart in charts[:2]] == [
        "image → text: candidates per query",
        "text → image: candidates per query",
    ]
    negatives, positives, epsilon = charts[0].series
    drawn = [value or 0.0 for value in negatives.y[1:]]
    assert sum(drawn) == pytest.approx(9.0 - report.weights["i2t"]["negatives"].zeros / 40)
    assert (positives.name, list(epsilon.x)) == ("positives", [0.01])
    assert "ε = 0.01 0.01" in summary(charts[0])
    with Image.open(write_picture(tmp_path / "c.png", charts, "words", resolution=50)) as picture:
        assert picture.width == 480
    still = report_of(Triplet(0.2), noise=0.0)
    assert still.charts() == []
    page = Parsed(cocos_page(still).html())
    assert not page.all("svg")
    assert "No candidate has any weight" in page.text


COARSE = ["a dog", "a dog on grass", "three dogs", "a <b>man</b> in a hat", "running"]
FINE = ["a small dog", "a red dog on grass", "three small dogs", "a happy man in a red hat", "two old boys"]


def measured(captions: list[str], name: str, compat: str = "none") -> Granularity:
    return granularity(captions, language=counted(), name=name, compat=compat)


@pytest.fixture(scope="module")
def both() -> tuple[Granularity, Granularity]:
    return measured(COARSE, "coarse & co"), measured(FINE, "fine")


def test_granularity_of_two(both: tuple[Granularity, Granularity]) -> None:
    compared = compare_granularity(*both)
    text = granularity_page(both, compared).html()
    assert "<b>man" not in text
    page = Parsed(text)
    for words in ("a <b>man</b> in a hat", *(one.line() for one in both), *compared.notes):
        assert words in page.text
    table = granularity_tables(both)[0]
    feature = both[1].feature("words")
    assert cells(table, "words")["fine mean"] == f"{feature.mean:.2f} ({feature.low:.2f}–{feature.high:.2f})"
    assert cells(table, "concept-depth")["coarse & co without value"] == "1 (no noun that the WordNet has 1)"
    found = next(one for one in compared.differences if one.name == "words")
    shown = cells(comparison_table(compared), "words")
    assert shown["difference"].startswith("+1.00 (")
    assert shown["δ"].startswith(f"{found.delta.value:+.2f}")
    assert "Comparison" not in [section.title for section in granularity_page(both[:1]).sections]
    for number in (0, 3):
        refused(UsageError, f"a page of {number} collections", granularity_page, [both[0]] * number)
    for chart in granularity_charts(both):  # shares of captions add up
        for series, one in zip(chart.series, both, strict=True):
            total = sum(value or 0.0 for value in series.y[1:])
            assert total == pytest.approx(100.0 if one.feature(chart.title).n else 0.0)


@given(values=st.lists(st.floats(0, 1e6) | st.just(float("nan")), min_size=0, max_size=30))
def test_bins_rise_and_hold_every_value(values: list[float]) -> None:
    edges, is_open = bins_of([np.array(values, dtype=np.float64)])
    assert np.all(np.diff(edges) > 0)
    known = [value for value in values if not np.isnan(value)]
    assert not known or (edges[0] <= min(known) and (is_open or max(known) <= edges[-1]))


def held(share: float, there: float = 3.0) -> Held:
    return Held(share, share - 0.05, share + 0.05, there, 100)


def question(key: str, share: float, entropy: float = 2.0) -> QuestionFigure:
    probing = Probing(held(share, entropy), 0.8, 0.3, 0.4, -0.02, 0.01)
    both = {"linear": probing, "mlp": probing}
    return QuestionFigure(key, 4, (400, 100), entropy, 0.31, {"shared": 1.0}, both)


def side(kinds: dict[str, float], questions: list[QuestionFigure], *notes: str) -> Side:
    groups = []
    for name, share in kinds.items():
        probes = {"linear": held(share), "mlp": held(share + 0.02)}
        groups.append(GroupFigure(name, probes, dict.fromkeys(probes, 0.0)))
    return Side((400, 100, 100), tuple(groups), tuple(questions), notes)


@pytest.fixture
def found() -> Audit:
    images = [question("main.shape", 0.31), question("light", 0.02), question("main.colour", 0.62)]
    captions = [question("main.shape", 0.97), question("unstated light", 0.0)]
    kinds = {"shared": 0.9, "specific": 0.4, "undescribed": -0.1, "one caption": 0.7, "task-relevant": 0.6}
    of_captions = side({"shared": 0.95, "unstated": 0.0}, captions, "facts: 2 with one value.")
    carrying = {
        "image": side({**kinds, "shortcut": 0.8}, [*images, question("digit <6>", 0.99)]),
        "caption": side({"shared": 0.5, "shortcut": 0.9}, captions),
    }
    probes, sizes = {"linear": "soft-max", "mlp": "perceptron"}, (400, 100, 100)
    protocol = AuditProtocol("facts", probes, 400, 0, 1000, 0.95, sizes, {"dataset": "<s>"})
    return Audit(
        protocol, {"without": {"image": side(kinds, images), "caption": of_captions}, "with": carrying}
    )


def test_the_tables_and_charts_of_an_audit(found: Audit) -> None:
    images, captions = kinds_tables({"run": found})
    assert images.groups == [("", 1), ("without shortcuts", 2), ("with shortcuts", 2), ("", 2)]
    assert [cell.line for cell in images.rows[0]][:2] == ["shared", "90.0 (85.0–95.0)"]
    assert [cell.text for cell in images.rows[3]][:4] == ["shortcut", "–", "–", "80.0"]
    assert [row[0].text for row in captions.rows] == ["shared", "unstated", "shortcut"]
    (gap,) = gap_tables(found)
    assert cells(gap, "linear probe")["held of these"] == "1.8 (1.6–1.9)"
    assert cells(gap, "linear probe")["gap"].startswith("1.2")
    questions = question_tables(found)
    assert [one.folded for one in questions] == [True] * 4
    row = cells(questions[0], "main.colour")
    assert (row["selectivity"], row["by heart"], row["rows, train"]) == ("50", "40", "400")
    several = kinds_tables({"one": found, "other": found})[0]
    assert several.columns[1:4] == ("one linear", "one mlp", "other linear")
    of_images, of_captions = question_charts(found)  # sorted by what is held
    assert of_images.categories == ["digit <6>", "main.colour", "main.shape", "light"]
    assert of_captions.categories == ["main.shape"], "what a caption does not state has no bar"
    assert list(of_images.series[0].y)[1] == pytest.approx(62.0)
    there, bits = gap_charts(found)[0].series
    assert [there.y[-1], bits.y[-1]] == pytest.approx([3.0, 1.8])
    page = Parsed(audit_page(found, "runs <b>").html())
    for words in (
        "Information audit of runs <b>",  # escaped, so it is text and not an element
        "shared, without shortcuts",
        "85.0–95.0; of 3.0 bits per image",
        "dataset <s>",
        "stated by exactly one of several captions",
        "compare one kind between runs",
        "Without shortcuts, caption rows: facts: 2 with one value.",
    ):
        assert words in page.text, words
    # Of many questions a chart shows those with the most bits.
    many = [question(f"word{number:03}", 0.5, 0.1 + number / 100) for number in range(MOST_BARS + 5)]
    sides = {"image": side({"shared": 0.5}, many), "caption": side({"words": 0.5}, many)}
    audit = Audit(replace(found.protocol, content="words"), {"without": sides})
    chart = question_charts(audit)[0]
    assert (len(chart.categories), min(chart.categories)) == (MOST_BARS, "word005")
    assert chart.after == "The 40 of 45 with the most bits."
    assert gap_tables(audit) == [] == gap_charts(audit)
    assert "Every word" in [section.title for section in audit_page(audit, "run").sections]


@pytest.fixture(scope="module")
def protocol_found() -> Exploration:
    model = TwoStage(120)
    truth = GroundTruth.from_caption_image(model.home, 120)
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    label = "table <1>"
    sources = {"test": Scored(model.contrastive, truth, matching=model.matching)}
    return explore(sources, as_target(printed, 2, label), threads=1, changes=1)


def test_an_explained_protocol(protocol_found: Exploration) -> None:
    text = protocol_page(replace(protocol_found, of=["test: 120 images"]), "a run").html()
    assert "<1>" not in text
    for words in (*str(protocol_found).splitlines(), "table <1>", "a run", "test: 120 images"):
        assert words in Parsed(text).text
    table = variants_table(protocol_found, 6)
    name, printed = next(iter(protocol_found.target.cells.items()))
    assert cells(table, "printed")[name] == str(printed)
    row = cells(table, "k_test = 2")
    assert (row[name], row["off, %"]) == (f"{printed} =", "0.0")
    assert row["what it means"].startswith("only the 2 best candidates of each query are re-ranked")
    assert {row[1].text for row in axes_tables(protocol_found)[0].rows} >= {"none", "2", "first"}
    warned = replace(protocol_found, warnings=("OTHER DATA",))
    headline = protocol_page(warned).summary
    assert headline.startswith("OTHER DATA. Under the default protocol")
    # Without embeddings only the digits.
    target = as_target({"i2t R@1": 63.3, "i2t R@5": 91.1, "i2t R@10": 91.1}, 1)
    page = protocol_page(Exploration(target))
    assert page.title == "What the digits of these numbers say"
    assert "ranking 2 to 5 candidates" in page.html()
    assert [section.title for section in page.sections] == ["Printed numbers", "What the digits say"]
    nothing = protocol_page(Exploration(as_target({"rsum": 400.0}, 1)))
    assert "Nothing that other digits" in nothing.html()
