"""The grid: its numbers by a second way, resumed, in one process and in several; given scores; importance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from feature_tables import small_features
from refusals import refused
from sklearn import metrics
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from diptych.commerce.logs import Cleaning
from diptych.commerce.purchase_intent.evaluation import (
    REPEATS,
    Evaluation,
    Unit,
    _begin,
    evaluate,
    importance_of,
    unit_result,
)
from diptych.commerce.purchase_intent.features.fitting import FEATURES, fit_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.measures import Ranking
from diptych.commerce.purchase_intent.models import fit_model
from diptych.commerce.purchase_intent.options import (
    EvaluateOptions,
    FeatureOptions,
    SessionOptions,
    TrainOptions,
)
from diptych.core.errors import DataError, DiptychError, StorageError, UnknownNameError, UsageError
from diptych.core.options import Options

SMALL: dict[str, Any] = {"models": ["logistic-regression"], "settings": ["anonymous"], "sets": ["extended"]}
SMALL |= {"steps": [5], "folds": 2, "importance": False, "samples": 0}
GRID: dict[str, Any] = {"models": ["logistic-regression", "random-forest-small"], "settings": ["anonymous"]}
GRID |= {"steps": [0, 5], "folds": 2, "samples": 40}


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("features") / "small", n=300)


@pytest.fixture(scope="module")
def evaluation(features: FeatureTable, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return evaluate(features, tmp_path_factory.mktemp("evaluation") / "grid", **GRID)


def cell_of(found: Evaluation, *place: str | int) -> dict[str, Any]:
    """Return the numbers of a setting, set, step and model."""
    return next(one for one in found.cells if tuple(one[name] for name in Unit._fields) == place)


def test_a_cell_by_a_second_way(features: FeatureTable, evaluation: Evaluation) -> None:
    population = features.population("anonymous", 5)
    scores = np.full(len(features), np.nan)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    for parts in folds.split(features.labels, features.labels):
        train, test = (np.intersect1d(part, population) for part in parts)
        fitted = fit_features(features.features("anonymous", "extended", 5), features.at(train, 5))
        model = make_pipeline(
            SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
            StandardScaler(),
            LogisticRegression(class_weight="balanced", max_iter=1000),
        ).fit(fitted.matrix(features.at(train, 5)), features.labels[train])
        scores[test] = model.predict_proba(fitted.matrix(features.at(test, 5)))[:, 1]
    labels, found = features.labels[population], scores[population]
    cell = cell_of(evaluation, "anonymous", "extended", 5, "logistic-regression")
    pooled = evaluation.predictions("anonymous", "extended", 5, "logistic-regression")
    assert pooled["row"].tolist() == population.tolist()
    assert pooled["score"] == pytest.approx(found)
    expected = {
        "sessions": len(labels),
        "f1": metrics.f1_score(labels, found >= 0.5),
        "average_precision": metrics.average_precision_score(labels, found),
        "roc_auc": metrics.roc_auc_score(labels, found),
        "brier": metrics.brier_score_loss(labels, found),
        "brier_prior": labels.mean() * (1 - labels.mean()),
        "brier_calibrated": metrics.brier_score_loss(labels, pooled["p"]),
        "best_f1": metrics.f1_score(labels, pooled["p"] >= pooled["threshold"]),
    }
    assert {name: cell[name] for name in expected} == pytest.approx(expected)


def test_calibration_sees_training_sessions_only(features: FeatureTable, tmp_path: Path) -> None:
    # Outcomes of a fold's test part are turned round: neither its scores nor its threshold may know.
    first = evaluate(features, tmp_path / "first", **SMALL)
    turned, unit = features.labels.copy(), Unit("anonymous", "extended", 5, "logistic-regression")
    kept = first.predictions(*unit)
    kept = kept[kept["fold"] == 0]
    turned[kept["row"]] = ~turned[kept["row"]]
    _, *given = _begin(features, EvaluateOptions(**first.protocol.options))
    again = unit_result((relabelled(features, turned), *given), unit).predictions
    assert again[again["fold"] == 0].tolist() == kept.tolist()


def test_the_baseline_knows_nothing_before_the_first_page(evaluation: Evaluation) -> None:
    for model in GRID["models"]:
        cell = cell_of(evaluation, "anonymous", "baseline", 0, model)
        assert cell["f1"] == cell["best_f1"] == pytest.approx(cell["always_buy_f1"])
        assert cell["average_precision"] == pytest.approx(cell["base_rate"])
        assert cell["roc_auc"] == 0.5
        assert list(cell["remarks"].values()) == [2]
    assert "2 of 8 cells: the model is a constant: no feature is known at this step" in evaluation.notes
    assert not [row for row in evaluation.importance if (row["set"], row["step"]) == ("baseline", 0)]


def test_gains_are_differences_of_cells(evaluation: Evaluation) -> None:
    cells = [cell for cell in evaluation.cells if cell["set"] == "extended"]
    assert len(cells) == 2 * 2
    for more in cells:
        base = cell_of(evaluation, more["setting"], "baseline", more["step"], more["model"])
        for measure in ("f1", "average_precision", "roc_auc", "best_f1", "brier_calibrated"):
            gain = f"{measure}_gain"
            assert more[gain] == pytest.approx(more[measure] - base[measure])
            assert more[f"{gain}_low"] <= more[gain] <= more[f"{gain}_high"]
            assert gain not in base
        assert 0 < more["brier_calibrated_gain_p"] <= 1
    with pytest.raises(StorageError, match="anonymous-extended-3-logistic-regression.npz does not exist"):
        evaluation.predictions("anonymous", "extended", 3, "logistic-regression")


def test_processes_splits_and_no_inner_part(
    features: FeatureTable, evaluation: Evaluation, tmp_path: Path
) -> None:
    evaluate(features, tmp_path / "grid", **{**GRID, "steps": [5], "sets": ["extended"]}, jobs=2)
    for file in (tmp_path / "grid" / "units").iterdir():
        assert file.read_bytes() == (evaluation.folder / "units" / file.name).read_bytes()
    found = evaluate(features, tmp_path / "plain", **{**SMALL, "models": ["svm", "k-nearest"]}, inner=False)
    svm, nearest = (cell_of(found, "anonymous", "extended", 5, name) for name in ("svm", "k-nearest"))
    for name in ("best_f1", "threshold", "brier_calibrated", "reliability_calibrated"):
        assert svm[name] is nearest[name] is None
    assert svm["brier"] is svm["reliability"] is None  # decisions are no probabilities
    pooled = found.predictions("anonymous", "extended", 5, "svm")
    assert svm["f1"] == pytest.approx(metrics.f1_score(features.labels[pooled["row"]], pooled["score"] >= 0))
    assert any(note.startswith("KNN: ") and "no weights for classes" in note for note in found.notes)
    time = evaluate(features, tmp_path / "time", **{**SMALL, "split": "time", "folds": None})
    assert time.protocol.options["folds"] == 1
    tested = time.predictions("anonymous", "extended", 5, "logistic-regression")["row"]
    assert features.start_us[tested].min() >= features.start_us.min() + 0.74 * np.ptp(features.start_us)
    for split, is_shared in (("grouped", False), ("random", True)):
        notes = evaluate(features, tmp_path / split, **{**SMALL, "split": split}).notes
        assert any("; 0.0% of test sessions are of persons with" in note for note in notes) is not is_shared


def relabelled(features: FeatureTable, labels: np.ndarray) -> FeatureTable:
    return replace(features, view=replace(features.view, labels=labels))


def test_what_cannot_be_evaluated(features: FeatureTable, tmp_path: Path) -> None:
    out = tmp_path / "none"
    nobody, few = (relabelled(features, np.arange(300) < n) for n in (0, 4))
    timeless = replace(features, about={**features.about, "has_times": False})
    for table, changed, error, match in (
        (nobody, {}, DataError, "0 of 300 sessions have a purchase"),
        (few, {"folds": 5}, DataError, "4 of 300 .* too few with or without for 5 folds"),
        (features, {"settings": ["anon"]}, UnknownNameError, "known: anonymous, identified"),
        (features, {"steps": [11]}, UnknownNameError, "11"),
        (features, {"models": ["k-nearst"]}, UnknownNameError, "did you mean 'k-nearest'"),
        (features, {"models": []}, UsageError, "no model"),
        (features, {"preset": "slow"}, UsageError, "'fast' or 'paper'"),
        (timeless, {"split": "time"}, UsageError, "--split random"),
        (features, {"jobs": 0}, UsageError, "jobs"),
    ):
        with pytest.raises(error, match=match):
            evaluate(table, out, **{**SMALL, **changed})
    # All purchases come after six pages: at step 5 no session that ends in one is left.
    before = np.where(features.labels, 6.0, np.inf)
    early = replace(features, view=replace(features.view, pages_before_purchase=before))
    found = evaluate(early, tmp_path / "early", **{**SMALL, "steps": [4, 5]})
    assert [cell["step"] for cell in found.cells] == [4]
    assert found.left_out[0]["reason"].startswith("0 purchases among")
    with pytest.raises(DataError, match="nothing can be evaluated: anonymous, step 5: 0 purchases among"):
        evaluate(early, tmp_path / "late", **SMALL)


def test_options_that_cannot_be() -> None:
    wrong: list[tuple[type[Options], dict[str, Any], str]] = [
        (Cleaning, {"countries": ["NL", " Holland"]}, "'HOLLAND' is no name"),
        (Cleaning, {"devices": [" ,"]}, "devices: '' is no name"),
        (EvaluateOptions, {"sample": 9}, "did you mean 'samples'"),
        (FeatureOptions, {"also": ("hour",)}, "unknown feature 'hour'"),
        (SessionOptions, {"by": "household"}, "'client', 'visitor' or 'given'"),
        (SessionOptions, {"gap_minutes": float("nan")}, "gap_minutes"),
        (TrainOptions, {"missed_cost": 0}, "greater than 0"),
    ]
    for kind, values, message in wrong:
        refused(UsageError, message, kind.read, values, kind.__name__)
        assert kind.read({}, kind.__name__) == kind()
    found = Cleaning(countries=("nl,BE", "de"), devices=("PC, tv",), most_events=0)
    assert (found.countries, found.devices, found.most_events) == (("BE", "DE", "NL"), ("pc", "tv"), 0)
    assert EvaluateOptions(models=["svm,k-nearest", "random-forest"]).models[1:] == [
        "k-nearest",
        "random-forest",
    ]  # type: ignore[index]


def test_an_evaluation_is_not_finished_before_its_page_is_there(
    features: FeatureTable, tmp_path: Path
) -> None:
    seen: list[list[dict[str, Any]]] = []

    def killed(found: Evaluation) -> None:
        seen.append(found.cells)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            evaluate(features, tmp_path / "grid", **SMALL, page=killed)
        with pytest.raises(DiptychError, match="holds no results"):
            Evaluation.open(tmp_path / "grid")
    found = evaluate(features, tmp_path / "grid", **SMALL, page=lambda one: seen.append(one.cells))
    assert seen == [found.cells] * 3


def two_columns_of_one_feature(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.random(300) < 0.3
    channel = random.normal(size=300) + 2.5 * y
    # Both columns of the channel say the same: permuted alone, neither would be missed.
    return np.stack([random.normal(size=300), channel, channel, np.zeros(300)], axis=1), y


def test_columns_of_a_feature_go_together() -> None:
    for name in ("random-forest-small", "logistic-regression"):
        chosen = [FEATURES.get(one) for one in ("dwell-mean", "channel", "week-day")]
        owners = ("dwell-mean", "channel", "channel", "week-day")
        fitted: Any = SimpleNamespace(features=chosen, owners=owners)
        model, (X, y) = fit_model(name, *two_columns_of_one_feature(0)), two_columns_of_one_feature(1)
        found, again = (importance_of(model, fitted, X, y, 1) for _ in range(2))
        np.testing.assert_array_equal(again, found)
        impurity, (dwell, channel, day) = found[:, 0], found[:, 1:]
        precision = Ranking(model.scores(X), y).values()["average_precision"]
        assert np.mean(channel) == pytest.approx(precision - y.mean(), abs=0.12)
        assert np.abs(dwell).max() < 0.05
        assert day.tolist() == [0.0] * REPEATS
        if name == "logistic-regression":
            assert np.isnan(impurity).all()
        else:
            parts = model.pipeline[-1].feature_importances_
            assert impurity == pytest.approx([parts[0], parts[1] + parts[2], parts[3]])
