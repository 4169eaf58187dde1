"""The page of a scorer: what was measured, an example page by page, its reasons, odd folders."""

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

from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring.cell import Reason, Score
from diptych.commerce.purchase_intent.scoring.fitting import TrainOptions
from diptych.commerce.purchase_intent.scoring.training import train
from diptych.core.errors import StorageError
from diptych.report.intent_scorer import (
    odds_factor,
    path_figure,
    reasons_figure,
    scorer_page,
    write_scorer_page,
)


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


def test_nothing_measured_audits_and_histories_are_said(scorer: Scorer) -> None:
    about = {
        **scorer.about,
        "cells": [{**cell, "holdout": None} for cell in scorer.about["cells"]],
        "not_trained": [{"setting": "identified", "step": 10, "reason": "3 purchases"}],
        "audit": {
            "checks": ["shift"],
            "findings": [
                {"check": "shift", "where": "dwell", "alarm": True, "text": "looks ahead"},
                {"check": "shift", "where": "pages", "alarm": False, "text": "fine"},
            ],
        },
        "history": 1234,
    }
    described = Scorer(about)
    object.__setattr__(described, "folder", scorer.folder / "nowhere")
    page = scorer_page(described)
    assert [one.name for one in page.sections] == ["verdict"]
    assert page.sections[0].findings == ["Nothing was measured: the last part lacks one of the classes."]
    assert page.headlines == []
    assert page.facts["leak audit"] == "2 findings, 1 alarms (shift)"
    assert page.notes == [
        "Not trained: identified, step 10: 3 purchases.",
        "Alarm of the leak audit, shift dwell: looks ahead.",
        "The folder holds the history of 1,234 visitors: personal data.",
    ]


def test_reasons_reach_as_far_as_they_double_the_odds() -> None:
    reasons = [
        Reason(name, f"<{name}>", "1", "0", effect, "")
        for name, effect in (("a", np.log(4)), ("b", -np.log(2)))
    ]
    figure = reasons_figure(reasons)
    boxes = {}
    for path, colour in re.findall(r'<path d="(M [^"]*?z)\s*"[^>]*style="fill: var\(--(\w+)', figure):
        x = np.array(re.findall(r"(-?[\d.]+) -?[\d.]+", path), dtype=float)
        boxes[colour] = (x.min(), x.max())
    (left, right), (other_left, other_right) = boxes["blue"], boxes["orange"]
    assert right - left == pytest.approx(2 * (other_right - other_left), rel=1e-3)
    assert other_right == pytest.approx(left, abs=1e-3)
    assert "&lt;a&gt; +1.39; &lt;b&gt; −0.69" in figure
    assert [odds_factor(effect) for effect in (np.log(4), -np.log(2), 1e6)] == ["4", "0.5", "5.2e+21"]


def test_a_path_says_each_probability() -> None:
    figure = path_figure([Score(0.1, 0, "anonymous", 0.2, 0.3), Score(0.45, 3, "anonymous", 0.2, 0.3)])
    assert "after 0 pages 10.0, base rate 20.0, threshold 30.0; after 3 pages 45.0" in figure
