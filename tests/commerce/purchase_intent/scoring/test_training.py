"""Training: what is learned from what, what is measured on what, and what a kill leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from feature_tables import small_features

from diptych.commerce.purchase_intent.evaluation.measures import log_odds
from diptych.commerce.purchase_intent.features import FeatureTable, fit_features
from diptych.commerce.purchase_intent.models import fit_model
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.scoring.training import scorer_slices
from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted, UnknownNameError, UsageError


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
    assert cell.features.to_dict() == json.loads(json.dumps(fitted.to_dict()))
    model = fit_model("logistic-regression", fitted.matrix(view), features.labels[fit])
    x = log_odds(model.scores(fitted.matrix(features.at(held, step))), model.model)
    assert cell.base_rate == features.labels[np.r_[fit, held]].mean()

    p = cell.calibration.probabilities(x)
    bought = features.labels[held]
    # Platt's sigmoid is that of a logistic regression without penalty on smoothed targets.
    targets = np.where(bought, (bought.sum() + 1) / (bought.sum() + 2), 1 / ((~bought).sum() + 2))
    assert np.mean(p - targets) == pytest.approx(0, abs=1e-6)
    assert np.mean((p - targets) * x) == pytest.approx(0, abs=1e-6)
    best = max(2 * (bought & (p >= one)).sum() / ((p >= one).sum() + bought.sum()) for one in p)
    chosen = 2 * (bought & (p >= cell.threshold)).sum() / ((p >= cell.threshold).sum() + bought.sum())
    assert chosen == pytest.approx(best)

    from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, roc_auc_score

    truth, given = features.labels[last], cell.probabilities(features.at(last, step))
    measured = cell.about["holdout"]
    assert measured["sessions"] == len(last)
    assert measured["average_precision"] == pytest.approx(average_precision_score(truth, given))
    assert measured["roc_auc"] == pytest.approx(roc_auc_score(truth, given))
    assert measured["brier"] == pytest.approx(brier_score_loss(truth, given))
    assert measured["f1"] == pytest.approx(f1_score(truth, given >= cell.threshold))
    assert measured["always_buy_f1"] == pytest.approx(f1_score(truth, np.ones(len(truth))))
    assert measured["roc_auc_low"] < measured["roc_auc"] < measured["roc_auc_high"]
    assert sum(row["n"] for row in measured["reliability"]) == len(last)


def test_later_sessions_teach_nothing(features: FeatureTable, scorer: Scorer, options: TrainOptions) -> None:
    """Other labels in the last part change what is measured, and nothing else."""
    last = scorer_slices(features, options).holdout
    labels = features.labels.copy()
    labels[last] = np.random.default_rng(0).random(int(last.sum())) < 0.5
    changed = replace(features, view=replace(features.view, labels=labels))
    from diptych.commerce.purchase_intent.scoring.fitting import fit_cell

    cell = fit_cell(changed, "identified", 3, scorer_slices(changed, options), options)
    known = scorer.cell("identified", 3)
    assert cell.features.to_dict() == known.features.to_dict()
    assert (cell.threshold, cell.base_rate, cell.calibration) == (
        known.threshold,
        known.base_rate,
        known.calibration,
    )
    view = changed.at(np.arange(50), 3)
    assert (cell.probabilities(view) == known.probabilities(view)).all()
    assert cell.about["holdout"]["roc_auc"] < known.about["holdout"]["roc_auc"] - 0.1


def test_all_settings_and_steps(features: FeatureTable, scorer: Scorer) -> None:
    assert scorer.places == [(setting, step) for setting in features.settings for step in range(11)]
    sizes = scorer.about["slices"]["sizes"]
    assert sum(sizes.values()) + scorer.about["slices"]["left_out"] == len(features)


def test_stopped_it_goes_on_and_ends_the_same(
    features: FeatureTable, tmp_path: Path, options: TrainOptions
) -> None:
    steps = [0, 4]
    whole = train(features, tmp_path / "whole", options=options, steps=steps)
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    with stop_when(stop), pytest.raises(Interrupted, match="every finished model is kept"):
        train(features, tmp_path / "stopped", options=options, steps=steps)
    assert not (tmp_path / "stopped").exists()
    unfinished = tmp_path / "stopped.unfinished"
    before = {path: path.stat().st_mtime_ns for path in unfinished.rglob("cell.json")}
    assert len(before) == 2
    (unfinished / "models" / "identified" / ".step-0.half.tmp").mkdir(
        parents=True
    )  # a kill while it was saved
    (unfinished / ".history.parquet.17.tmp").write_text("visitor-1")  # a kill while others were kept
    again = train(features, tmp_path / "stopped", options=options, steps=steps)
    assert not unfinished.exists()
    for path, time in before.items():
        moved = again.folder / path.relative_to(unfinished)
        assert moved.stat().st_mtime_ns == time
    assert files_of(again.folder) == files_of(whole.folder)


def test_the_same_is_not_trained_again_and_another_is(
    features: FeatureTable, tmp_path: Path, options: TrainOptions
) -> None:
    folder = tmp_path / "scorer"
    train(features, folder, options=options, steps=[2], settings=["anonymous"])
    before = (folder / "scorer.json").stat().st_mtime_ns
    assert train(features, folder, options=options, steps=[2], settings=["anonymous"]).places == [
        ("anonymous", 2)
    ]
    assert (folder / "scorer.json").stat().st_mtime_ns == before
    other = train(features, folder, options=replace(options, seed=1), steps=[3], settings=["anonymous"])
    assert other.places == [("anonymous", 3)]
    assert not (folder / "models" / "anonymous" / "step-2").exists()


def test_an_unfinished_one_of_another_plan_is_begun_anew(
    features: FeatureTable, tmp_path: Path, options: TrainOptions
) -> None:
    answers = iter([False, True])
    with stop_when(lambda: next(answers)), pytest.raises(Interrupted):
        train(features, tmp_path / "s", options=options, steps=[1, 2])
    found = train(features, tmp_path / "s", options=options, steps=[2], settings=["anonymous"])
    assert [path.name for path in (found.folder / "models" / "anonymous").iterdir()] == ["step-2"]


def test_what_cannot_be_trained_is_said(tmp_path: Path, options: TrainOptions) -> None:
    few = small_features(tmp_path / "few", n=450)
    found = train(few, tmp_path / "s", options=options, steps=[0, 10])
    not_trained = {(one["setting"], one["step"]): one["reason"] for one in found.about["not_trained"]}
    assert set(not_trained) | set(found.places) == {(s, k) for s in few.settings for k in (0, 10)}
    assert not_trained
    assert all("at least 10 of either class" in reason for reason in not_trained.values())
    card = (found.folder / "model_card.md").read_text(encoding="utf-8")
    for setting, step in not_trained:
        assert f"not trained: {setting}, step {step}: " in card
    tiny = small_features(tmp_path / "tiny", n=30)
    with pytest.raises(DataError, match="nothing can be trained"):
        train(tiny, tmp_path / "t", options=options)
    assert not (tmp_path / "t.unfinished").exists()


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ({"settings": ["all"]}, UnknownNameError, "unknown setting"),
        ({"steps": [11]}, UnknownNameError, "unknown step"),
        ({"options": TrainOptions(model="forest")}, UnknownNameError, "unknown model"),
        ({"options": TrainOptions(feature_set="all")}, UnknownNameError, "unknown feature set"),
        ({"options": TrainOptions(calibrate="plat")}, UnknownNameError, "unknown calibration"),
        ({"options": TrainOptions(split="random")}, UnknownNameError, "unknown split"),
        ({"options": TrainOptions(holdout=0.9)}, UsageError, "leave nothing"),
    ],
)
def test_what_is_refused(
    features: FeatureTable, tmp_path: Path, said: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        train(features, tmp_path / "s", **said)
    assert list(tmp_path.iterdir()) == []


def test_somebody_elses_folder_and_published_features(
    features: FeatureTable, tmp_path: Path, options: TrainOptions
) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds other things"):
        train(features, tmp_path / "thesis", options=options)
    published = replace(features, about={**features.about, "options": {"compat": "published"}})
    with pytest.raises(UsageError, match="look at what comes later"):
        train(published, tmp_path / "s", options=options)


def test_the_card_says_what_was_measured(scorer: Scorer) -> None:
    card = (scorer.folder / "model_card.md").read_text(encoding="utf-8")
    for cell in scorer.about["cells"]:
        measured = cell["holdout"]
        row = next(
            line
            for line in card.splitlines()
            if line.startswith(f"| {cell['setting']} | {cell['step']} | {measured['sessions']:,} |")
        )
        assert f"{measured['average_precision']:.4f} [{measured['average_precision_low']:.4f}" in row
        assert f"| {measured['base_rate']:.4f} |" in row
    for said in ("at least 12 pages", "(ours)", "Not run with this scorer", "hours and week days of UTC",
                 "1970-01-01 to 1970-01-2", "No identifiers of visitors", "logistic regression"):  # fmt: skip
        assert said in card


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
