"""Scores of a table as files, and what they are worth."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from feature_tables import small_features
from uci_sessions import made_up_table

from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.features.whole import make_whole_features
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.scoring.table_scores import ScoredTable, write_table_scores
from diptych.core.errors import UsageError


def rows_of(folder: Path) -> list[dict[str, str]]:
    with open(folder / "scores.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_later_table(scorer: Scorer, tmp_path: Path) -> None:
    later = small_features(tmp_path / "later", n=300, seed=7)
    about = write_table_scores(scorer, later, tmp_path / "scores", steps=[0, 10])
    assert about["measured"] == "all sessions"
    rows = rows_of(tmp_path / "scores")
    found = list(scorer.score_table(later, steps=[0, 10]))
    assert len(rows) == sum(len(one.rows) for one in found)
    place = {session: row for row, session in enumerate(later.session_ids)}
    expected = {
        (str(later.session_ids[row]), one.cell.setting, str(one.cell.step)): p
        for one in found
        for row, p in zip(one.rows, one.p, strict=True)
    }
    for row in rows:
        p = expected.pop((row["session_id"], row["setting"], row["step"]))
        threshold = scorer.cell(row["setting"], int(row["step"])).threshold
        assert float(row["p"]) == p
        assert row["likely"] == str(int(p >= threshold))
        assert row["bought"] == str(int(later.labels[place[int(row["session_id"])]]))
    assert expected == {}
    assert ScoredTable.open(tmp_path / "scores").about == about
    from sklearn.metrics import roc_auc_score

    of = {(cell["setting"], cell["step"]): cell for cell in about["cells"]}
    for one in found:
        cell = of[one.cell.setting, one.cell.step]
        assert cell["measures"]["roc_auc"] == pytest.approx(roc_auc_score(later.labels[one.rows], one.p))


def test_the_table_it_was_trained_on_is_measured_on_its_last_part(
    features: FeatureTable, scorer: Scorer, tmp_path: Path
) -> None:
    about = write_table_scores(scorer, features, tmp_path / "scores", settings=["anonymous"], steps=[3])
    assert "the last part" in about["measured"]
    (cell,) = about["cells"]
    assert cell["scored"] == len(features.population("anonymous", 3))
    assert cell["measures"] == scorer.cell("anonymous", 3).about["holdout"]
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds other things"):
        write_table_scores(scorer, features, tmp_path / "thesis")


def test_whole_sessions(tmp_path: Path, options: TrainOptions) -> None:
    features = make_whole_features(made_up_table(tmp_path / "uci.csv", 400), folder=tmp_path / "features")
    found = train(features, tmp_path / "scorer", options=options)
    assert found.places == [("all", -1)]
    assert (found.about["slices"]["split"], "no times" in found.about["slices"]["note"]) == ("grouped", True)
    assert not (found.folder / "example.json").exists()
    card = (found.folder / "model_card.md").read_text(encoding="utf-8")
    assert "left out: the column PageValues" in card
    assert "when it is over" in card
    with pytest.raises(UsageError, match="this scorer is of whole sessions"):
        found.score({"events": [{"t": 0}]})
    other = make_whole_features(made_up_table(tmp_path / "other.csv", 200, seed=1), folder=tmp_path / "more")
    about = write_table_scores(found, other, tmp_path / "scores")
    assert about["cells"][0]["measures"]["roc_auc"] > 0.8
    assert {row["step"] for row in rows_of(tmp_path / "scores")} == {"-1"}
