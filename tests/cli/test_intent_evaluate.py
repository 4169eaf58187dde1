"""``diptych intent evaluate``: a small grid, gone on with, a scorer measured, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command
from feature_tables import small_features

from diptych.commerce.purchase_intent.evaluation import Evaluation

GRID = ("--model", "logistic-regression", "--setting", "anonymous", "--step", 0, "--step", 5,
        "--folds", 2, "--samples", 20)  # fmt: skip


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_features(tmp_path_factory.mktemp("features") / "small", n=360).folder


def test_a_small_grid(diptych: Command, features: Path, tmp_path: Path) -> None:
    out = tmp_path / "evaluation"
    done = diptych("intent", "evaluate", features, "--out", out, *GRID)
    assert done.code == 0, done.err
    found = Evaluation.open(out)
    cell = found.cell("anonymous", "extended", 5, "logistic-regression")
    assert cell is not None
    assert f"{cell['f1']:.3f} / {cell['average_precision']:.3f}" in done.out
    assert f"{cell['always_buy_f1']:.3f}" in done.out
    first = next(one for one in found.gains if one["measure"] == "average_precision")
    assert f"step 0, logistic-regression: {first['difference']:+.3f} [{first['low']:+.3f}" in done.out
    assert "foremost features, anonymous, extended, step 5, logistic-regression" in done.out
    assert found.line() in done.out
    assert "one visitor may be in training and test" in done.out
    assert f"next: open {out / 'report.html'}" in done.out
    assert "average precision" in (out / "report.html").read_text(encoding="utf-8")
    other = diptych("intent", "evaluate", features, "--out", out, *GRID, "--no-balance")
    assert other.code == 1
    assert "balanced True, asked for False" in other.err


def test_a_scorer_on_other_sessions(diptych: Command, tmp_path: Path) -> None:
    scorer, earlier = tmp_path / "scorer", small_features(tmp_path / "earlier", n=600)
    later = small_features(tmp_path / "later", n=120, seed=7)
    trained = diptych("intent", "train", earlier.folder, "--out", scorer, "--model", "logistic-regression",
                      "--setting", "anonymous", "--step", 5)  # fmt: skip
    assert trained.code == 0, trained.err
    done = diptych(
        "intent", "evaluate", later.folder, "--scorer", scorer, "--out", tmp_path / "out", "--samples", 0
    )
    assert done.code == 0, done.err
    (cell,) = Evaluation.open(tmp_path / "out").cells
    assert (cell["setting"], cell["set"], cell["step"]) == ("anonymous", "extended", 5)
    assert cell["sessions"] == len(later.population("anonymous", 5))
    assert cell["average_precision"] > 1.5 * cell["base_rate"]
    assert cell["best_f1"] is not None
    assert "nothing fitted" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--split", "tiem"), 2, "did you mean 'time'"),
        (("--model", "forest"), 2, "random-forest"),
        (("--preset", "quick"), 2, "fast, paper"),
        (("--set", "all"), 2, "known: baseline, extended"),
        (("--step", 12), 2, "unknown step"),
        (("--folds", 100), 1, "cannot be in each of 100 folds"),
        (("--scorer", "scorer", "--model", "svm"), 2, "leave out --model"),
    ],
)
def test_what_is_refused(
    diptych: Command, features: Path, tmp_path: Path, arguments: tuple[object, ...], code: int, message: str
) -> None:
    done = diptych("intent", "evaluate", features, "--out", tmp_path / "out", *arguments)
    assert (done.code, message in done.err) == (code, True), done.err
    assert not (tmp_path / "out").exists()


def test_no_features(diptych: Command, tmp_path: Path) -> None:
    done = diptych("intent", "evaluate", tmp_path, "--out", tmp_path / "out")
    assert done.code == 1
    assert "diptych intent features" in done.err
