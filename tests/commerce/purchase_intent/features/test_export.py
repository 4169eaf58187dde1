from __future__ import annotations

import math
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from feature_tables import small_features

from diptych.commerce.purchase_intent.features import fit_features
from diptych.commerce.purchase_intent.features.export import export_steps
from diptych.commerce.purchase_intent.features.view import NO_PAGE
from diptych.core.errors import UsageError


def test_one_row_per_session_and_step_of_its_population(tmp_path: Path) -> None:
    table = small_features(tmp_path / "features", n=60)
    n = export_steps(table, tmp_path / "steps.parquet")
    rows = parquet.read_table(tmp_path / "steps.parquet").to_pylist()
    assert len(rows) == n == sum(len(table.population(a, b)) for a in table.settings for b in table.steps)
    assert [path.name for path in tmp_path.iterdir() if path.name != "features"] == ["steps.parquet"]
    row_of = {session_id: row for row, session_id in enumerate(table.session_ids.tolist())}
    for setting in table.settings:
        for step in table.steps:
            population = table.population(setting, step)
            view = table.at(population, step)
            fitted = fit_features(table.features("identified", "extended", max(1, step)), view)
            matrix = dict(zip(fitted.names, fitted.matrix(view).T.tolist(), strict=True))
            own = [row for row in rows if (row["setting"], row["step"]) == (setting, step)]
            assert [row_of[row["session_id"]] for row in own] == population.tolist()
            for place, row in enumerate(own):
                for name in ("dwell-mean", "dwell-deviation", "switch-probability", "orders"):
                    value = row[name.replace("-", "_")]
                    assert value == matrix[name][place] or (value is None and math.isnan(matrix[name][place]))
                code = table.view.page_types[row_of[row["session_id"]], step - 1] if step else NO_PAGE
                assert row["page_type"] == (None if step == 0 else table.view.vocabulary[code])
                if setting == "anonymous":
                    assert row["sessions"] is row["device_before_1"] is None


def test_whole_sessions_have_no_steps(tmp_path: Path) -> None:
    table = small_features(tmp_path / "features", n=20)
    table.about["kind"] = "whole"
    with pytest.raises(UsageError, match="without steps"):
        export_steps(table, tmp_path / "steps.parquet")
