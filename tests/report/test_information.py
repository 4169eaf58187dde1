"""The page of an information audit: its figures, tables and words."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diptych.analysis.information import Audit
from diptych.analysis.information.audit_report import (
    AuditProtocol,
    GroupFigure,
    Held,
    Probing,
    QuestionFigure,
    Side,
)
from diptych.core.errors import DataError
from diptych.report.information import (
    MOST_BARS,
    gap_figure,
    kinds_figure,
    questions_figure,
    render_audit,
    write_audit_page,
)


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


def words(svg: str) -> list[str]:
    tree = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_kinds_are_told_in_order_and_sums_are_not(found: Audit) -> None:
    svg = kinds_figure(found)
    shown = words(svg)
    assert [word for word in shown if word in KINDS or word in ("shortcut", "unstated")] == [
        "shared", "specific", "undescribed", "shortcut", "shared", "unstated", "shortcut",
    ]  # fmt: skip
    assert {"image rows", "caption rows", "linear probe, with shortcuts", "mlp probe"} <= set(shown)
    assert "image rows without shortcuts shared 90.0 (85.0–95.0)" in svg


def test_one_condition_has_no_name(found: Audit) -> None:
    alone = Audit(found.protocol, {"without": found.conditions["without"]})
    shown = words(kinds_figure(alone))
    assert "linear probe" in shown
    assert not any("shortcut" in word for word in shown)
    assert words(gap_figure(alone)).count("there") == 1


def test_the_gap_says_where_rows_stand(found: Audit) -> None:
    svg = gap_figure(found)
    shown = words(svg)
    assert {"one caption 3.0", "all captions 3.0", "held 1.8", "bits per image"} <= set(shown)
    assert "without shortcuts 1.8 of 3.0 bits per image are held; one caption states 3.0" in svg


def test_digits_that_no_caption_has_have_no_box_in_the_gap(found: Audit) -> None:
    def figure(optimal: float, shortcut: float | None) -> str:
        there = {"shared": 3.0, "specific": 2.0, "one caption": 4.0, "task-relevant": optimal}
        if shortcut is not None:
            there["shortcut"] = shortcut
        groups = tuple(
            GroupFigure(name, {"linear": held(0.5, bits)}, {"linear": 0.0}) for name, bits in there.items()
        )
        sides = found.conditions["with"]
        image = replace(sides["image"], groups=groups)
        protocol = replace(found.protocol, probes={"linear": "soft-max"})
        return gap_figure(Audit(protocol, {"with": {**sides, "image": image}}))

    # on pictures alone: no caption's task
    assert figure(5.0, 6.0) == figure(5.0, None)
    # some of them end a caption, and the box is as wide as those
    for optimal in (7.0, 11.0):
        assert [word for word in words(figure(optimal, 6.0)) if word in ("shared", "specific", "shortcut")] == [
            "shared", "specific", "shortcut",
        ]  # fmt: skip


def test_labels_of_the_gap_do_not_lie_over_each_other(found: Audit) -> None:
    """Of one caption and of all, where both state nearly as much (here: the same)."""
    tree = ElementTree.fromstring(gap_figure(Audit(found.protocol, {"without": found.conditions["without"]})))
    anchors = {
        "".join(node.itertext()): node.get("style", "")
        for node in tree.iter("{http://www.w3.org/2000/svg}text")
    }
    assert "text-anchor: end" in anchors["one caption 3.0"]
    assert (
        "text-anchor: start" in anchors["all captions 3.0"]
        or "text-anchor" not in anchors["all captions 3.0"]
    )


def test_an_interval_beside_its_figure_is_drawn(found: Audit) -> None:
    """A few resamples may all lie on one side of the figure."""
    beside = {"below": Held(0.5, 0.3, 0.4, 3.0, 100), "above": Held(0.5, 0.6, 0.7, 3.0, 100)}
    for one in beside.values():
        sides = {
            name: replace(
                given,
                groups=tuple(replace(group, held=dict.fromkeys(group.held, one)) for group in given.groups),
            )
            for name, given in found.conditions["without"].items()
        }
        audit = Audit(found.protocol, {"without": sides})
        assert "held 1.5" in words(gap_figure(audit))
        assert "shared" in words(kinds_figure(audit))


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


def test_the_page(found: Audit, parse: Callable[[str], Any], tmp_path: Path) -> None:
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


def test_a_raw_figure_below_zero_is_kept(found: Audit, parse: Callable[[str], Any]) -> None:
    sides = {
        "image": side({"shared": 0.5}, [question("bad", -0.104), question("good", 0.5)]),
        "caption": side({"shared": 0.5}, [question("good", 0.5)]),
    }
    page = parse(render_audit(Audit(found.protocol, {"without": sides}), "run"))
    assert "raw -10.4" in page.text
    assert page.text.count("raw ") == 2  # once per probe
