"""A scorer is trained on parts of the sessions, calibrated, measured, kept whole; and drift of later sessions."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from feature_tables import small_features
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.drift import Drift, _compared, drift
from diptych.commerce.purchase_intent.features import FeatureTable, fit_features
from diptych.commerce.purchase_intent.measures import measure
from diptych.commerce.purchase_intent.models import fit_calibration, fit_model, log_odds
from diptych.commerce.purchase_intent.options import EvaluateOptions
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.scoring.training import (
    _begin,
    fit_rows,
    fit_step,
    person_folds,
    score_table,
    slices_of,
)
from diptych.core.context import stop_when
from diptych.core.errors import (
    DataError,
    Interrupted,
    MismatchError,
    StorageError,
    UnknownNameError,
    UsageError,
)


def slices(
    starts: list[int], length: int = 1, persons: list[int] | None = None, **how: Any
) -> tuple[np.ndarray, np.ndarray, str]:
    start = np.array(starts, dtype=np.int64)
    who = np.arange(len(starts)) if persons is None else np.array(persons)
    given = SimpleNamespace(persons=who, start_us=start, end_us=start + length)
    return slices_of(given, TrainOptions(**how))  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40), st.integers(0, 20))
def test_parts_follow_one_another(starts: list[int], length: int) -> None:
    (fit, holdout, note), start = slices(starts, length), np.array(starts)
    assert not (fit & holdout).any()
    if len(set(starts)) == 1:
        assert "drawn at random" in note
    elif fit.any():
        assert (start + length)[fit].max() < start[holdout].min()


def test_without_times_persons_are_told_apart_and_it_is_noted() -> None:
    persons = [number // 3 for number in range(900)]
    fit, holdout, note = slices([0] * 900, persons=persons, seed=3)
    assert "no times" in note
    assert (fit ^ holdout).all()
    assert (holdout.reshape(300, 3) == holdout.reshape(300, 3)[:, :1]).all()
    assert holdout.mean() == pytest.approx(0.2, abs=0.07)
    assert (slices(list(range(900)), persons=persons, split="grouped", seed=3)[0] == fit).all()


def sample(n: int, slope: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and outcomes whose log-odds are ``slope`` times them, less 1."""
    random = np.random.default_rng(1)
    x = random.normal(size=n)
    return x, random.random(n) < 1 / (1 + np.exp(1 - slope * x))


def test_steps_are_those_of_pooled_neighbours() -> None:
    from sklearn.isotonic import isotonic_regression

    x, labels = sample(6000)
    found, notes = fit_calibration("isotonic", x, labels)
    assert (notes, found.steps is None) == ([], False)
    order = np.argsort(x)
    np.testing.assert_allclose(
        found.probabilities(x)[order],
        np.clip(isotonic_regression(labels[order].astype(float)), 1 / 6002, 6001 / 6002),
        atol=1e-9,
    )
    few, note = fit_calibration("isotonic", *sample(500))
    assert (few.steps, "steps need 1,000 sessions of either class" in note[0]) == (None, True)
    assert "the wrong one" in fit_calibration("platt", *sample(5000, slope=-1.0))[1][0]
    far = found.probabilities(np.array([-1e9, 1e9]))
    assert (far > 0).all()
    assert (far < 1).all()


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".skops"  # a zip, which knows when it was made
    }


def test_fitted_on_all_calibrated_by_cross_fitting_measured_without_the_last_part(
    features: FeatureTable, scorer: Scorer, options: TrainOptions
) -> None:
    from sklearn.metrics import brier_score_loss, f1_score

    setting, step = "identified", 5
    model, rows = scorer.model(setting, step), features.population(setting, step)
    view, bought = features.at(rows, step), features.labels[rows]
    fitted = fit_features(features.features(setting, "extended", step), view)
    assert model.features == fitted
    alone = fit_model("logistic-regression", fitted.matrix(view), bought)
    assert (model.model.scores(fitted.matrix(view)) == alone.scores(fitted.matrix(view))).all()
    assert model.base_rate == bought.mean()

    # Nobody's own sessions, nor those of the same person, calibrate: one fold's predictions by a model of the other.
    x = np.full(len(rows), np.nan)
    folds = person_folds(features, rows, options)
    assert len(folds) == options.folds == 2
    for fold in folds:
        assert not set(features.persons[fold.train]) & set(features.persons[fold.test])
        part = features.at(fold.train, step)
        half = fit_features(features.features(setting, "extended", step), part)
        without = fit_model("logistic-regression", half.matrix(part), features.labels[fold.train])
        scores = without.scores(half.matrix(features.at(fold.test, step)))
        x[np.searchsorted(rows, fold.test)] = log_odds(scores, without.model)
    p = model.calibration.probabilities(x)
    # Platt's sigmoid is that of a logistic regression without penalty on smoothed targets.
    targets = np.where(bought, (bought.sum() + 1) / (bought.sum() + 2), 1 / ((~bought).sum() + 2))
    assert np.mean(p - targets) == pytest.approx(0, abs=1e-6)
    assert np.mean((p - targets) * x) == pytest.approx(0, abs=1e-6)
    best = max(f1_score(bought, p >= one) for one in p)
    assert f1_score(bought, p >= model.threshold) == pytest.approx(best)

    fit, holdout, _ = slices_of(features, TrainOptions(holdout=options.holdout))
    assert features.end_us[fit].max() < features.start_us[holdout].min()
    before, last = rows[fit[rows]], rows[holdout[rows]]
    earlier = fit_rows(features, setting, step, before, options)
    truth, found = features.labels[last], earlier.probabilities(features.at(last, step))
    measured, expected = model.about["holdout"], measure(found, truth, earlier.threshold)
    assert {name: measured[name] for name in expected} == pytest.approx(expected)
    assert measured["brier"] == pytest.approx(brier_score_loss(truth, found))
    assert measured["roc_auc_low"] < measured["roc_auc"] < measured["roc_auc_high"]


def test_stopped_it_resumes_and_ends_the_same(
    features: FeatureTable, tmp_path: Path, options: TrainOptions
) -> None:
    how: dict[str, Any] = {"options": options, "steps": [0], "settings": ["anonymous", "identified"]}
    whole, folder = train(features, tmp_path / "whole", **how), tmp_path / "stopped"
    done = folder / "units" / "anonymous-0" / "step_model.json"
    with stop_when(done.exists), pytest.raises(Interrupted, match="1 of 2 models are kept|every finished"):
        train(features, folder, **how)
    with pytest.raises(StorageError, match="holds no scorer"):
        Scorer.open(folder)
    time = done.stat().st_mtime_ns
    (folder / "units" / ".identified-0.half.tmp").mkdir()  # what a kill leaves while a model is saved
    again = train(features, folder, **how)
    assert files_of(again.folder) == files_of(whole.folder)
    assert train(features, folder, **how) == again
    assert done.stat().st_mtime_ns == time
    # A process opens the table itself, and fits the same.
    alone = fit_step(_begin(features.folder, options), ("identified", 0))
    kept = folder / "units" / "identified-0"
    of = json.loads((kept / "step_model.json").read_text())["of"]
    assert files_of(alone.save(tmp_path / "alone", of=of)) == files_of(kept)
    with pytest.raises(MismatchError, match="holds other models: models .*requested") as refused:
        train(features, folder, **{**how, "steps": [0, 1]})
    assert len(refused.value.message) < 400
    (folder / "training.json").write_text("{")
    with pytest.raises(StorageError, match="training.json") as refused:  # it is not taken for none
        train(features, folder, **how)
    assert refused.value.fix == "give another folder, or remove this one"


def test_what_cannot_be_trained_is_noted(tmp_path: Path, options: TrainOptions) -> None:
    few = small_features(tmp_path / "few", n=220)
    found = train(few, tmp_path / "s", options=options, steps=[0, 10])
    not_trained = {(one["setting"], one["step"]): one["reason"] for one in found.about["not_trained"]}
    assert set(not_trained) | set(found.places) == {(s, k) for s in few.settings for k in (0, 10)}
    assert not_trained
    assert all("before the last part: " in reason for reason in not_trained.values())
    with pytest.raises(DataError, match="nothing can be trained"):
        train(small_features(tmp_path / "tiny", n=30), tmp_path / "t", options=options)
    published = replace(few, about={**few.about, "options": {"compat": "published"}})
    for table, asked, error, message in (
        (few, TrainOptions(feature_set="all"), UnknownNameError, "unknown feature set"),
        (published, options, UsageError, "look at what comes later"),
    ):
        with pytest.raises(error, match=message):
            train(table, tmp_path / "t", options=asked)
    assert not (tmp_path / "t").exists()


def test_no_person_is_in_the_folder(scorer: Scorer, features: FeatureTable) -> None:
    background = scorer.model("identified", 10).background
    assert background.shape == (30, len(scorer.model("identified", 10).features.names))
    known = {str(one) for one in features.session_ids[features.session_ids > 10**4]}
    for name, content in files_of(scorer.folder).items():
        if name.endswith(".json"):
            assert not known & set(content.decode().replace(",", " ").split()), name


def test_costs_give_a_second_threshold_and_hostile_words_stay_words(
    features: FeatureTable, scorer: Scorer, tmp_path: Path, options: TrainOptions
) -> None:
    table = replace(features, about={**features.about, "name": "a|b\n# <script>", "fingerprint": "other"})
    costs = options.model_copy(update={"missed_cost": 9.0})
    found = train(table, tmp_path / "s", options=costs, steps=[5], settings=["identified"])
    (cell,), other = found.about["cells"], scorer.model("identified", 5)
    assert (cell["threshold"], other.cost_threshold) == (other.threshold, None)
    assert cell["cost_threshold"] < cell["threshold"]
    assert cell["holdout"]["cost"] < cell["holdout"]["cost_without"]
    score = found.score({"device": "pc", "channel": "paid", "visitor_id": "v", "events": [{"t": 0}] * 5})
    assert score.worth_acting is (score.p >= cell["cost_threshold"])
    assert f"(from {cell['cost_threshold']:.3f} on)" in score.line()
    card = (found.folder / "model_card.md").read_text(encoding="utf-8")
    assert "<script>" not in card.replace("\\<script\\>", "")
    assert card.splitlines()[0] == r"# Purchase intent: a\|b \# \<script\>"
    assert r"| features | a\|b \# \<script\>" in card
    assert "of exact probabilities 0.100" in card
    used = dict.fromkeys(one.label for one in found.model("identified", 5).features.features)
    assert [one["label"] for one in found.about["features"]] == [*used]  # in every process the same order


def rows_of(folder: Path) -> list[dict[str, str]]:
    with open(folder / "scores.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_later_table_and_its_own(features: FeatureTable, scorer: Scorer, tmp_path: Path) -> None:
    later, given = small_features(tmp_path / "later", n=300, seed=7), EvaluateOptions(steps=[0, 10])
    scored = score_table(scorer, later, given)
    scored.save(tmp_path / "scores")
    about = scored.about
    assert about["measured"] == "all sessions"
    expected = {}
    for (model, rows, p), cell in zip(scorer.score_table(later, steps=[0, 10]), about["cells"], strict=True):
        labels = later.labels[rows]
        alike = measure(p, labels, model.threshold)
        assert {name: cell["measures"][name] for name in alike} == alike
        for row, one, label in zip(later.session_ids[rows], p, labels, strict=True):
            likely = str(int(one >= model.threshold))
            expected[str(row), model.setting, str(model.step)] = (one, likely, str(int(label)))
    found = {
        (row["session_id"], row["setting"], row["step"]): (float(row["p"]), row["likely"], row["bought"])
        for row in rows_of(tmp_path / "scores")
    }
    assert found == expected
    (own, *_) = score_table(scorer, features, given).about["cells"]  # of sessions that it has seen
    assert own["scored"] == len(features.population("anonymous", 0))
    assert own["measures"] == scorer.model("anonymous", 0).about["holdout"]


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("later") / "later", n=1500, seed=5)


def test_what_changed_is_found_and_nothing_else(features: FeatureTable, later: FeatureTable) -> None:
    assert [row["change"] for row in drift(features, later).rows] == ["–"] * len(drift(features, later).rows)
    channel = np.where(np.arange(len(later)) % 2, "radio", later.view.columns["channel"]).astype(object)
    orders = later.view.columns["orders"] + 2
    columns = {**later.view.columns, "channel": channel, "orders": orders}
    found = drift(features, replace(later, view=replace(later.view, columns=columns)), step=5)
    changed = {(row["setting"], row["what"]) for row in found.rows if row["change"] == "large"}
    assert changed == {("anonymous", "channel"), ("identified", "channel"), ("identified", "orders")}
    assert found.is_large
    assert found.lines()[0].startswith(f"3 of {len(found.rows)} changed: anonymous channel")
    rare = replace(later, view=replace(later.view, labels=later.labels & (np.arange(len(later)) % 2 == 0)))
    assert {row["what"] for row in drift(features, rare).rows if row["p"] < 0.05} >= {"purchase"}


def test_a_scorer_is_measured_as_everywhere(
    features: FeatureTable, later: FeatureTable, scorer: Scorer, tmp_path: Path
) -> None:
    found = drift(features, later, scorer)
    expected = score_table(scorer, later).about["cells"]
    assert [cell["measures"] for cell in found.cells] == [cell["measures"] for cell in expected]
    opened = Drift.open(found.save(tmp_path / "drift"))
    assert (len(opened.tables()), opened.lines()) == (3, found.lines())
    assert len(opened.charts()) == 4  # reliability at the first and the last step


def test_the_index_by_hand() -> None:
    old, new = np.repeat([0.0, 1.0], [60, 40])[:, None], np.repeat([0.0, np.nan], [30, 70])[:, None]
    shares = (np.array([[0, 60, 40], [70, 30, 0]]) + 0.5) / 101.5
    assert _compared(old, new)["psi"] == pytest.approx(
        np.sum(np.diff(shares, axis=0) * np.diff(np.log(shares), axis=0))
    )
    assert _compared(old, old) == {"psi": 0.0, "p": 1.0}
    random = np.random.default_rng(0)
    before, after = random.normal(size=(2000, 1)), random.normal(1.0, size=(2000, 1))
    assert _compared(before, random.normal(size=(2000, 1)))["psi"] < 0.03
    # Of normal curves it is the squared distance.
    assert _compared(before, after)["psi"] == pytest.approx(1.0, abs=0.3)


def test_tables_that_were_made_otherwise_are_refused(features: FeatureTable, later: FeatureTable) -> None:
    other = replace(later, about={**later.about, "kind": "whole"})
    with pytest.raises(MismatchError, match="the old features have kind"):
        drift(features, other)
