"""Drift: what is planted is found, what is not is left, a scorer is measured as everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from feature_tables import small_features

from diptych.commerce.purchase_intent.drift import Drift, _compared, drift
from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring.training import score_table
from diptych.core.errors import MismatchError


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("later") / "later", n=1500, seed=5)


def test_what_changed_is_found_and_nothing_else(features: FeatureTable, later: FeatureTable) -> None:
    assert [row["change"] for row in drift(features, later).rows] == ["–"] * len(drift(features, later).rows)
    channel = np.where(np.arange(len(later)) % 2, "radio", later.view.columns["channel"]).astype(object)
    orders = later.view.columns["orders"] + 2
    columns = {**later.view.columns, "channel": channel, "orders": orders}
    found = drift(features, replace(later, view=replace(later.view, columns=columns)), step=5)
    changed = {(row["setting"], row["what"]) for row in found.rows if row["change"] == "large"}
    assert changed == {("anonymous", "channel"), ("identified", "channel"), ("identified", "orders")}
    assert found.is_large
    assert found.lines()[0].startswith(f"3 of {len(found.rows)} changed: anonymous channel")
    rare = replace(later, view=replace(later.view, labels=later.labels & (np.arange(len(later)) % 2 == 0)))
    assert {row["what"] for row in drift(features, rare).rows if row["p"] < 0.05} >= {"purchase"}


def test_a_scorer_is_measured_as_everywhere(
    features: FeatureTable, later: FeatureTable, scorer: Scorer, tmp_path: Path
) -> None:
    found = drift(features, later, scorer)
    expected = score_table(scorer, later).about["cells"]
    assert [cell["measures"] for cell in found.cells] == [cell["measures"] for cell in expected]
    opened = Drift.open(found.save(tmp_path / "drift"))
    assert (len(opened.tables()), opened.lines()) == (3, found.lines())
    assert len(opened.charts()) == 4  # reliability at the first and the last step


def test_the_index_by_hand() -> None:
    old, new = np.repeat([0.0, 1.0], [60, 40])[:, None], np.repeat([0.0, np.nan], [30, 70])[:, None]
    shares = (np.array([[0, 60, 40], [70, 30, 0]]) + 0.5) / 101.5
    assert _compared(old, new)["psi"] == pytest.approx(
        np.sum(np.diff(shares, axis=0) * np.diff(np.log(shares), axis=0))
    )
    assert _compared(old, old) == {"psi": 0.0, "p": 1.0}
    random = np.random.default_rng(0)
    before, after = random.normal(size=(2000, 1)), random.normal(1.0, size=(2000, 1))
    assert _compared(before, random.normal(size=(2000, 1)))["psi"] < 0.03
    # Of normal curves it is the squared distance.
    assert _compared(before, after)["psi"] == pytest.approx(1.0, abs=0.3)


def test_tables_that_were_made_otherwise_are_refused(features: FeatureTable, later: FeatureTable) -> None:
    other = replace(later, about={**later.about, "kind": "whole"})
    with pytest.raises(MismatchError, match="the old features have kind"):
        drift(features, other)
