"""The explorer is not told what was done to the numbers, and has to find it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranking import scored
from refusals import refused
from two_stage import TwoStage, cut_off, folded_recalls, published_recalls, rounded

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.evaluation import evaluate
from diptych.evaluation.printed import Target, read_digits
from diptych.evaluation.variants import (
    AXES,
    Axis,
    Change,
    Choice,
    Exploration,
    Scored,
    Variant,
    explain,
    explore,
)
from diptych.evaluation.variants.explore import luck
from diptych.metrics import GroundTruth, similarity

N, K = 250, 5
Recalls = dict[str, float]


def rows(model: TwoStage, n: int, **options: Any) -> Scored:
    source = similarity("cosine").source(model.images, model.texts)
    return Scored(source, GroundTruth.from_caption_image(model.home, n), **options)


@pytest.fixture(scope="module")
def model() -> TwoStage:
    """What X-VLM is like: a matching head that is much better than the contrastive rows."""
    return TwoStage(N, K)


@pytest.fixture(scope="module")
def sources(model: TwoStage) -> dict[str, Scored]:
    """The model's rows; with the scores of its head; with the 32 best candidates, as evaluations store them."""
    truth = GroundTruth.from_caption_image(model.home, N)
    best = scored(model.images, model.texts, model.matching, 32)
    return {
        "rows": rows(model, N),
        "head": Scored(model.contrastive, truth, matching=model.matching),
        "stored": rows(model, N, reranked=best),
    }


def tried(sources: dict[str, Scored], printed: Recalls, decimals: int = 2) -> Exploration:
    return explore(sources, Target.of(printed, decimals), threads=1)


def lines(found: Exploration) -> list[str]:
    return [one.line() for one in found.explanations]


def plain(model: TwoStage) -> Recalls:
    return published_recalls(model.contrastive, None, model.home, 0)


def of_two(model: TwoStage) -> Recalls:
    return published_recalls(model.contrastive, model.matching, model.home, 2)


def first_of_two(model: TwoStage) -> Recalls:
    some = model.caption(0)
    return published_recalls(model.contrastive[:, some], model.matching[:, some], np.arange(N), 2)


def rotated(model: TwoStage) -> Recalls:
    """Table 5.2 of the thesis prints R@5, R@10, R@1 of hits over possible hits as R@1, R@5, R@10."""
    found = plain(model)
    return {**found, **{f"i2t R@{k}": found[f"i2t R@{other}"] for k, other in ((1, 5), (5, 10), (10, 1))}}


def shares(model: TwoStage) -> Recalls:
    right = model.home[np.argsort(-model.contrastive, axis=1)] == np.arange(N)[:, None]
    found = {f"i2t R@{k}": 100 * float(np.mean(right[:, :k].sum(axis=1) / min(k, K))) for k in (1, 5, 10)}
    return {**plain(model), **found}


@pytest.mark.parametrize(
    ("source", "done", "explanation", "signs"),
    [
        ("stored", of_two, "k_test = 2", ["truncated", "truncated"]),
        ("head", first_of_two, "captions = first, k_test = 2", None),
        (
            "rows",
            lambda model: folded_recalls(model.contrastive, model.home, 5),
            "galleries = folds(5)",
            None,
        ),
        ("rows", rotated, "columns = i2t rotated to R@5, R@10, R@1", ["impossible"]),
        ("rows", shares, "counting = share of possible", None),
        ("rows", plain, "", None),
    ],
)
def test_it_finds_what_was_done(
    source: str,
    done: Callable[[TwoStage], Recalls],
    explanation: str,
    signs: list[str] | None,
    model: TwoStage,
    sources: dict[str, Scored],
) -> None:
    found = tried({"test": sources[source]}, rounded(done(model)))
    best = found.explanations[0]
    assert found.exact_explanations[0] == best
    said = "\n".join(explain(found))
    if not explanation:
        assert best is found.as_given
        assert "No change of protocol is needed" in said
        assert "no proof" not in said
        return
    assert best.line() == found.exact_explanations[0].line() == explanation
    assert best.is_exact
    assert found.default["k_test"] == {"stored": "32", "head": "everything"}.get(source, "none")
    if done is first_of_two:
        assert not any(len(one.changes) == 1 for one in found.explanations)
        assert f"{explanation} explain it together" in said
    else:
        assert f"{explanation} explains it" in said
        assert found.single_changes[0].line() == explanation
    assert "It prints every cell alike" in said
    assert "no proof of it" in said
    if signs:
        assert [one.kind for one in read_digits(found.target, found.galleries).signs] == signs


def test_another_split_and_digits_cut_off(sources: dict[str, Scored]) -> None:
    """What the thesis's CLIP rows look like: scored on dev, first captions, digits cut off."""
    dev = TwoStage(507, K, seed=7, contrast=0.9)
    other = rows(dev, 507)
    recalls = published_recalls(dev.contrastive[:, dev.caption(0)], None, np.arange(507), 0)
    printed = cut_off(recalls)
    assert printed != rounded(recalls)
    found = tried({"test": sources["rows"], "dev": other}, printed)
    assert "captions = first, source = dev" in lines(found)
    assert found.exact_explanations[0].line() == "captions = first, digits = cut off, source = dev"
    digits = read_digits(found.target, found.galleries)
    assert 507 in [size.n for size in digits.sizes["all recalls"]["truncate"].sizes]
    assert f"cannot be shares of the {N:,} queries given" in "\n".join(digits.sentences())


def test_what_cannot_be_tried_is_said(model: TwoStage, sources: dict[str, Scored]) -> None:
    """250 images are five folds, 253 are not."""
    dev = TwoStage(253, K, seed=7)
    other = rows(dev, 253)
    found = tried({"test": sources["rows"], "dev": other}, rounded(plain(model)))
    assert list(found.refused) == ["253 images of dev cannot be cut into 5 galleries"]
    assert {change.axis for changes in found.refused.values() for change in changes[0]} == {
        "galleries",
        "source",
    }


def test_nothing_explains_it(sources: dict[str, Scored]) -> None:
    """A better model from images and a worse one from texts."""
    printed = dict(zip([f"i2t R@{k}" for k in (1, 5, 10)], (99.0, 99.6, 99.9), strict=True))
    printed |= dict(zip([f"t2i R@{k}" for k in (1, 5, 10)], (3.0, 9.0, 13.0), strict=True))
    found = tried({"test": sources["head"]}, printed)
    assert found.explanations == found.exact_explanations == ()
    assert found.luck is None
    assert "t2i R@1" in found.out_of_reach
    said = "\n".join(explain(found))
    assert "Nothing that was tried explains it" in said
    assert "No variant comes within tolerance of" in said
    assert "explains it:" not in said


def test_the_same_inputs_give_the_same_result(model: TwoStage, sources: dict[str, Scored]) -> None:
    printed = rounded(of_two(model))
    target = Target.of(printed, 2)
    one, other = (
        explore({"test": sources["head"]}, target, threads=threads, changes=1) for threads in (1, 2)
    )
    written = json.loads(json.dumps(one.to_dict()))
    assert written == json.loads(json.dumps(other.to_dict()))
    assert written["explanations"][0]["changes"] == "k_test = 2"
    assert written["target"]["i2t R@1"] == f"{printed['i2t R@1']:.2f}"
    assert written["galleries"]["i2t"] == [N * K, K, N]
    assert {one["changes"].split(" = ")[0] for one in written["single_changes"]} <= set(AXES.names())


def test_an_axis_of_ones_own(model: TwoStage, sources: dict[str, Scored]) -> None:
    """Adding an axis is declaring it; the search asks for nothing else."""

    def options(sources: object, target: object) -> list[Choice]:
        return [Choice("plain", "as they are"), Choice("three best", "only three are ranked", {"depth": 3})]

    printed = evaluate(model.contrastive, None, sources["rows"].truth, ["R@3"])
    target = Target.of({"i2t R@10": round(100 * printed.value("R@3", "i2t"), 2)}, 2)
    axis = Axis("scale", "whether doubled", options)
    found = explore({"test": sources["rows"]}, target, axes=[axis, "captions"], threads=1, changes=1)
    assert "scale = three best" in lines(found)
    assert set(found.default) == {"scale", "captions"}


def test_what_is_asked_wrongly(sources: dict[str, Scored]) -> None:
    target = Target.of({"i2t R@1": 10.0}, 1)
    some = {"test": sources["rows"]}
    refused(UsageError, "tolerance is 5", explore, some, target, tolerance=5)
    refused(UnknownNameError, "axis of protocols 'split'", explore, some, target, axes=["split"])
    empty = Scored(np.zeros((3, 0)), GroundTruth.from_caption_image(np.array([], dtype=int), 3))
    refused(DataError, "3 images and 0 texts", explore, {"test": empty}, target)


TENTHS = Target.of({"i2t R@1": 10}, 1)


def variant(value: float, choice: str = "", explains: bool = False) -> Variant:
    changes = (Change("axis", choice),) if choice else ()
    cells = ("i2t R@1",) if explains else ()
    return Variant(changes, {"i2t R@1": value}, {"i2t R@1": 0.0}, cells, cells, cells)


SOME = [variant(10, "", True), variant(20, "a"), variant(40, "b")]
NEAR = [variant(10, "", True), variant(19.6, "a"), variant(40, "b")]
ALIKE = [variant(10, "", True), variant(10.1, "a"), variant(10.2, "b"), variant(10.2, "c")]
DEEPER = Variant((Change("a", "1"), Change("b", "2")), {"i2t R@1": 20.0}, {"i2t R@1": 1.0}, (), (), ())


@pytest.mark.parametrize(
    ("some", "target", "tolerance", "kind", "expected"),
    [
        # Between 10 and 40 lies 20, between 10 and 20 14.1, between 20 and 40 28.3: one of three is met.
        (SOME, TENTHS, 0.05, "explains", 1 / 3),
        (SOME, TENTHS, 0.5, "explains", 1),
        (SOME, TENTHS, 0.05, "is_exact", 1 / 3),
        # Variants that do the same count for nothing, nor do more changes than are needed.
        (ALIKE, TENTHS, 0.05, "explains", None),
        ([*ALIKE, variant(90, "d")], TENTHS, 0.05, "explains", 0),
        ([variant(10, "a", True), variant(40, "b")], TENTHS, 0.05, "explains", 0),
        ([variant(10, "a", True), variant(40, "b"), DEEPER], TENTHS, 0.05, "explains", 0),
        ([variant(10), variant(40, "b")], TENTHS, 0.05, "explains", None),
        ([variant(10), variant(40, "b")], TENTHS, 0.05, "is_exact", None),
        # 19.6 is within 5 % of the 20 between 10 and 40; 0.5 % are 19.9 to 20.1; in whole numbers it is 20.
        (NEAR, TENTHS, 0.05, "explains", 1 / 3),
        (NEAR, TENTHS, 0.05, "is_near", 0),
        ([NEAR[0], variant(19.95, "a"), NEAR[2]], TENTHS, 0.05, "is_near", 1 / 3),
        (NEAR, Target.of({"i2t R@1": 10}, 0), 0.05, "is_near", 1 / 3),
    ],
)
def test_luck_is_the_share_of_targets_between_variants_that_one_of_them_meets(
    some: list[Variant], target: Target, tolerance: float, kind: str, expected: float | None
) -> None:
    found = luck(some, target, tolerance, kind)
    assert found == (None if expected is None else pytest.approx(expected))


PAGE = Path(__file__).parents[3] / "docs" / "protocols.md"


def test_the_axes_and_their_choices_are_those_that_there_are() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(AXES.names())
