"""One call from plain arrays, in whatever form they are at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusals import refused
from two_stage import TwoStage, published_recalls, rounded

from diptych.core.errors import DataError, UsageError
from diptych.evaluation.variants import explore_rows, explore_scores
from diptych.metrics import UNSCORED, GroundTruth

N, K = 100, 5


@pytest.fixture(scope="module")
def model() -> TwoStage:
    return TwoStage(N, K)


@pytest.fixture(scope="module")
def printed(model: TwoStage) -> dict[str, float]:
    """Two candidates re-ranked, as published."""
    return rounded(published_recalls(model.contrastive, model.matching, model.home, 2))


def cut(first: np.ndarray, matching: np.ndarray, k: int) -> np.ndarray:
    """The matrix that published evaluations hold."""
    scores = np.full(first.shape, UNSCORED)
    for row, chosen in enumerate(np.argsort(-first, axis=1)[:, :k]):
        scores[row, chosen] = matching[row, chosen]
    return scores


def first(found: Any) -> str:
    return str(found.explanations[0].line())


def test_every_form_of_ground_truth(model: TwoStage, printed: dict[str, float]) -> None:
    target = {name: value for name, value in printed.items() if name.startswith("t2i")}
    positives = model.home[None, :] == np.arange(N)[:, None]
    forms: list[object] = [
        GroundTruth.from_caption_image(model.home, N),
        model.home.tolist(),
        positives,
        {row: np.flatnonzero(positives[row]) for row in range(N)},
        {row: list(range(K * row, K * row + K)) for row in range(N)},
        K,
        None,
    ]
    options: dict[str, Any] = {"matching": model.matching, "threads": 1, "changes": 1}
    found = [explore_scores(model.contrastive, form, target, **options) for form in forms]
    assert {first(one) for one in found} == {"k_test = 2"}
    assert len({one.as_given.mean_error for one in found}) == 1
    assert found[-1].about["given"]["ground truth"] == "5 texts of each image, next to each other (assumed)"
    assert "ground truth" not in found[0].about["given"]


def test_matrices_of_each_direction_that_are_cut(model: TwoStage, printed: dict[str, float]) -> None:
    """As evaluations save them: -100 where nothing was scored, texts as rows of the second."""
    options: dict[str, Any] = {"threads": 1, "changes": 2}
    deep = (cut(model.contrastive, model.matching, 64), cut(model.contrastive.T, model.matching.T, 64))
    found = explore_scores(model.contrastive, K, printed, matching=deep, **options)
    assert found.default["k_test"] == "64"
    assert first(found) == "k_test = 2"
    two = {
        "i2t": cut(model.contrastive, model.matching, 2),
        "t2i": cut(model.contrastive.T, model.matching.T, 2),
    }
    found = explore_scores(model.contrastive, K, printed, matching=two, **options)
    assert found.explanations[0].is_exact
    assert "By default all 2 stored candidates of each query are re-ranked, so that R@5 and R@10" in str(
        found
    )
    whole = explore_scores(
        model.contrastive, K, printed, matching=(model.matching, model.matching.T), **options
    )
    assert whole.default["k_test"] == "everything"
    assert first(whole) == "k_test = 2"


def test_what_is_near_comes_before_what_is_only_within_tolerance() -> None:
    """Of a strong model everything is within 5 % of two candidates, and still they are what was ranked."""
    model = TwoStage(N, K, contrast=0.45, match=0.3)
    printed = rounded(published_recalls(model.contrastive, model.matching, model.home, 2))
    found = explore_scores(model.contrastive, K, printed, matching=model.matching, threads=1, changes=2)
    assert found.as_given.explains
    assert found.telling
    assert first(found) == "k_test = 2"
    assert found.variants[0].line() == "k_test = 2"
    assert found.explanations[-1] is found.as_given
    said = str(found)
    assert "That would do, but a change of protocol comes much nearer." in said
    assert "No change of protocol is needed" not in said


@pytest.mark.parametrize("seed", range(2))
def test_numbers_of_another_model_are_never_near(seed: int) -> None:
    model, other = TwoStage(N, K, seed=seed), TwoStage(N, K, seed=seed + 100, contrast=1.0, match=0.8)
    printed = rounded(published_recalls(other.matching, None, other.home, 0), 1)
    found = explore_scores(model.contrastive, K, printed, matching=model.matching, threads=1, changes=2)
    assert not any(one.is_near for one in found.variants)
    if found.explanations and found.explanations[0].changes:
        assert "It does not come near" in str(found)


def test_from_embeddings(model: TwoStage) -> None:
    of_first = model.caption(0)
    printed = rounded(published_recalls(model.contrastive[:, of_first], None, np.arange(N), 0))
    found = explore_rows(model.images, model.texts, model.home, printed, threads=1, changes=2)
    assert first(found) == "captions = first"


def test_what_is_given_wrongly(model: TwoStage) -> None:
    target = {"i2t R@1": 10.0}
    scores = model.contrastive
    broken = model.matching.copy()
    broken[0, 1:] = UNSCORED
    cut, twice = (broken, model.matching.T), (model.matching, model.matching)
    turned = "500 texts for scores of 500 images and 100 texts"
    refused(DataError, "no matrix", explore_scores, scores[0], None, target)
    refused(UsageError, "100 texts of 500 images", explore_scores, scores.T, None, target)
    refused(DataError, turned, explore_scores, scores.T, model.home, target)
    refused(UsageError, "500 texts of 100 images, 4 of each", explore_scores, scores, 4, target)
    refused(UsageError, "of type ndarray is not understood", explore_scores, scores, model.home / 2, target)
    refused(DataError, r"truth of shape \(2, 2\)", explore_scores, scores, np.eye(2, dtype=bool), target)
    refused(UsageError, "names no cells", explore_scores, scores, target, model.home)
    refused(UsageError, "499 matching scores are missing", explore_scores, scores, K, target, matching=broken)
    refused(DataError, "0 has 1 scored items, others 500", explore_scores, scores, K, target, matching=cut)
    refused(DataError, r"t2i of shape \(100, 500\)", explore_scores, scores, K, target, matching=twice)
    refused(
        UsageError, "give i2t and t2i", explore_scores, scores, K, target, matching={"i2t": model.matching}
    )
