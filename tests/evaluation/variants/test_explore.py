"""The explorer is not told what was done to the numbers, and has to find it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from two_stage import TwoStage, cut_off, folded_recalls, published_recalls, rounded

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.evaluation import evaluate
from diptych.evaluation.printed import Target, read_digits
from diptych.evaluation.variants import (
    AXES,
    Axis,
    Choice,
    Exploration,
    Inputs,
    MatrixScores,
    RowScores,
    Scored,
    explain,
    explore,
)
from diptych.metrics import GroundTruth, top_k
from diptych.metrics.candidates import Candidates, Reranked

N, K = 400, 5


@pytest.fixture(scope="module")
def model() -> TwoStage:
    """What X-VLM is like: a matching head that is much better than the contrastive rows."""
    return TwoStage(N, K)


@pytest.fixture(scope="module")
def truth(model: TwoStage) -> GroundTruth:
    return GroundTruth.from_caption_image(model.home, N)


@pytest.fixture(scope="module")
def two_stage(model: TwoStage, truth: GroundTruth) -> Scored:
    return MatrixScores(model.contrastive, truth, matching=model.matching)


@pytest.fixture(scope="module")
def rows(model: TwoStage, truth: GroundTruth) -> Scored:
    return RowScores(model.images, model.texts, truth)


@pytest.fixture(scope="module")
def of_two(model: TwoStage, two_stage: Scored) -> Exploration:
    """What is found of two re-ranked candidates."""
    return tried(
        {"test": two_stage}, rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    )


def tried(
    sources: dict[str, Scored], printed: dict[str, float], decimals: int = 2, **options: int
) -> Exploration:
    return explore(Inputs(sources, Target.of(printed, decimals)), threads=1, **options)


def changes(found: Exploration) -> list[str]:
    return [one.line() for one in found.explanations]


def test_it_finds_that_two_candidates_were_ranked(model: TwoStage, of_two: Exploration) -> None:
    found, printed = of_two, rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    for side in ("i2t", "t2i"):  # what is to be explained
        assert printed[f"{side} R@10"] - printed[f"{side} R@5"] < 1.0 < printed[f"{side} R@5"] / 20
    assert changes(found)[0] == "k_test = 2"
    assert not found.as_given.within
    assert [one.line() for one in found.exact_explanations] == ["k_test = 2"]
    assert found.single_changes[0].best.line() == "k_test = 2"
    assert found.single_changes[0].best.mean_error < 0.05 < found.single_changes[1].best.mean_error
    said = "\n".join(explain(found))
    assert "k_test = 2 explains it: only the 2 best candidates of each query are re-ranked" in said
    assert "It prints every cell alike" in said
    assert "no proof of it" in said
    digits = read_digits(found.target, found.galleries)
    assert [one.kind for one in digits.signs if one.kind == "truncated"] == ["truncated", "truncated"]


@pytest.mark.parametrize("k", [4])
def test_it_finds_other_depths(model: TwoStage, two_stage: Scored, k: int) -> None:
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, k))
    found = tried({"test": two_stage}, printed)
    assert changes(found)[0] == f"k_test = {k}"
    assert found.exact_explanations[0].line() == f"k_test = {k}"


def test_from_stored_candidates(model: TwoStage, truth: GroundTruth) -> None:
    """Rows and the 32 best candidates re-ranked, as diptych evaluate stores them."""
    sides = []
    for queries, gallery, matching in (
        (model.images, model.texts, model.matching),
        (model.texts, model.images, model.matching.T),
    ):
        items, scores = top_k(queries, gallery, 32)
        final = np.take_along_axis(matching, items, axis=1)
        sides.append(Candidates(items, scores.astype(np.float32), final.astype(np.float32)))
    source = RowScores(model.images, model.texts, truth, reranked=Reranked(*sides))
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    found = tried({"test": source}, printed)
    assert found.default["k_test"] == "32"
    assert changes(found)[0] == "k_test = 2"
    assert found.exact_explanations[0].line() == "k_test = 2"


def test_two_changes_at_once(model: TwoStage, two_stage: Scored) -> None:
    first = model.caption(0)
    contrastive, matching = model.contrastive[:, first], model.matching[:, first]
    printed = rounded(published_recalls(contrastive, matching, np.arange(N), 2))
    found = tried({"test": two_stage}, printed)
    best = found.explanations[0]
    assert best.line() == "captions = first, k_test = 2"
    assert not any(len(one.changes) == 1 for one in found.explanations)
    exact = [one.line() for one in found.exact_explanations]
    assert exact == ["captions = first, k_test = 2"]
    said = "\n".join(explain(found))
    assert "captions = first, k_test = 2 explain it together" in said
    assert (
        "Each is needed: without captions = first 0 of 6 cells do, without k_test = 2 0 of 6 cells do" in said
    )


def test_the_first_caption_alone(model: TwoStage, rows: Scored) -> None:
    first = model.caption(0)
    printed = rounded(published_recalls(model.contrastive[:, first], None, np.arange(N), 0))
    found = tried({"test": rows}, printed)
    assert found.exact_explanations[0].line() == "captions = first"
    assert "captions = first" in changes(found)
    assert not any("k_test" in line for line in changes(found))
    digits = read_digits(found.target, found.galleries)
    assert [one.kind for one in digits.signs] == ["unusual"]


def test_another_split_and_digits_cut_off(model: TwoStage, rows: Scored) -> None:
    """What the thesis's CLIP rows look like: scored on dev, first captions, digits cut off."""
    dev = TwoStage(507, K, seed=7, contrast=0.9)
    other = RowScores(dev.images, dev.texts, GroundTruth.from_caption_image(dev.home, 507))
    first = dev.caption(0)
    recalls = published_recalls(dev.contrastive[:, first], None, np.arange(507), 0)
    printed = cut_off(recalls)
    assert printed != rounded(recalls)
    found = tried({"test": rows, "dev": other}, printed)
    assert "captions = first, source = dev" in changes(found)
    assert len(found.explanations[0].changes) == 2
    assert found.exact_explanations[0].line() == "captions = first, digits = cut off, source = dev"
    digits = read_digits(found.target, found.galleries)
    assert 507 in [size.n for size in digits.sizes["all recalls"]["truncate"].sizes]
    assert f"cannot be shares of the {N:,} queries given" in "\n".join(digits.sentences())


def test_folds(model: TwoStage, rows: Scored) -> None:
    printed = rounded(folded_recalls(model.contrastive, model.home, 5), 1)
    found = tried({"test": rows}, printed, 1)
    assert changes(found)[0] == "galleries = folds(5)"
    assert found.exact_explanations[0].line() == "galleries = folds(5)"


def test_rotated_columns(model: TwoStage, rows: Scored) -> None:
    """Table 5.2 of the thesis prints R@5, R@10, R@1 of hits over possible hits as R@1, R@5, R@10."""
    plain = published_recalls(model.contrastive, None, model.home, 0)
    rotated = {f"i2t R@{k}": plain[f"i2t R@{other}"] for k, other in ((1, 5), (5, 10), (10, 1))}
    printed = rounded({**plain, **rotated})
    found = tried({"test": rows}, printed)
    assert changes(found) == ["columns = i2t rotated to R@5, R@10, R@1"]
    assert read_digits(found.target).signs[0].kind == "impossible"


def test_the_share_of_all_positives(model: TwoStage, rows: Scored) -> None:
    order = np.argsort(-model.contrastive, axis=1)
    plain = published_recalls(model.contrastive, None, model.home, 0)
    for k in (1, 5, 10):
        hits = (model.home[order[:, :k]] == np.arange(N)[:, None]).sum(axis=1)
        plain[f"i2t R@{k}"] = 100 * float(np.mean(hits / min(k, 5)))
    found = tried({"test": rows}, rounded(plain))
    assert changes(found) == ["counting = share of possible"]


def test_nothing_is_to_be_explained(model: TwoStage, rows: Scored) -> None:
    printed = rounded(published_recalls(model.contrastive, None, model.home, 0), 1)
    found = tried({"test": rows}, printed, 1)
    assert found.explanations == (found.as_given,)
    assert found.as_given.is_exact
    said = "\n".join(explain(found))
    assert "No change of protocol is needed" in said
    assert "no proof" not in said


def test_nothing_explains_it(model: TwoStage, two_stage: Scored) -> None:
    """A better model from images and a worse one from texts."""
    printed = {
        "i2t R@1": 99.0,
        "i2t R@5": 99.6,
        "i2t R@10": 99.9,
        "t2i R@1": 3.0,
        "t2i R@5": 9.0,
        "t2i R@10": 13.0,
    }
    found = tried({"test": two_stage}, printed)
    assert found.explanations == found.exact_explanations == ()
    assert found.luck is None
    assert "t2i R@1" in found.out_of_reach
    said = "\n".join(explain(found))
    assert "Nothing that was tried explains it" in said
    assert "No variant comes within tolerance of" in said
    assert "explains it:" not in said


def test_more_matching_scores_than_the_candidates_of_another_model(
    model: TwoStage, two_stage: Scored
) -> None:
    """Numbers of k = 2 of another, better first stage: k_test alone must not be said to explain them."""
    other = TwoStage(N, K, contrast=0.5)
    printed = rounded(published_recalls(other.contrastive, other.matching, other.home, 2))
    found = tried({"test": two_stage}, printed)
    assert "k_test = 2" not in changes(found)


def test_a_single_cell_is_easily_met_and_it_says_so(model: TwoStage, rows: Scored) -> None:
    printed = {"t2i R@1": 0.93 * published_recalls(model.contrastive, None, model.home, 0)["t2i R@1"]}
    found = tried({"test": rows}, rounded(printed, 0), 0)
    assert found.explanations
    assert found.luck is not None
    assert found.luck > 0.2
    assert "says little by itself" in "\n".join(explain(found))


def test_sums_alone_are_a_target(model: TwoStage, rows: Scored) -> None:
    first = model.caption(0)
    plain = published_recalls(model.contrastive[:, first], None, np.arange(N), 0)
    printed = {
        "t2i rsum": sum(plain[f"t2i R@{k}"] for k in (1, 5, 10)),
        "rsum": sum(plain.values()),
    }
    found = tried({"test": rows}, rounded(printed, 1), 1)
    assert "captions = first" in changes(found)


def test_the_same_inputs_give_the_same_result(model: TwoStage, two_stage: Scored, truth: GroundTruth) -> None:
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 3))
    inputs = Inputs({"test": two_stage}, Target.of(printed, 2))
    again = MatrixScores(model.contrastive, truth, matching=model.matching)
    one = explore(inputs, threads=1, exhaustive=1, changes=2)
    other = explore(Inputs({"test": again}, inputs.target), threads=2, exhaustive=1, changes=2)
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())


def test_everything_is_in_the_artefact(model: TwoStage, of_two: Exploration) -> None:
    found, printed = of_two, rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    written = json.loads(json.dumps(found.to_dict()))
    assert len(written["variants"]) == len(found.variants)
    assert written["explanations"][0]["changes"] == [{"axis": "k_test", "choice": "2"}]
    assert written["target"]["cells"]["i2t R@1"] == {"value": printed["i2t R@1"], "decimals": 2}
    assert written["galleries"]["i2t"] == [N * K, K, N]
    assert written["exact_explanations"][0]["exact"] == list(printed)
    assert {one["axis"] for one in written["single_changes"]} <= set(AXES.names())


def test_what_cannot_be_tried_is_said(model: TwoStage, truth: GroundTruth, rows: Scored) -> None:
    """400 images are five folds, 507 are not."""
    dev = TwoStage(507, K, seed=7)
    other = RowScores(dev.images, dev.texts, GroundTruth.from_caption_image(dev.home, 507))
    printed = rounded(published_recalls(model.contrastive, None, model.home, 0))
    found = tried({"test": rows, "dev": other}, printed)
    assert [one.reason for one in found.refused] == ["507 images of dev cannot be cut into 5 galleries"]
    assert found.refused[0].first[:1] == (found.refused[0].first[0],)
    assert {change.axis for change in found.refused[0].first} == {"galleries", "source"}


def test_an_axis_of_ones_own(model: TwoStage, rows: Scored) -> None:
    """Adding an axis is declaring it; the search asks for nothing else."""
    scale = Axis(
        "scale",
        "whether values were doubled by mistake",
        lambda inputs: [
            Choice("plain", "as they are", lambda settings: settings),
            Choice("three best", "only three are ranked", lambda settings: replace(settings, depth=3)),
        ],
    )
    printed = evaluate(model.contrastive, None, rows.truth, ["R@3"])
    target = Target.of({"i2t R@10": round(100 * printed.value("R@3", "i2t"), 2)}, 2)
    found = explore(
        Inputs({"test": rows}, target), axes=[scale, "captions"], threads=1, exhaustive=1, changes=1
    )
    assert "scale = three best" in changes(found)
    assert set(found.default) == {"scale", "captions"}


def test_what_is_asked_wrongly(rows: Scored) -> None:
    target = Target.of({"i2t R@1": 10.0}, 1)
    inputs = Inputs({"test": rows}, target)
    with pytest.raises(UsageError, match="tolerance is 5"):
        explore(inputs, tolerance=5)
    with pytest.raises(UsageError, match="exhaustive 3, changes 2"):
        explore(inputs, exhaustive=3, changes=2)
    with pytest.raises(UnknownNameError, match="axis of protocols 'split'"):
        explore(inputs, axes=["split"])
    empty = MatrixScores(np.zeros((3, 0)), GroundTruth.from_caption_image(np.array([], dtype=int), 3))
    with pytest.raises(DataError, match="3 images and 0 texts"):
        explore(Inputs({"test": empty}, target))
