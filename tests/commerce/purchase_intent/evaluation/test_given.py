"""Scores that somebody else gives are measured as those of the grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from feature_tables import small_features

from diptych.commerce.purchase_intent.evaluation import GivenScores, evaluate_scores
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.core.errors import DataError, MismatchError, NumericalError
from diptych.metrics.bootstrap import Bootstrap

HOW = Bootstrap(20)


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("features") / "small", n=120)


def given(features: FeatureTable, setting: str, step: int, seed: int = 0) -> GivenScores:
    rows = features.population(setting, step)
    return GivenScores(np.random.default_rng(seed).random(len(rows)), 0.3)


def test_measured_alike(features: FeatureTable, tmp_path: Path) -> None:
    from sklearn.metrics import average_precision_score, brier_score_loss, f1_score

    scores = {place: given(features, *place) for place in (("anonymous", 0), ("identified", 5))}
    found = evaluate_scores(
        features, scores, tmp_path / "out", model="svm", name="ours", trained_on="elsewhere", bootstrap=HOW
    )
    assert [(cell["setting"], cell["set"], cell["step"]) for cell in found.cells] == [
        ("anonymous", "extended", 0),
        ("identified", "extended", 5),
    ]
    for cell in found.cells:
        rows = features.population(cell["setting"], cell["step"])
        p, labels = scores[cell["setting"], cell["step"]].probabilities, features.labels[rows]
        assert cell["average_precision"] == pytest.approx(average_precision_score(labels, p))
        assert cell["f1"] == pytest.approx(f1_score(labels, p >= 0.5))
        assert cell["best_f1"] == pytest.approx(f1_score(labels, p >= 0.3))
        assert cell["brier_calibrated"] == pytest.approx(brier_score_loss(labels, p))
        assert cell["average_precision_low"] < cell["average_precision"] < cell["average_precision_high"]
    assert "nothing fitted" in found.line()
    assert found.notes == []
    again = evaluate_scores(
        features, scores, tmp_path / "out", model="svm", name="ours", trained_on="elsewhere", bootstrap=HOW
    )
    assert (again.cells, again.gains) == (found.cells, found.gains)
    with pytest.raises(MismatchError, match="holds other folds"):
        evaluate_scores(
            features,
            {("anonymous", 0): given(features, "anonymous", 0, 1)},
            tmp_path / "out",
            model="svm",
            name="ours",
        )


def test_its_own_training_sessions_are_no_test(features: FeatureTable, tmp_path: Path) -> None:
    found = evaluate_scores(
        features,
        {("anonymous", 0): GivenScores(given(features, "anonymous", 0).probabilities)},
        tmp_path / "out",
        model="random-forest",
        name="ours",
        trained_on=features.fingerprint,
        bootstrap=HOW,
    )
    assert any("no test of it" in note for note in found.notes)
    assert found.cells[0]["best_f1"] is None


def test_what_is_refused(features: FeatureTable, tmp_path: Path) -> None:
    def asked(scores: dict[tuple[str, int], GivenScores]) -> None:
        evaluate_scores(features, scores, tmp_path / "out", model="svm", name="ours")

    with pytest.raises(DataError, match="no scores"):
        asked({})
    with pytest.raises(MismatchError, match="sessions and scores of shape"):
        asked({("anonymous", 0): GivenScores(np.zeros(3))})
    wrong = given(features, "anonymous", 0).probabilities
    wrong[4] = 1.5
    with pytest.raises(NumericalError, match=r"row 4 is 1\.5"):
        asked({("anonymous", 0): GivenScores(wrong)})
    assert not (tmp_path / "out").exists()
