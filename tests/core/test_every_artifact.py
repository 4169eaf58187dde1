"""Every artifact of the package against one contract: round trip, corrupt, another version, a foreign folder.

A new artifact is one entry of ``EXAMPLES``; the last test names those of ``ROOMS`` that have none.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import artifact_examples
import numpy as np
import pytest
from crash import crash_everywhere
from refusals import refused

from diptych.commerce.category_to_image.evaluation import EvaluationProtocol
from diptych.commerce.category_to_image.results import ModelResult
from diptych.commerce.category_to_image.run import CategoryRun
from diptych.commerce.logs.log import Log
from diptych.commerce.purchase_intent.auditing import Finding, LeakAudit
from diptych.commerce.purchase_intent.drift import Drift
from diptych.commerce.purchase_intent.evaluation import (
    PREDICTION,
    Evaluation,
    IntentProtocol,
    UnitResult,
)
from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.features.fitting import (
    FittedFeatures,
    MarkovRatio,
    OneHot,
    SessionsView,
    SmoothedRate,
)
from diptych.commerce.purchase_intent.models import Calibration, FittedModel
from diptych.commerce.purchase_intent.options import TrainOptions as IntentOptions
from diptych.commerce.purchase_intent.scoring.scorer import Scorer, StepModel
from diptych.commerce.purchase_intent.scoring.training import ScoredTable, Training
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.commerce.purchase_intent.statistics import Description
from diptych.core.artifact import Artifact, encode
from diptych.core.errors import StorageError, UsageError
from diptych.data.language.tagged import Tags
from diptych.data.stored import Columns
from diptych.evaluation import Result, evaluate
from diptych.evaluation.stress.conditions import Clean, Condition, StressJob
from diptych.evaluation.stress.result import StressResult
from diptych.metrics import Candidates, GroundTruth, Reranked

ROOMS = ("diptych.commerce", "diptych.data", "diptych.evaluation", "diptych.metrics")

ABOUT: dict[str, Any] = {"name": "ü", "n": 3, "rate": 0.1, "nested": {"rows": [1, None, "x"]}}
NUMBERS = np.arange(4.0)
PROTOCOL = IntentProtocol("f", {"models": ["svm"], "folds": 2}, "1", ABOUT)


def classifier() -> FittedModel:
    import sklearn

    version = str(sklearn.__version__)
    return FittedModel("svm", 3, True, 0, "none", 0.5, "no feature", ("w",), scikit_learn=version)


def feature_table() -> FeatureTable:
    pages, columns = np.zeros((4, 0), np.int64), {"device": np.array(["pc", "tv", "", "pc"], dtype=object)}
    view = SessionsView(columns, pages, pages, NUMBERS > 1, np.full(4, np.inf))
    about = {"steps": [0], "vocabulary": [], "columns": {"device": "text"}}
    return FeatureTable(about, view, *[np.arange(4)] * 4, NUMBERS)


def step_model() -> StepModel:
    chains = MarkovRatio(("home", "product"), ((0, 1, 2, 3),))
    chosen = ("pages", "page-sequence-score", "device", "device-rate", "x")
    learned = (None, chains, OneHot(("pc", "tv")), SmoothedRate({"pc": 0.3}, 0.2), OneHot(("a",)))
    features = FittedFeatures(chosen, learned)
    calibration = Calibration(1.0, 0.0, ((0.0, 1.0), (0.1, 0.9)))
    rest = (calibration, 0.5, None, 0.2, np.ones((2, 3)), {"a": "1"}, ABOUT)
    return StepModel("anonymous", 2, features, classifier(), *rest)


CANDIDATES = Candidates(np.array([[1, 0], [0, 1]]), np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32))


def result() -> Result:
    return evaluate(np.eye(2), None, GroundTruth.from_caption_image([0, 1], 2), about=ABOUT)


EXAMPLES: dict[type[Artifact], Callable[[], Artifact]] = {
    ModelResult: lambda: ModelResult(
        result(), NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS > 1, NUMBERS, None, ABOUT
    ),
    CategoryRun: lambda: CategoryRun(ABOUT, [["a"], ["a", "b"]], [[["a"], "7"]]),
    Columns: lambda: Columns(3, 15, 2, ["train", "test"], ["a note"]),
    Drift: lambda: Drift(ABOUT, [{"what": "device", "change": "large"}], [{"step": 2, "measures": None}]),
    Description: lambda: Description(ABOUT, {"hours": [{"hour": 1}]}),
    Clean: lambda: Clean({"t2i": {"R@1": NUMBERS}}, {"t2i": np.arange(4)}, {"t2i": "0a"}),
    Condition: lambda: Condition(
        *("blur", 0, "k", "c", ABOUT, {"short": 1}, NUMBERS > 1, NUMBERS > 2, {"R@1": NUMBERS}, NUMBERS),
        *(NUMBERS, np.arange(1), np.ones((1, 2), int), {"c0": "a b"}),
    ),
    FeatureTable: feature_table,
    FittedModel: classifier,
    EvaluationProtocol: lambda: EvaluationProtocol(
        "a", "", "c", "d", "e", "label", "name", False, {"epochs": 2}, 0
    ),
    UnitResult: lambda: UnitResult(np.zeros(3, PREDICTION), np.zeros((2, 2, 4)), {"w": 1}),
    LeakAudit: lambda: LeakAudit(ABOUT, ("drift",), (Finding("text", "a", value=0.5, check="drift"),)),
    Log: lambda: Log(ABOUT),
    IntentProtocol: lambda: PROTOCOL,
    Reranked: lambda: Reranked(CANDIDATES, CANDIDATES, True, ABOUT),
    Result: result,
    Evaluation: lambda: Evaluation(PROTOCOL, 9, [ABOUT], [], []),
    ScoredTable: lambda: ScoredTable(ABOUT),
    Scorer: lambda: Scorer(ABOUT),
    SessionTables: lambda: SessionTables(ABOUT),
    StressJob: StressJob,
    StressResult: lambda: StressResult(
        "k", "a model", ABOUT, "a method", ["R@1"], {"t2i": {"R@1": 0.5}}, (), {"blur": "why"}
    ),
    StepModel: step_model,
    Training: lambda: Training("f", ["anonymous-0"], IntentOptions(), "a"),
    Tags: lambda: Tags(["NN", "JJ"], np.zeros(3, np.uint8), np.array([0, 1, 3])),
}

EXAMPLES |= {type(make()): make for make in artifact_examples.EXAMPLES}
OWN_FILES = [
    kind
    for kind in EXAMPLES
    if kind.PARTS or any(name in vars(kind) for name in ("save", "write_files", "write_header"))
]
"""Those that write more than header and arrays, for which ``test_artifact`` ends a process at every call."""


def test_saved_opened_and_refused(tmp_path: Path) -> None:
    for kind in EXAMPLES:
        round_trip(kind, tmp_path / kind.__name__)


def round_trip(kind: type[Artifact], tmp_path: Path) -> None:
    """Save and open; what is changed, of another version or no such folder is refused; other files stay."""
    first: dict[str, np.ndarray] = {}
    second: dict[str, np.ndarray] = {}
    saved = EXAMPLES[kind]().save(tmp_path / "folder")
    made, opened = EXAMPLES[kind](), kind.open(saved)
    assert encode(made, first, leave_out=kind.FILES) == encode(opened, second, leave_out=kind.FILES)
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.dtype == second[name].dtype
        np.testing.assert_array_equal(array, second[name])
    marker = saved / kind.marker()
    header = json.loads(marker.read_text(encoding="utf-8"))
    marker.write_text(json.dumps({**header, "format": kind.FORMAT + 1}), encoding="utf-8")
    refused(StorageError, f"of format {kind.FORMAT + 1}, this version reads {kind.FORMAT}", kind.open, saved)
    marker.write_text(json.dumps({**header, "fingerprint": "0"}), encoding="utf-8")
    refused(StorageError, "is corrupt", kind.open, saved)
    marker.write_bytes(marker.read_bytes()[:-9])
    refused(StorageError, "is not JSON|cannot be read", kind.open, saved)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises((StorageError, UsageError), match=rf"holds no .*\(no {kind.marker()}\)"):
        kind.open(other)
    (other / "letter.txt").write_text("mine")
    if kind.PARTS:  # which are added to a folder, one after the other
        made.save(other)
    else:
        refused(UsageError, "holds other things", made.save, other)
    assert (other / "letter.txt").read_text() == "mine"


def test_what_is_printed_carries_its_protocol_and_says_what_it_holds() -> None:
    for found in (artifact_examples.cocos(), artifact_examples.audit(), result()):
        assert found.protocol.line() in str(found)
        assert escape(found.protocol.line()) in found._repr_html_()
    assert artifact_examples.measures().lines() == ["dataset made"]
    log = Log({"name": "shop", "events": 5, "first": "1 May", "last": "2 May", "zone": "UTC", "rules": []})
    assert repr(log) == "<Log: shop: 5 events, 1 May to 2 May (UTC)>"
    assert repr(artifact_examples.cocos()) == "<CocosReport: Contributing samples (1 rows)>"


@pytest.mark.parametrize("kind", OWN_FILES, ids=lambda kind: kind.KIND)
def test_a_crash_at_any_call_leaves_a_whole_one(kind: type[Artifact], tmp_path: Path) -> None:
    """At every 60th call that changes the disk; at each with ``CRASH_EVERY=1``; ``-rP`` prints how many."""

    def save(place: Path) -> None:
        EXAMPLES[kind]().save(place / "folder")

    def check(place: Path) -> None:
        if not kind.PARTS or kind.is_at(place / "folder"):  # parts are written in place, their marker last
            kind.open(place / "folder")
        save(place)
        assert [path.name for path in place.iterdir()] == ["folder"]

    print(kind.KIND, crash_everywhere(save, save, check, tmp_path, int(os.environ.get("CRASH_EVERY", "60"))))


def subclasses(kind: type[Artifact]) -> set[type[Artifact]]:
    return {kind}.union(*(subclasses(one) for one in kind.__subclasses__()))


def test_every_artifact_has_an_example_and_a_kind_of_its_own() -> None:
    for room in ROOMS:
        package = importlib.import_module(room)
        for module in pkgutil.walk_packages(package.__path__, f"{room}."):
            importlib.import_module(module.name)
    known = {one for one in subclasses(Artifact) if one.KIND and one.__module__.startswith(ROOMS)}
    assert known == {one for one in EXAMPLES if one.__module__.startswith(ROOMS)}
    kinds = [one.KIND for one in known]
    assert sorted(kinds) == sorted(set(kinds))
