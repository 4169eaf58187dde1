"""Every declared classifier: fits what a table can hold, weighs classes, is the same when read back; splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.models import (
    FILE,
    MODELS,
    SPLITS,
    TRUSTED,
    FittedModel,
    SplitInput,
    _threads,
    fit_model,
    one_thread,
)
from diptych.core.errors import DataError, MismatchError, StorageError, UsageError


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


def test_every_model(tmp_path: Path) -> None:
    """It learns, takes gaps that training had not, weighs classes, and is the same when read or fitted again."""
    for name in MODELS.names():
        folder = tmp_path / name
        fitted = fit_model(name, *table(), seed=3)
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
        plain, unseen = fit_model(fitted.model, *table(), balanced=False, seed=3), table(400, seed=1)[0]
        assert (plain.weighting, fitted.weighting) == ("none", fitted.model.weighting)
        if fitted.model.weighting == "none":
            assert name == "k-nearest"
            assert fitted.scores(unseen).tolist() == plain.scores(unseen).tolist()
        else:
            assert fitted.scores(unseen).mean() > plain.scores(unseen).mean()
        with pytest.raises(MismatchError, match="5 columns and is given 4"):
            fitted.scores(X[:, :4])
        assert fitted.scores(X[:0]).shape == (0,)
        expected = fitted.scores(unseen).tolist()
        assert FittedModel.open(fitted.save(folder)).scores(unseen).tolist() == expected
        assert fit_model(fitted.model, *table(), seed=3).scores(unseen).tolist() == expected


def test_constants(tmp_path: Path) -> None:
    """Without features, or with too few of a class."""
    for name, scores in (("random-forest", {True: 0.5, False: 0.25}), ("svm", {True: 0.0, False: -0.25})):
        for balanced, score in scores.items():
            constant = fit_model(name, np.zeros((40, 0)), np.arange(40) % 4 == 0, balanced=balanced)
            assert constant.scores(np.zeros((3, 0))).tolist() == [score] * 3
            read = FittedModel.open(constant.save(tmp_path / f"{name}-{balanced}"))
            about = (read.constant, read.reason, read.weighting)
            assert about == (score, "no feature is known at this step", "none")
    X, _ = table()
    for bought, score in ((0, 0.0), (9, 0.5), (160, 1.0)):
        few = fit_model("neural-network", X, np.arange(len(X)) < bought)
        assert few.scores(X[:2]).tolist() == [score, score]
        assert few.reason.startswith(f"{bought} purchases among 160 training sessions")
    assert not fit_model("neural-network", X, np.arange(len(X)) < 10).reason


class Untrusted:
    """A type that no model of ours holds."""


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

    _threads.cache_clear()  # other tests have loaded libraries that no model computes with
    with one_thread():
        pass
    with threadpool_limits(limits=2):
        with one_thread(), one_thread():
            assert threads() == {1}
        assert threads() == {2}


def sessions(
    labels: list[int], persons: list[int] | None = None, starts: list[int] | None = None
) -> SplitInput:
    n = len(labels)
    who, start = (
        np.array(range(n) if given is None else given, dtype=np.int64) for given in (persons, starts)
    )
    return SplitInput(np.array(labels, dtype=bool), who, start, start + 1)


def drawn(n: int, seed: int) -> SplitInput:
    random = np.random.default_rng(seed)
    bought = (np.arange(n) < 12) | (random.random(n) < 0.2)
    bought[12:24] = False
    return sessions(bought.tolist(), random.integers(0, 2 * n, n).tolist())


@settings(max_examples=20)
@given(st.sampled_from(["random", "grouped"]), st.integers(60, 200), st.integers(2, 6), st.integers(0, 5))
def test_every_session_is_tested_once_by_all_others(name: str, n: int, folds: int, seed: int) -> None:
    table = drawn(n, seed)
    found = SPLITS.get(name).folds(table, folds, seed)
    assert len(found) == folds
    assert sorted(np.concatenate([fold.test for fold in found]).tolist()) == list(range(n))
    bought = []
    for fold in found:
        assert sorted([*fold.train.tolist(), *fold.test.tolist()]) == list(range(n))
        assert (np.diff(fold.train) > 0).all()
        assert (np.diff(fold.test) > 0).all()
        bought.append(int(table.labels[fold.test].sum()))
        if name == "grouped":
            assert not set(table.persons[fold.train].tolist()) & set(table.persons[fold.test].tolist())
    assert max(bought) - min(bought) <= (1 if name == "random" else table.labels.sum() / folds + 2)
    again = SPLITS.get(name).folds(table, folds, seed)
    assert [fold.test.tolist() for fold in again] == [fold.test.tolist() for fold in found]


def test_time_trains_on_what_had_ended_before_the_test_part() -> None:
    table = sessions([0, 1] * 6, starts=[0, 10, 20, 30, 40, 50, 60, 61, 80, 81, 99, 100])
    found = SPLITS.get("time").folds(table, 2, 0)  # 0, 20, 40, 60, 80, 101
    assert [table.start_us[fold.test].tolist() for fold in found] == [[60, 61], [80, 81, 99, 100]]
    table = sessions([0, 1] * 5, starts=[0, 10, 20, 30, 59, 60, 61, 70, 79, 80])
    table.end_us[4] = 65  # began before 60, had not ended then
    (fold,) = SPLITS.get("time").folds(table, 1, 0)  # trains on the first three quarters
    assert (fold.train.tolist(), fold.test.tolist()) == ([0, 1, 2, 3], [5, 6, 7, 8, 9])


def test_what_cannot_be_split() -> None:
    evenly = [
        (name, sessions(labels), folds, error, match)
        for name in ("random", "grouped")
        for labels, folds, error, match in (
            ([0] * 20, 5, DataError, "0 of 20 sessions have a purchase"),
            ([1] * 3 + [0] * 20, 5, DataError, "3 of 23 .* too few with or without for 5 folds"),
            ([1] * 20, 5, DataError, "20 of 20"),
            ([1, 0] * 10, 1, UsageError, "at least 2"),
        )
    ]
    for name, table, folds, error, match in (
        *evenly,
        ("time", sessions([]), 1, DataError, "0 of 0 sessions"),
        ("time", sessions([1, 0]), 0, UsageError, "at least 1"),
    ):
        with pytest.raises(error, match=match):
            SPLITS.get(name).folds(table, folds, 0)


def test_a_file_of_another_type_or_version_is_refused(tmp_path: Path) -> None:
    from skops.io import dump

    model = fit_model("logistic-regression", *table())
    folder = model.save(tmp_path / "model")
    dump([Untrusted()], folder / FILE)
    with pytest.raises(StorageError, match="Untrusted"):
        FittedModel.open(folder)
    (folder / FILE).write_bytes(b"\x80\x04N.")  # a pickle of None
    with pytest.raises(StorageError, match="not a saved model"):
        FittedModel.open(folder)
    model.scikit_learn = "1.4.2"
    with pytest.raises(MismatchError, match=r"1\.4\.2"):
        FittedModel.open(model.save(tmp_path / "older"))
