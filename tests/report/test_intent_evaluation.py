"""The pages of an evaluation and of a scorer."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from feature_tables import small_features
from intent_rows import cells_of, gains_of, importance_of

from diptych.commerce.purchase_intent.evaluation import Evaluation
from diptych.commerce.purchase_intent.evaluation.plan import Protocol
from diptych.commerce.purchase_intent.evaluation.result import Results
from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring.fitting import TrainOptions
from diptych.commerce.purchase_intent.scoring.training import train
from diptych.core.errors import StorageError
from diptych.report.intent_content import render_page
from diptych.report.intent_evaluation import (
    best_findings,
    calibration_findings,
    evaluation_page,
    importance_findings,
    step_findings,
    write_evaluation_page,
)
from diptych.report.intent_grid import Grid
from diptych.report.intent_scorer import (
    odds_factor,
    scorer_page,
    write_scorer_page,
)
from diptych.report.intent_step_figures import (
    feature_order,
    importance_figure,
    reliability_figure,
    static_figure,
    static_shares,
)

CELLS = cells_of()
OF_ONE = cells_of(settings=("anonymous",))
GRID = Grid(CELLS)


def evaluation(cells: list[dict[str, Any]], name: str = "a shop", **more: Any) -> Evaluation:
    """An evaluation as its folder would hold it."""
    grid = Grid(cells)
    scorer, compat = more.pop("scorer", ""), more.pop("compat", "none")
    fold = {"train": 900, "test": 100, "test_of_persons_in_training": 30}
    about = {
        "features": {
            "name": name,
            "line": "2,000 sessions, 2 steps",
            "kind": "whole" if grid.steps == [-1] else "steps",
            "compat": compat,
            "fingerprint": "f00",
        },
        "diptych": "0.0",
        "split": {
            "name": "random",
            "description": "sessions at random; what it lets leak",
            "folds": [fold, fold],
        },
        "models": {
            model: {"label": label, "description": f"<b>{model}</b>"} for model, label in grid.labels.items()
        },
        "notes": ["split random: sessions at random", "no weights for classes in KNN"],
    }
    protocol = Protocol(
        features="f00",
        models=tuple(grid.models),
        settings=tuple(grid.settings),
        sets=tuple(grid.sets),
        steps=tuple(grid.steps),
        split="random",
        folds=2,
        balanced=True,
        inner=True,
        importance=False,
        seed=3,
        scikit_learn="1.9",
        scorer=scorer,
        about=about,
    )
    values = {
        "intervals": {"samples": 200, "confidence": 0.95, "seed": 3},
        "cells": cells,
        "gains": [],
        "importance": [],
        "left_out": [],
        "notes": [],
        "labels": np.zeros(0, dtype=bool),
        "persons": np.zeros(0, dtype=np.int64),
        **more,
    }
    return Evaluation(Path(), protocol, Results(**values))


@pytest.fixture(scope="module")
def text() -> str:
    left = [{"setting": "identified", "step": 10, "reason": "0 purchases among 7 test sessions"}]
    cells = [{**cell, "remarks": {"did not converge <lbfgs>": 2}} for cell in OF_ONE]
    found = evaluation(cells, gains=gains_of(cells), importance=importance_of(), left_out=left)
    return render_page(evaluation_page(found))


def test_every_number_of_the_cells_is_there(text: str, parse: Callable[[str], Any]) -> None:
    said = parse(text).text
    for cell in OF_ONE:
        for name in ("f1", "best_f1", "average_precision"):
            assert f"{cell[name]:.3f}" in said
            assert f"{cell[f'{name}_low']:.3f} to {cell[f'{name}_high']:.3f}" in said
        assert f"{cell['sessions']:,}" in said
        assert f"{100 * cell['base_rate']:.2f}" in said
        assert f"{cell['always_buy_f1']:.3f}" in said
    for row in importance_of():
        assert f"{100 * row['impurity']:.1f}" in said
        assert f"{row['permutation']:.3f}".replace("-", "−") in said
    assert "Left out: identified, step 10: 0 purchases among 7 test sessions." in said
    assert "KNN: did not converge <lbfgs> (8 folds)." in said


def test_the_protocol_says_what_leaks(text: str, parse: Callable[[str], Any]) -> None:
    said = parse(text).text
    assert "random: sessions at random; what it lets leak" in said
    assert (
        "2; trained on 900 sessions, tested on 100; 30.0 % of test sessions are of persons with a session"
        in said
    )
    assert "whose purchase, if any, comes after k + 2 pages" in said
    assert "95 %, 200 resamples of persons, seed 3" in said
    assert "features f00" in said
    assert "No weights for classes in KNN." in said
    assert (
        "diptych intent evaluate FEATURES --out EVALUATION --model random-forest --model k-nearest --setting anonymous "
        "--set baseline --set extended --step 0 --step 5 --split random --folds 2 --seed 3 "
        "--no-importance"
    ) in said
    given = evaluation(CELLS[:1], scorer="scorer x", compat="published")
    page = evaluation_page(given)
    assert page.commands == []
    assert "as published" in page.facts["population"]


def test_it_stands_alone(text: str, parse: Callable[[str], Any], tmp_path: Path) -> None:
    page = parse(text)
    assert "http" not in text.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert "<b>random" not in text
    figures = page.all("svg", class_="figure")
    # F1 and AP per place, lift per setting, gains twice per setting, reliability twice per setting, importance
    assert len(figures) == 2 + 2 + 1 + 2 + 2 + 2 + 1
    assert all(one["aria-label"] for one in figures)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert {one["href"][1:] for one in page.all("a")} <= set(ids)
    assert {one["scope"] for one in page.all("th")} == {"col", "row"}
    found = evaluation(cells_of(settings=("all",), sets=("all",), steps=(-1,)), name="<script>x</script>")
    written = write_evaluation_page(tmp_path / "a" / "page.html", found).read_text("utf-8")
    assert "<script" not in written
    assert "Predicting purchases: &lt;script&gt;" in written
    assert "whole sessions, when they are over" in written
    assert "--step=-1" in written


def line_of(figure: str, colour: str) -> np.ndarray:
    """(n, 2) points of the thickest line of a colour."""
    dashes = r"(?:stroke-dasharray: [^;]*; stroke-dashoffset: [^;]*; )?"
    style = rf"fill: none; {dashes}stroke: var\(--{colour}, [^)]*\); stroke-width: ([\d.]+)"
    lines = re.findall(rf'<path d="([^"]*)"[^>]*style="{style}', figure)
    path = max(lines, key=lambda one: float(one[1]))[0]
    return np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), dtype=float)


def test_findings_of_the_best() -> None:
    lines = best_findings(GRID)
    assert lines[0] == (
        "Anonymous, extended, after 5 pages: RF has the best average precision, 0.464 (0.444 to 0.484); the share of "
        "purchases, 0.190, is what knowing nothing gives."
    )
    assert lines[1] == (
        "The best F1 there is 0.481 (0.461 to 0.501) (RF); predicting a purchase always has 0.319."
    )
    worse = Grid([{**cell, "always_buy_f1": 0.9} for cell in CELLS])
    assert best_findings(worse)[1].startswith("No F1 there reaches the 0.900 of predicting a purchase always")
    flat = Grid([{**cell, "f1": 0.96 + 0.001 * cell["step"]} for cell in CELLS])
    assert step_findings(flat)[0].endswith("stays between 0.960 and 0.965 at all steps.")
    assert "goes from 0.461 before any page to 0.481 after 5 pages" in step_findings(GRID)[0]
    none = Grid([{**cell, "f1": None, "average_precision": None, "brier_calibrated": None} for cell in CELLS])
    assert best_findings(none) == step_findings(none) == calibration_findings(none) == []


def test_static_features_fall() -> None:
    rows = importance_of()
    assert static_shares(rows, "impurity") == {0: 1.0, 5: pytest.approx(0.5)}
    # what is worse than nothing counts as nothing
    assert static_shares([{**row, "permutation": -0.1} for row in rows], "permutation") == {}
    assert importance_findings({"anonymous": rows}) == [
        "Anonymous: week-day, dwell-mean and channel matter most.",
        "Anonymous: static features have 100.0 % of the importance by impurity before any page and 50.0 % after 5 "
        "pages.",
    ]
    assert feature_order(rows) == ["week-day", "dwell-mean", "channel"]
    bare = [{**row, "permutation": None} for row in rows]
    assert feature_order(bare)[0] == "week-day"
    figure = importance_figure("i", "anonymous", rows, "impurity")
    assert "week-day 52.5; dwell-mean 50.0; channel 22.5" in figure
    assert importance_figure("i", "anonymous", bare, "permutation") == ""
    assert static_figure({"anonymous": [row for row in rows if row["step"] == 0]}) == ""
    points = line_of(static_figure({"anonymous": rows}), "blue")
    assert points[0, 1] < points[1, 1]  # downwards on the page


def test_what_is_said_lies_on_the_diagonal() -> None:
    cell = CELLS[0]
    figure = reliability_figure("r", "a", cell)
    points = line_of(figure, "blue")
    (left, bottom), (right, top) = line_of(figure.replace("currentColor", "var(--own, x)"), "own")[:2]
    along, up = (points[:, 0] - left) / (right - left), (points[:, 1] - bottom) / (top - bottom)
    assert np.allclose(along, up, atol=1e-3)
    assert along[1] / along[0] == pytest.approx(4, rel=1e-2)
    assert "calibrated 10.0 said 10.0 bought" in figure
    assert "raw 20.0 said 10.0 bought" in figure
    assert reliability_figure("r", "a", {**cell, "reliability": None, "reliability_calibrated": None}) == ""


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    folder = tmp_path_factory.mktemp("scorer")
    features = small_features(folder / "a <shop>", 400)
    options = TrainOptions(model="logistic-regression", samples=5)
    return train(features, folder / "scorer", options=options, settings=["anonymous"], steps=[0, 2])


def test_what_was_measured_and_what_an_example_gets(
    scorer: Scorer, tmp_path: Path, parse: Callable[[str], Any]
) -> None:
    text = write_scorer_page(tmp_path / "page.html", scorer.folder).read_text("utf-8")
    page = parse(text)
    assert "Scorer: a <shop>" in page.text
    assert "<shop>" not in text
    for cell in scorer.about["cells"]:
        found = cell["holdout"]
        for name in ("average_precision", "roc_auc", "f1"):
            assert f"{found[name]:.3f}" in page.text
        assert f"{found['brier']:.4f}" in page.text
        assert f"of all alike {found['brier_base_rate']:.4f}" in page.text
        assert f"{cell['threshold']:.3f}" in page.text
    example = json.loads((scorer.folder / "example.json").read_text("utf-8"))
    last = scorer.score(example, reasons=8)
    assert f"{last.line()}." in page.text.replace("\u00a0", " ")
    assert last.reasons
    for reason in last.reasons:
        assert reason.label in page.text
        assert f"× {odds_factor(reason.effect)}" in page.text
    # page by page, as a stream gives it
    early = scorer.score({**example, "events": example["events"][:2]})
    assert early.step == last.step == 2
    assert f"after 2 pages {100 * last.p:.1f}" in text
    assert "# Purchase intent" in page.text  # the card
    assert "not run with this scorer" in page.text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert "http" not in text.replace("http://www.w3.org", "").replace("http-equiv", "")
    figures = page.all("svg", class_="figure")
    assert len(figures) == 2 + 2 + 2


def test_a_folder_without_an_example_or_with_a_wrong_one(
    scorer: Scorer, tmp_path: Path, parse: Callable[[str], Any]
) -> None:
    folder = tmp_path / "scorer"
    shutil.copytree(scorer.folder, folder)
    (folder / "example.json").write_text('{"events": [{"t": "noon <b>"}]}', encoding="utf-8")
    (folder / "model_card.md").unlink()
    unmeasured = [{**cell, "holdout": None} for cell in scorer.about["cells"]]
    broken = Scorer({**scorer.about, "cells": unmeasured})
    object.__setattr__(broken, "folder", folder)
    page = scorer_page(broken)
    (section,) = [one for one in page.sections if one.name == "example"]
    assert section.notes[0].startswith("example.json cannot be scored: event 1 has the time 'noon <b>'")
    assert [one.name for one in page.sections] == ["verdict", "example"]
    (folder / "example.json").unlink()
    assert "example" not in [one.name for one in scorer_page(broken).sections]
    with pytest.raises(StorageError, match="holds no scorer"):
        write_scorer_page(tmp_path / "page.html", tmp_path)


def test_alarms_and_personal_data_are_said(scorer: Scorer) -> None:
    alarm = {"check": "shift", "where": "dwell", "alarm": True, "text": "looks ahead"}
    fine = {**alarm, "where": "pages", "alarm": False, "text": "fine"}
    about = {
        **{**scorer.about, "cells": [{**cell, "holdout": None} for cell in scorer.about["cells"]]},
        "not_trained": [{"setting": "identified", "step": 10, "reason": "3 purchases"}],
        "audit": {"checks": ["shift"], "findings": [alarm, fine]},
        "history": 1234,
    }
    described = Scorer(about)
    object.__setattr__(described, "folder", scorer.folder / "nowhere")
    page = scorer_page(described)
    assert page.sections[0].findings == ["Nothing was measured: the last part lacks one of the classes."]
    assert page.facts["leak audit"] == "2 findings, 1 alarms (shift)"
    assert page.notes == [
        "Not trained: identified, step 10: 3 purchases.",
        "Alarm of the leak audit, shift dwell: looks ahead.",
        "The folder holds the history of 1,234 visitors: personal data.",
    ]
