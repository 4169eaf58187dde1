"""Shift test: what is known of a session at a step must not change when what comes after it is another.

For a session and a step there is a world of its own: everything that happened up to the page of the step, to the
session and to its visitor on all clients; and after that nothing but another end of the session, of other page
types, times, device and visitor. What decides whether one may predict on the session stays: it goes on for long
enough, and something is bought or not, as it was, behind the last page. Clients, visitors and events have names of
their own in every world, so that all worlds together are one log, which goes through the same sessions and the same
features as the log itself. A value that differs was looked up in the future.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from diptych.commerce.logs.database import literal, literals
from diptych.commerce.logs.log import EVENTS, Log
from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.engine import open_engine
from diptych.commerce.purchase_intent.features.fitting import fit_features
from diptych.commerce.purchase_intent.features.make import make_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.options import FeatureOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import BUFFER, SessionTables, sessionise
from diptych.core.draws import draw_uniform
from diptych.core.errors import MismatchError

_ALL_TYPES = 1_000_000
_TYPES = ["home", "product", "basket", "checkout", "confirmation", "something new"]
_NEW_EVENTS = 1_000  # event ids that are free for the other end of a session, at least


class ShiftChange(NamedTuple):
    """A value that depends on what comes after the step."""

    session_id: int
    setting: str  # that it is in at the step
    step: int  # pages that are open
    column: str  # (setting) where the session is in another one, (population) where it is in none
    before: float = np.nan  # the value, NaN where there is none
    after: float = np.nan  # that in the altered log


class ShiftFinding(NamedTuple):
    """The number of sessions at steps that were compared, and every value that differs."""

    n_checked: int
    changed: list[ShiftChange]

    def line(self) -> str:
        """Return one line."""
        changed = len({(one.session_id, one.step) for one in self.changed})
        columns = ", ".join(sorted({one.column for one in self.changed}))
        found = f"{changed:,} changed with later events: {columns}" if changed else "none changed"
        return f"{self.n_checked:,} sessions at a step, {found}"


def shift_test(
    log: Log,
    features: FeatureTable,
    *,
    sample: int = 200,
    steps: Sequence[int] = (0, 1, 5, 10),
    seed: int = 0,
) -> ShiftFinding:
    """Alter everything after a step, for a sample of sessions, and compare all features of the step."""
    with open_engine() as engine, tempfile.TemporaryDirectory(prefix="diptych-shift-") as folder:
        scratch, given = Path(folder), SessionOptions(**features.about["session_options"])
        tables = sessionise(log, given, engine=engine)
        if tables.fingerprint != features.about["sessions_fingerprint"]:
            wrong = f"{features.folder} was not made of the sessions of {log.folder}"
            raise MismatchError(wrong, "give the log that it was made of")
        points = _points(features, sample, [step for step in steps if step in features.steps], seed)
        if not len(points):
            return ShiftFinding(0, [])
        offset = _alter(log, tables, features, points, scratch / "log", seed)
        again = sessionise(Log.open(scratch / "log"), given, engine=engine, folder=scratch / "sessions")
        options = FeatureOptions(**features.about["options"]).model_copy(update={"types": _ALL_TYPES})
        other = make_features(again, options=options, folder=scratch / "again", engine=engine)
        return ShiftFinding(len(points), _compare(features, other, points, offset))


def _points(table: FeatureTable, sample: int, steps: Sequence[int], seed: int) -> np.ndarray:
    """Return (m, 2) rows and steps; half of the sessions are of known visitors, where there are as many of both."""
    order = np.argsort(draw_uniform(seed, table.session_ids), kind="stable")
    known = ~np.isnan(table.pages_before_identified[order])
    with_visitor, without = order[known], order[~known]
    n_with = min(len(with_visitor), max(sample // 2, sample - len(without)))
    drawn = np.sort(np.concatenate([with_visitor[:n_with], without[: sample - n_with]]))
    points = [(row, step) for step in steps for row in drawn[table.undecided(step)[drawn]]]
    return np.array(points, dtype=np.int64).reshape(-1, 2)


def _alter(
    log: Log, tables: SessionTables, table: FeatureTable, points: np.ndarray, folder: Path, seed: int
) -> int:
    """Write a log of all worlds, numbered from 1 on; return how far apart their event ids are."""
    import duckdb
    import pyarrow as pa

    options, (rows, steps) = SessionOptions(**table.about["session_options"]), points.T
    identified = table.pages_before_identified[rows]
    worlds = {
        "world": np.arange(1, len(points) + 1),
        "session_id": table.session_ids[rows],
        "step": steps,
        "moment": table.view.page_times[rows, np.maximum(steps, 1) - 1],
        "bought": table.labels[rows],
        "is_known": (identified == 0) | (identified < steps),
    }
    target = folder / EVENTS / "bucket=00"
    target.mkdir(parents=True)
    with duckdb.connect() as base:
        events = f"read_parquet([{literals(log.buckets)}], hive_partitioning = false)"
        base.execute(f"CREATE VIEW event AS FROM {events}")
        base.execute(f"CREATE VIEW session AS FROM read_parquet([{literals(tables.files('sessions'))}])")
        largest = base.execute("SELECT coalesce(max(event_id), 0) FROM event").fetchone()[0]
        offset: int = 2 * (largest + _NEW_EVENTS)
        base.register("points", pa.table(worlds))
        gap = min(round(options.gap_minutes * 60 * SECOND) - 1, 600 * SECOND)
        given = {"ids": offset, "by": options.by, "since": table.about["since_us"], "seed": seed, "gap": gap}
        given |= {"types": _TYPES, "pages": options.pages + BUFFER}
        file = literal(target / "part.parquet")
        base.execute(Path(__file__).with_name("worlds.sql").read_text().format(file=file), given)
        n = base.execute(f"SELECT count(*) FROM {file}").fetchone()[0]
    Log(log.about | {"events": n, "buckets": 1, "fingerprint": "altered"}).save(folder / Log.marker())
    return offset


def _compare(table: FeatureTable, other: FeatureTable, points: np.ndarray, offset: int) -> list[ShiftChange]:
    """Return what differs; world w's session s is session s + w · offset in the table of all worlds."""
    ids = table.session_ids[points[:, 0]] + offset * np.arange(1, len(points) + 1)
    places = np.searchsorted(other.session_ids[:-1], ids)
    lost, changed = other.session_ids[places] != ids, []
    for step in np.unique(points[:, 1]).tolist():
        identified = table.identified(step)[points[:, 0]]
        moved = ~lost & (other.identified(step)[places] != identified)
        for setting in table.settings:
            mine = (points[:, 1] == step) & (identified == (setting == "identified"))
            for name, those in (("(population)", lost), ("(setting)", moved)):
                gone = table.session_ids[points[mine & those, 0]].tolist()
                changed += [ShiftChange(one, setting, step, name) for one in gone]
            rows, others = points[mine & ~lost & ~moved, 0], places[mine & ~lost & ~moved]
            if len(population := table.population(setting, step)) and len(rows):
                features = table.features(setting, table.sets[-1], step)
                fitted = fit_features(features, table.at(population, step))
                before, after = fitted.matrix(table.at(rows, step)), fitted.matrix(other.at(others, step))
                # The same numbers are computed in blocks of other sizes: sums may differ in the last bits.
                same = np.isclose(before, after, rtol=1e-9, atol=1e-12, equal_nan=True)
                for cell in np.argwhere(~same):
                    where = (int(table.session_ids[rows[cell[0]]]), setting, step, fitted.names[cell[1]])
                    changed.append(ShiftChange(*where, float(before[*cell]), float(after[*cell])))
    return changed
