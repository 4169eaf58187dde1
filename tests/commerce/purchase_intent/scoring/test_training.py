"""A scorer is trained on three parts of the sessions, calibrated, measured, and kept whole."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from feature_tables import small_features
from hypothesis import given
from hypothesis import strategies as st
from uci_sessions import made_up_table

from diptych.commerce.purchase_intent.evaluation.measures import log_odds, roc_auc
from diptych.commerce.purchase_intent.features import FeatureTable, fit_features
from diptych.commerce.purchase_intent.features.make import make_whole_features
from diptych.commerce.purchase_intent.models import fit_model
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.scoring.cell import fit_calibration
from diptych.commerce.purchase_intent.scoring.fitting import fit_cell, slices_of
from diptych.commerce.purchase_intent.scoring.table_scores import write_table_scores
from diptych.commerce.purchase_intent.scoring.training import scorer_slices
from diptych.commerce.purchase_intent.splits import SplitInput
from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted, UnknownNameError, UsageError


def sessions(starts: list[int], length: int = 1, persons: list[int] | None = None) -> SplitInput:
    start = np.array(starts, dtype=np.int64)
    who = np.arange(len(starts)) if persons is None else np.array(persons)
    return SplitInput(np.zeros(len(starts), dtype=bool), who, start, start + length)


def test_who_runs_across_an_end_is_in_none() -> None:
    found = slices_of(sessions([10, 20, 30, 40, 50], length=10), calibration=0.2, holdout=0.2)
    assert found.ends == (40, 50)
    assert np.flatnonzero(found.fit).tolist() == [0, 1]
    assert np.flatnonzero(found.calibration).tolist() == []
    assert np.flatnonzero(found.holdout).tolist() == [4]
    assert found.n_left_out == 2


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40), st.integers(0, 20))
def test_parts_follow_one_another(starts: list[int], length: int) -> None:
    given = sessions(starts, length)
    found = slices_of(given, calibration=0.25, holdout=0.25)
    if found.split == "grouped":
        assert len(set(starts)) == 1
        return
    parts = [found.fit, found.calibration, found.holdout]
    assert (np.sum(parts, axis=0) <= 1).all()
    for before, after in ((0, 1), (1, 2), (0, 2)):
        if parts[before].any() and parts[after].any():
            assert given.end_us[parts[before]].max() < given.start_us[parts[after]].min()


def test_without_times_persons_are_told_apart_and_it_is_said() -> None:
    persons = [number // 3 for number in range(900)]
    found = slices_of(sessions([0] * 900, persons=persons), seed=3)
    assert (found.split, "no times" in found.note) == ("grouped", True)
    part = found.fit + 2 * found.calibration + 3 * found.holdout
    assert set(part.tolist()) == {1, 2, 3}
    assert (part.reshape(300, 3) == part.reshape(300, 3)[:, :1]).all()
    assert found.holdout.mean() == pytest.approx(0.2, abs=0.07)
    asked = slices_of(sessions(list(range(900)), persons=persons), split="grouped", seed=3)
    assert (asked.fit == found.fit).all()


def sample(n: int, slope: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and outcomes whose log-odds are ``slope`` times them, less 1."""
    random = np.random.default_rng(1)
    x = random.normal(size=n)
    return x, random.random(n) < 1 / (1 + np.exp(1 - slope * x))


def test_steps_are_those_of_pooled_neighbours() -> None:
    from sklearn.isotonic import isotonic_regression

    x, labels = sample(6000)
    found, said = fit_calibration("isotonic", x, labels)
    assert (said, found.steps is None) == ("", False)
    order = np.argsort(x)
    np.testing.assert_allclose(
        found.probabilities(x)[order],
        np.clip(isotonic_regression(labels[order].astype(float)), 1 / 6002, 6001 / 6002),
        atol=1e-9,
    )
    far = found.probabilities(np.array([-1e9, 1e9]))
    assert (far > 0).all()
    assert (far < 1).all()


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".skops"  # a zip, which knows when it was made
    }


@pytest.mark.parametrize(("setting", "step"), [("anonymous", 0), ("identified", 5)])
def test_the_three_parts_do_their_own_work(
    features: FeatureTable, scorer: Scorer, options: TrainOptions, setting: str, step: int
) -> None:
    from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, roc_auc_score

    slices = scorer_slices(features, options)
    population = features.population(setting, step)
    fit, held, last = (
        population[part[population]] for part in (slices.fit, slices.calibration, slices.holdout)
    )
    assert features.end_us[fit].max() < features.start_us[held].min()
    assert features.end_us[held].max() < features.start_us[last].min()
    cell = scorer.cell(setting, step)

    view = features.at(fit, step)
    fitted = fit_features(features.features(setting, "extended", step), view)
    assert cell.features == fitted
    model = fit_model("logistic-regression", fitted.matrix(view), features.labels[fit])
    x = log_odds(model.scores(fitted.matrix(features.at(held, step))), model.model)
    assert cell.base_rate == features.labels[np.r_[fit, held]].mean()

    p, bought = cell.calibration.probabilities(x), features.labels[held]
    # Platt's sigmoid is that of a logistic regression without penalty on smoothed targets.
    targets = np.where(bought, (bought.sum() + 1) / (bought.sum() + 2), 1 / ((~bought).sum() + 2))
    assert np.mean(p - targets) == pytest.approx(0, abs=1e-6)
    assert np.mean((p - targets) * x) == pytest.approx(0, abs=1e-6)
    assert f1_score(bought, p >= cell.threshold) == pytest.approx(
        max(f1_score(bought, p >= one) for one in p)
    )

    truth, given = features.labels[last], cell.probabilities(features.at(last, step))
    measured = cell.about["holdout"]
    expected = {
        "sessions": len(last),
        "average_precision": average_precision_score(truth, given),
        "roc_auc": roc_auc_score(truth, given),
        "brier": brier_score_loss(truth, given),
        "f1": f1_score(truth, given >= cell.threshold),
        "always_buy_f1": f1_score(truth, np.ones(len(truth))),
    }
    assert {name: measured[name] for name in expected} == pytest.approx(expected)
    assert measured["roc_auc_low"] < measured["roc_auc"] < measured["roc_auc_high"]


def test_later_sessions_teach_nothing(features: FeatureTable, scorer: Scorer, options: TrainOptions) -> None:
    """Other labels in the last part change what is measured, and nothing else."""
    last = scorer_slices(features, options).holdout
    labels = features.labels.copy()
    labels[last] = np.random.default_rng(0).random(int(last.sum())) < 0.5
    changed = replace(features, view=replace(features.view, labels=labels))
    cell = fit_cell(changed, "identified", 3, scorer_slices(changed, options), options)
    known = scorer.cell("identified", 3)
    for name in ("features", "threshold", "base_rate", "calibration"):
        assert getattr(cell, name) == getattr(known, name)
    view = changed.at(np.arange(50), 3)
    assert (cell.probabilities(view) == known.probabilities(view)).all()
    assert cell.about["holdout"]["roc_auc"] < known.about["holdout"]["roc_auc"] - 0.1


def test_stopped_it_goes_on_and_ends_the_same(
    features: FeatureTable, tmp_path: Path, options: TrainOptions
) -> None:
    whole = train(features, tmp_path / "whole", options=options, steps=[0, 4])
    answers = iter([False, False, True])
    with stop_when(lambda: next(answers)), pytest.raises(Interrupted, match="every finished model is kept"):
        train(features, tmp_path / "stopped", options=options, steps=[0, 4])
    assert not (tmp_path / "stopped").exists()
    unfinished = tmp_path / "stopped.unfinished"
    before = {path: path.stat().st_mtime_ns for path in unfinished.rglob("cell.json")}
    assert len(before) == 2
    # What a kill leaves while a model is saved, and while a history is kept.
    (unfinished / "models" / "identified" / ".step-0.half.tmp").mkdir(parents=True)
    (unfinished / ".history.parquet.17.tmp").write_text("visitor-1")
    again = train(features, tmp_path / "stopped", options=options, steps=[0, 4])
    assert not unfinished.exists()
    for path, time in before.items():
        assert (again.folder / path.relative_to(unfinished)).stat().st_mtime_ns == time
    assert files_of(again.folder) == files_of(whole.folder)


def test_what_cannot_be_trained_is_said(tmp_path: Path, options: TrainOptions) -> None:
    few = small_features(tmp_path / "few", n=450)
    found = train(few, tmp_path / "s", options=options, steps=[0, 10])
    not_trained = {(one["setting"], one["step"]): one["reason"] for one in found.about["not_trained"]}
    assert set(not_trained) | set(found.places) == {(s, k) for s in few.settings for k in (0, 10)}
    assert not_trained
    assert all("at least 10 of either class" in reason for reason in not_trained.values())
    with pytest.raises(DataError, match="nothing can be trained"):
        train(small_features(tmp_path / "tiny", n=30), tmp_path / "t", options=options)
    assert not (tmp_path / "t.unfinished").exists()


def test_what_is_refused_training(features: FeatureTable, tmp_path: Path, options: TrainOptions) -> None:
    published = replace(features, about={**features.about, "options": {"compat": "published"}})
    for table, asked, error, message in (
        (features, {"settings": ["all"]}, UnknownNameError, "unknown setting"),
        (features, {"steps": [11]}, UnknownNameError, "unknown step"),
        (features, {"options": TrainOptions(model="forest")}, UnknownNameError, "unknown model"),
        (features, {"options": TrainOptions(feature_set="all")}, UnknownNameError, "unknown feature set"),
        (published, {"options": options}, UsageError, "look at what comes later"),
    ):
        with pytest.raises(error, match=message):
            train(table, tmp_path / "s", **asked)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "chapter.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds other things"):
        train(features, tmp_path, options=options)


def test_no_person_is_in_the_folder(scorer: Scorer, features: FeatureTable) -> None:
    background = scorer.cell("identified", 10).background
    assert background.shape == (30, len(scorer.cell("identified", 10).features.names))
    assert not (scorer.folder / "history.parquet").exists()
    known = {str(one) for one in features.session_ids[features.session_ids > 10**4]}
    for name, content in files_of(scorer.folder).items():
        if name.endswith(".json"):
            assert not known & set(content.decode().replace(",", " ").split()), name


def test_hostile_words_stay_words(features: FeatureTable, tmp_path: Path, options: TrainOptions) -> None:
    about = {**features.about, "name": "a|b\n# <script>", "fingerprint": "other"}
    found = train(
        replace(features, about=about), tmp_path / "s", options=options, steps=[0], settings=["anonymous"]
    )
    card = (found.folder / "model_card.md").read_text(encoding="utf-8")
    assert "<script>" not in card.replace("\\<script\\>", "")
    assert card.splitlines()[0] == r"# Purchase intent: a\|b \# \<script\>"


def rows_of(folder: Path) -> list[dict[str, str]]:
    with open(folder / "scores.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_later_table(scorer: Scorer, tmp_path: Path) -> None:
    later = small_features(tmp_path / "later", n=300, seed=7)
    about = write_table_scores(scorer, later, tmp_path / "scores", steps=[0, 10]).about
    assert about["measured"] == "all sessions"
    expected = {}
    for one, measured in zip(scorer.score_table(later, steps=[0, 10]), about["cells"], strict=True):
        cell, labels = one.cell, later.labels[one.rows]
        assert measured["measures"]["roc_auc"] == pytest.approx(roc_auc(one.p, labels))
        for row, p, label in zip(later.session_ids[one.rows], one.p, labels, strict=True):
            expected[str(row), cell.setting, str(cell.step)] = (
                p,
                str(int(p >= cell.threshold)),
                str(int(label)),
            )
    found = {
        (row["session_id"], row["setting"], row["step"]): (float(row["p"]), row["likely"], row["bought"])
        for row in rows_of(tmp_path / "scores")
    }
    assert found == expected


def test_the_table_it_was_trained_on_is_measured_on_its_last_part(
    features: FeatureTable, scorer: Scorer, tmp_path: Path
) -> None:
    about = write_table_scores(scorer, features, tmp_path / "scores", settings=["anonymous"], steps=[3]).about
    assert "the last part" in about["measured"]
    (cell,) = about["cells"]
    assert cell["scored"] == len(features.population("anonymous", 3))
    assert cell["measures"] == scorer.cell("anonymous", 3).about["holdout"]


def test_whole_sessions(tmp_path: Path, options: TrainOptions) -> None:
    features = make_whole_features(made_up_table(tmp_path / "uci.csv", 400), folder=tmp_path / "features")
    found = train(features, tmp_path / "scorer", options=options)
    assert (found.places, found.about["slices"]["split"]) == ([("all", -1)], "grouped")
    assert "left out: the column PageValues" in (found.folder / "model_card.md").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="this scorer is of whole sessions"):
        found.score({"events": [{"t": 0}]})
    other = make_whole_features(made_up_table(tmp_path / "other.csv", 200, seed=1), folder=tmp_path / "more")
    about = write_table_scores(found, other, tmp_path / "scores").about
    assert about["cells"][0]["measures"]["roc_auc"] > 0.8


def test_what_is_refused_and_said_of_a_calibration() -> None:
    found, said = fit_calibration("isotonic", *sample(500))
    assert (found.steps, "steps need 1,000 sessions of either class" in said) == (None, True)
    assert "the wrong one" in fit_calibration("platt", *sample(5000, slope=-1.0))[1]
    with pytest.raises(UnknownNameError, match="plat"):
        fit_calibration("plat", *sample(10))
    with pytest.raises(DataError, match="cannot be calibrated"):
        fit_calibration("platt", np.zeros(5), np.zeros(5, dtype=bool))
