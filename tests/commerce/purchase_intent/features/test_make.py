"""From events to features, the whole way, against plain Python; on both engines; as an export."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from events import canonical, write_log
from feature_oracle import Session, known_at, log_ratio, sessions_of
from feature_tables import small_features
from intent_logs import random_events

from diptych.commerce.purchase_intent.features import (
    FEATURES,
    FeatureOptions,
    FeatureTable,
    fit_features,
    make_features,
    open_features,
)
from diptych.commerce.purchase_intent.features.make import export_steps
from diptych.commerce.purchase_intent.sessions import SessionTables, sessionise
from diptych.commerce.purchase_intent.shown import DisclosureControl, disclosing
from diptych.core.errors import DataError

ALSO = ("history-days", "hour-cyclic", "previous-device", "previous-device-rate")


def tables_of(folder: Path, events: list[dict[str, Any]], buckets: int = 1) -> SessionTables:
    return sessionise(write_log(folder / "log", events, buckets))


SEQUENCES = {"page-sequence-score": "page_types", "device-sequence-score": "device_sequence"}
WORDS = {"channel": "channel", "device": "device", "previous-device": "previous_device"}
Made = tuple[FeatureTable, list[Session]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder, events = tmp_path_factory.mktemp("made"), random_events(1)
    tables, options = tables_of(folder, events, buckets=3), FeatureOptions(also=ALSO)
    table = make_features(tables, folder=folder / "features", options=options)
    return table, sessions_of(canonical(events))


def test_every_feature_at_every_step(made: Made) -> None:
    table, sessions = made
    of_id = {session.session_id: session for session in sessions}
    assert table.steps == tuple(range(11))
    for step in table.steps:
        for setting in table.settings:
            rows = table.population(setting, step)
            view = table.at(rows, step)
            fitted = fit_features(table.features(setting, "extended", step), view)
            matrix = dict(zip(fitted.names, fitted.matrix(view).T, strict=True))
            known = [known_at(of_id[int(table.session_ids[row])], step, sessions) for row in rows]
            labels = table.labels[rows].tolist()
            checked = set()
            for name in set(matrix) & set(known[0]):
                checked.add(name)
                expected = [one[name] for one in known]
                np.testing.assert_allclose(matrix[name], expected, rtol=1e-9, err_msg=name)
            for name, key in SEQUENCES.items():
                if name in matrix:
                    checked.add(name)
                    training = [(one[key], label) for one, label in zip(known, labels, strict=True)]
                    wanted = [log_ratio(one[key], training) for one in known]
                    np.testing.assert_allclose(matrix[name], wanted, atol=1e-9, err_msg=name)
            for name, key in WORDS.items():
                for column in (one for one in matrix if one.startswith(f"{name}=")):
                    checked.add(column)
                    assert matrix[column].tolist() == [one[key] == column.split("=")[1] for one in known]
            for name, key in (("device-rate", "device"), ("previous-device-rate", "previous_device")):
                if name in matrix:
                    checked.add(name)
                    np.testing.assert_allclose(matrix[name], rates([one[key] for one in known], labels))
            week_days = [matrix[name] for name in matrix if name.startswith("week-day=")]
            assert np.argmax(week_days, axis=0).tolist() == [one["week_day"] for one in known]
            checked |= {name for name in matrix if name.startswith(("week-day=", "hour-cyclic:"))}
            assert checked == set(matrix)


def rates(texts: list[str], labels: list[bool]) -> list[float]:
    there = [label for text, label in zip(texts, labels, strict=True) if text]
    overall = sum(there) / max(1, len(there))

    def rate(text: str) -> float:
        own = [label for other, label in zip(texts, labels, strict=True) if other == text]
        return (sum(own) + 20 * overall) / (len(own) + 20) if text else np.nan

    return [rate(text) for text in texts]


def test_populations(made: Made) -> None:
    table, sessions = made
    long = [one for one in sessions if len(one.pages) >= 12]
    assert table.session_ids.tolist() == [one.session_id for one in long]
    assert table.labels.tolist() == [one.bought is not None for one in long]
    assert table.start_us.tolist() == [one.start for one in long]
    assert table.end_us.tolist() == [one.end for one in long]
    sizes = len(sessions), len(sessions) - len(long), len(long)
    assert tuple(table.about["counts"].values()) == sizes
    persons = [one.visitor or one.events[0]["client_id"] for one in long]
    groups = dict(zip(persons, table.persons.tolist(), strict=True))
    assert table.persons.tolist() == [groups[one] for one in persons]
    assert len(set(groups.values())) == len(groups)
    with disclosing(DisclosureControl(least=1)):
        (shown,) = table.tables()
    for setting, step in product(table.settings, table.steps):
        wanted, early = [], 0
        for one in long:
            login, bought = one.pages_before_visitor, one.pages_before_purchase
            identified = login is not None and (login == 0 or login < step)
            if identified == (setting == "identified"):
                if bought is not None and bought < step + 2:
                    early += 1
                else:
                    wanted.append(one)
        rows = table.population(setting, step)
        assert table.session_ids[rows].tolist() == [one.session_id for one in wanted]
        n, rate, left_out = shown.rows[step][1 + 3 * table.settings.index(setting) :][:3]
        assert (n.value, left_out.value) == (len(wanted), early)
        bought = [one.bought is not None for one in wanted]
        assert rate.text == (f"{100 * sum(bought) / len(bought):.1f}" if bought else "–")


def test_page_types_by_count_then_name_and_only_a_whole_table_replaces_another(tmp_path: Path) -> None:
    names = ["b", "a", "c", "c", "a", "b", None, "rare", "x", "x", "behind the last step", "behind"]
    events: list[Any] = [{"t": t, "page_type": name} for t, name in enumerate(names)]
    events += [{"t": t, "page_type": "of a short session", "client_id": "d"} for t in range(11)]
    tables = tables_of(tmp_path, events)
    table = make_features(tables, folder=tmp_path / "features")
    assert table.about["vocabulary"] == ["a", "b", "c", "x", "rare", "unknown"]
    few = make_features(tables, folder=tmp_path / "few", options=FeatureOptions(types=2))
    assert few.about["vocabulary"] == ["a", "b"]
    assert few.view.page_types[0].tolist() == [one if one in ("a", "b") else "(other)" for one in names[:10]]
    fitted = fit_features(few.features("anonymous", "baseline", 10), few.at(np.array([0]), 10))
    assert fitted.learned[2].states == ("(other)", "a", "b")  # type: ignore[union-attr]
    pages = tables.files("pages")[0]
    pages.write_bytes(pages.read_bytes()[:50])
    with pytest.raises(DataError, match="cannot be read"):
        make_features(tables, folder=tmp_path / "features")
    assert open_features(tmp_path / "features").fingerprint == table.fingerprint
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_one_row_per_session_and_step_of_its_population(tmp_path: Path) -> None:
    table = small_features(tmp_path / "features", n=60)
    n = export_steps(table, tmp_path / "steps.parquet")
    rows = parquet.read_table(tmp_path / "steps.parquet").to_pylist()
    assert len(rows) == n == sum(len(table.population(a, b)) for a in table.settings for b in table.steps)
    assert [path.name for path in tmp_path.iterdir() if path.name != "features"] == ["steps.parquet"]
    for setting, step in product(table.settings, table.steps):
        population = table.population(setting, step)
        view = table.at(population, step)
        own = [row for row in rows if (row["setting"], row["step"]) == (setting, step)]
        assert [row["session_id"] for row in own] == table.session_ids[population].tolist()
        for name in ("dwell-mean", "dwell-deviation", "switch-probability", "orders"):
            values = np.array([row[name.replace("-", "_")] for row in own], dtype=np.float64)
            np.testing.assert_array_equal(values, FEATURES.get(name).values(view))
        names = view.page_types[:, -1].tolist() if step else [None] * len(own)
        assert [row["page_type"] for row in own] == names
        if setting == "anonymous":
            assert {row["sessions"] for row in own} == {row["device_before_1"] for row in own} == {None}
