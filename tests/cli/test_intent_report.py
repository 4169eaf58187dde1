"""``diptych intent report``: it knows what a folder is, and says what it cannot hide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Command
from events import write_log
from intent_rows import cells_of

from diptych.commerce.purchase_intent.evaluation.plan import Protocol
from diptych.commerce.purchase_intent.evaluation.result import RESULTS, Results


def evaluated(folder: Path) -> Path:
    """The folder of an evaluation of one cell."""
    (cell,) = cells_of(("anonymous",), ("extended",), (5,), {"random-forest": "RF"})
    about = {
        "features": {
            "name": "shop",
            "line": "a line",
            "kind": "steps",
            "compat": "none",
            "fingerprint": "f00",
        },
        "diptych": "0",
        "split": {"name": "random", "description": "sessions at random", "folds": []},
        "models": {"random-forest": {"label": "RF", "description": "trees"}},
        "notes": [],
    }
    names = (("random-forest",), ("anonymous",), ("extended",), (5,))
    protocol = Protocol("f00", *names, "random", 2, True, True, False, 0, "1", about=about)
    none = np.zeros(0, dtype=np.int64)
    how = {"samples": 0, "confidence": 0.95, "seed": 0}
    folder.mkdir()
    protocol.save(folder / Protocol.marker())
    Results(how, [cell], [], [], [], [], none, none).save(folder / RESULTS, of=protocol.key)
    return folder


def test_an_evaluation_is_known_by_its_marker(diptych: Command, tmp_path: Path) -> None:
    folder = evaluated(tmp_path / "evaluation")
    done = diptych("intent", "report", folder)
    assert done.code == 0, done.err
    assert f"next: open {folder / 'report.html'}" in done.out
    assert "MB, no other files needed" in done.out
    page = (folder / "report.html").read_text("utf-8")
    assert "<h1>Predicting purchases: shop</h1>" in page


@pytest.mark.parametrize("option", [("--hide-rates",), ("--least-count", "9"), ("--log", "log")])
def test_an_evaluation_has_nothing_to_hide(diptych: Command, tmp_path: Path, option: tuple[str, ...]) -> None:
    done = diptych("intent", "report", evaluated(tmp_path / "evaluation"), *option)
    assert done.code == 2
    assert "has intent_evaluation.json" in done.err
    assert not (tmp_path / "evaluation" / "report.html").exists()


def test_a_description_with_its_log(diptych: Command, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="describing needs the extra commerce")
    from diptych.commerce.purchase_intent.sessions import sessionise
    from diptych.commerce.purchase_intent.statistics import describe

    events = [
        {"t": 90_000 * session + 60 * page, "client_id": f"c{session % 7}", "device": "pc" if session % 2 else "tv",
         "action": "page", "is_purchase": page == 3 and session % 3 == 0}
        for session in range(40)
        for page in range(4)
    ]  # fmt: skip
    log = write_log(tmp_path / "log", events)
    folder = tmp_path / "description"
    describe(sessionise(log), names=["overview", "channels"]).save(folder)
    done = diptych("intent", "report", folder, "--log", log.folder)
    assert done.code == 0, done.err
    page = (folder / "report.html").read_text("utf-8")
    assert '<span class="value">40</span> <span class="note">of 160 events</span>' in page
    assert "35.00 %" in page
    assert "160 of 160 rows are events of the log." in page
    hidden = tmp_path / "hidden.html"
    assert diptych("intent", "report", folder, "--hide-rates", "--out", hidden).code == 0
    assert "35.00 %" not in hidden.read_text("utf-8")


def test_other_folders_are_refused(diptych: Command, tmp_path: Path) -> None:
    done = diptych("intent", "report", tmp_path)
    assert done.code == 1
    assert (
        "is no description, evaluation or scorer (description.json, intent_evaluation.json, scorer.json)"
        in done.err
    )
    assert "diptych intent describe LOG" in done.err
    assert diptych("intent", "report", tmp_path, "--least-count", "0").code == 2
