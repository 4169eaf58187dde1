"""Every declared classifier: fits what a table of features can hold, weighs classes, and is the same when read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.commerce.purchase_intent.evaluation.plan import preset_named
from diptych.commerce.purchase_intent.models import (
    FILE,
    MODELS,
    TRUSTED,
    FittedModel,
    _controller,
    fit_model,
    one_thread,
)
from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError, UnknownNameError


def table(n: int = 160, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One column that tells, one of noise, one constant, one without any value, one with gaps."""
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.25
    X = random.normal(size=(n, 5))
    X[:, 0] += 2 * y
    X[:, 2] = 3.0
    X[:, 3] = np.nan
    X[random.random(n) < 0.3, 4] = np.nan
    return X, y


@pytest.fixture(scope="module", params=MODELS.names())
def fitted(request: pytest.FixtureRequest) -> FittedModel:
    return fit_model(request.param, *table(), seed=3)


def test_it_learns_and_takes_gaps_that_training_had_not(fitted: FittedModel) -> None:
    X, y = table(400, seed=1)
    scores = fitted.scores(X)
    assert not fitted.reason
    apart = np.sign(scores[y][:, None] - scores[~y])
    assert apart.mean() > 0.6
    X[0] = np.nan
    X[1, 2:4] = 7.0
    assert np.isfinite(fitted.scores(X[:2])).all()
    if fitted.model.output == "probability":
        assert ((scores >= 0) & (scores <= 1)).all()


def test_it_is_the_same_when_saved_and_when_fitted_again(fitted: FittedModel, tmp_path: Path) -> None:
    X, _ = table(50, seed=2)
    expected = fitted.scores(X)
    read = FittedModel.open(fitted.save(tmp_path / "model"))
    assert read.scores(X).tolist() == expected.tolist()
    assert (read.model, read.weighting, read.balanced, read.seed) == (
        fitted.model,
        fitted.weighting,
        fitted.balanced,
        fitted.seed,
    )
    assert fit_model(fitted.model, *table(), seed=3).scores(X).tolist() == expected.tolist()


def test_weights_reach_every_model_that_has_them(fitted: FittedModel) -> None:
    X, y = table()
    plain = fit_model(fitted.model, X, y, balanced=False, seed=3)
    assert plain.weighting == "none"
    assert fitted.weighting == fitted.model.weighting
    if fitted.model.weighting == "none":
        assert fitted.model.name == "k-nearest"
        assert fitted.scores(X).tolist() == plain.scores(X).tolist()
    else:
        unseen = table(400, seed=1)[0]
        assert fitted.scores(unseen).mean() > plain.scores(unseen).mean()


def test_sample_weights_are_those_of_scikit_learn() -> None:
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.utils.class_weight import compute_sample_weight

    X, y = table()
    X = X[:, [0, 1]]
    theirs = GradientBoostingClassifier(random_state=0).fit(X, y, compute_sample_weight("balanced", y))
    ours = fit_model("gradient-boosting", X, y).scores(X)
    assert ours == pytest.approx(theirs.predict_proba(X)[:, 1])


def test_names_are_what_they_say() -> None:
    kinds: dict[str, Any] = {
        name: MODELS.get(name).build("balanced", 0).steps[-1][1] for name in MODELS.names()
    }
    assert type(kinds["gradient-boosting"]).__name__ == "GradientBoostingClassifier"
    assert type(kinds["hist-gradient-boosting"]).__name__ == "HistGradientBoostingClassifier"
    assert type(kinds["svm"]).__name__ == "SVC"
    assert kinds["random-forest"].get_params()["n_estimators"] == 100
    assert preset_named("paper").models == [
        "random-forest",
        "logistic-regression",
        "k-nearest",
        "svm",
        "neural-network",
        "gradient-boosting",
    ]
    assert preset_named("fast").models == [
        "logistic-regression",
        "hist-gradient-boosting",
        "random-forest-small",
    ]
    with pytest.raises(UnknownNameError, match="random-forest"):
        fit_model("random-forst", *table())


@pytest.mark.parametrize(
    ("name", "balanced", "score"),
    [("random-forest", True, 0.5), ("random-forest", False, 0.25), ("svm", True, 0.0), ("svm", False, -0.25)],
)
def test_without_features_it_is_a_constant(name: str, balanced: bool, score: float, tmp_path: Path) -> None:
    y = np.arange(40) % 4 == 0
    constant = fit_model(name, np.zeros((40, 0)), y, balanced=balanced)
    assert constant.scores(np.zeros((3, 0))).tolist() == [score] * 3
    assert "no feature" in constant.reason
    assert constant.weighting == "none"
    read = FittedModel.open(constant.save(tmp_path / "model"))
    assert not (tmp_path / "model" / FILE).exists()
    assert (read.constant, read.reason) == (constant.constant, constant.reason)


@pytest.mark.parametrize(("bought", "score"), [(0, 0.0), (9, 0.5), (160, 1.0)])
def test_with_too_few_of_a_class_it_is_a_constant(bought: int, score: float) -> None:
    X, _ = table()
    few = fit_model("neural-network", X, np.arange(len(X)) < bought)
    assert few.scores(X[:2]).tolist() == [score, score]
    assert few.reason.startswith(f"{bought} purchases among 160 training sessions")
    assert not fit_model("neural-network", X, np.arange(len(X)) < 10).reason


def test_what_cannot_be_fitted_or_scored() -> None:
    X, y = table()
    X[5, 1] = np.inf
    with pytest.raises(NumericalError, match="column 1"):
        fit_model("random-forest", X, y)
    X[5, 1] = 0
    with pytest.raises(DataError, match="160 sessions have labels of shape"):
        fit_model("random-forest", X, y[:-1])
    with pytest.raises(DataError, match="a matrix"):
        fit_model("random-forest", X[0], y)
    with pytest.raises(DataError, match="no session"):
        fit_model("random-forest", X[:0], y[:0])
    model = fit_model("logistic-regression", X, y)
    with pytest.raises(MismatchError, match="5 columns and is given 4"):
        model.scores(X[:, :4])
    assert model.scores(X[:0]).shape == (0,)


def test_what_a_fit_complains_of_is_kept() -> None:
    X, y = table()
    assert any("n_components" in said for said in fit_model("nystroem-svm", X, y).warnings)


class Stranger:
    """A type that no model of ours holds."""


def test_a_file_that_asks_for_another_type_is_refused(tmp_path: Path) -> None:
    from skops.io import dump

    fit_model("logistic-regression", *table()).save(tmp_path / "model")
    dump([Stranger()], tmp_path / "model" / FILE)
    with pytest.raises(StorageError, match="Stranger"):
        FittedModel.open(tmp_path / "model")


def test_damaged_models_are_refused(tmp_path: Path) -> None:
    folder = fit_model("logistic-regression", *table()).save(tmp_path / "model")
    (folder / FILE).write_bytes(b"\x80\x04N.")  # a pickle of None
    with pytest.raises(StorageError, match="not a saved model"):
        FittedModel.open(folder)
    older = fit_model("logistic-regression", *table())
    older.scikit_learn = "1.4.2"
    with pytest.raises(MismatchError, match=r"1\.4\.2"):
        FittedModel.open(older.save(tmp_path / "older"))


def test_the_list_of_trusted_types_has_none_too_many(tmp_path: Path) -> None:
    from skops.io import get_untrusted_types

    needed: set[str] = set()
    for name in ("random-forest-small", "hist-gradient-boosting", "k-nearest", "neural-network"):
        fit_model(name, *table()).save(tmp_path / name)
        needed |= set(get_untrusted_types(file=tmp_path / name / FILE))
    assert needed == set(TRUSTED)


def test_one_thread_inside_and_as_before_outside() -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info()}

    _controller.cache_clear()  # other tests have loaded libraries that no model computes with
    with one_thread():
        pass
    with threadpool_limits(limits=2):
        with one_thread(), one_thread():
            assert threads() == {1}
        assert threads() == {2}
