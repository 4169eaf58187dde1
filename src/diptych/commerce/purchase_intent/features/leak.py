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
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np

from diptych.commerce.logs.log import EVENTS, Log
from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.features.fitting import fit_features
from diptych.commerce.purchase_intent.features.make import make_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.options import FeatureOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import BUFFER, SessionTables, sessionise
from diptych.core.draws import draw_uniform
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint

_ALL_TYPES = 1_000_000
_TYPES = ("home", "product", "basket", "checkout", "confirmation", "something new")
_NEW_EVENTS = 1_000  # event ids that are free for the other end of a session, at least


class ShiftChange(NamedTuple):
    """A value that depends on what comes after the step."""

    session_id: int
    setting: str  # that it is in at the step
    step: int  # pages that are open
    column: str  # (setting) where the session is in another one, (population) where it is in none
    before: float  # the value, NaN where there is none
    after: float  # that in the altered log


class ShiftFinding(NamedTuple):
    """What the test found."""

    n_checked: int  # sessions at steps that were looked at
    changed: list[ShiftChange]  # every value that differs; empty where nothing looks into the future

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
    engine: Engine | None = None,
) -> ShiftFinding:
    """Alter everything after a step, for a sample of sessions, and compare all features of the step."""
    with (
        open_engine() if engine is None else nullcontext(engine) as runs,
        tempfile.TemporaryDirectory(prefix="diptych-shift-") as folder,
    ):
        scratch, tables = Path(folder), features.sessions(log, runs)
        points = _points(features, sample, [step for step in steps if step in features.steps], seed)
        if not len(points):
            return ShiftFinding(0, [])
        altered, offset = _alter(log, tables, features, points, scratch / "log", seed)
        given = SessionOptions(**features.about["session_options"])
        again = sessionise(altered, given, engine=runs, folder=scratch / "sessions")
        options = FeatureOptions(**features.about["options"]).model_copy(update={"types": _ALL_TYPES})
        other = make_features(again, options=options, folder=scratch / "again", engine=runs)
        return ShiftFinding(len(points), _compare(features, other, points, offset))


def _points(table: FeatureTable, sample: int, steps: Sequence[int], seed: int) -> np.ndarray:
    """Return (m, 2) rows and steps; half of the sessions are of known visitors, where there are as many of both."""
    order = np.argsort(draw_uniform(seed, table.session_ids), kind="stable")
    known = ~np.isnan(table.pages_before_identified[order])
    with_visitor, without = order[known], order[~known]
    n_with = min(len(with_visitor), max(sample // 2, sample - len(without)))
    drawn = np.sort(np.concatenate([with_visitor[:n_with], without[: sample - n_with]]))
    return np.array(
        [(row, step) for step in steps for row in drawn[table.undecided(step)[drawn]]], dtype=np.int64
    ).reshape(-1, 2)


# What a session's worlds are made of: its first event, all clients of its visitor, what they did until the moment.
# A session by visitor goes on as that visitor's; in others one who was not known may log in.
_WORLDS = """
COPY (
  WITH first AS (
    SELECT points.*, event.*, session.visitor_id AS visitor FROM points
    JOIN session USING (session_id) JOIN event ON event.event_id = points.session_id),
  members AS (
    SELECT world, client_id FROM first
    UNION SELECT world, event.client_id FROM first JOIN event ON event.visitor_id = first.visitor),
  kept AS (
    SELECT world, event.* REPLACE (
      CASE WHEN step = 0 AND action = 'page' AND t_us = moment THEN 'something else' ELSE page_type END AS page_type,
      event_id + world * $ids AS event_id)
    FROM members JOIN event USING (client_id) JOIN points USING (world) WHERE t_us <= moment),
  ends AS (
    SELECT world, $ids // 2 + i AS event_id, moment + (i + 1) * (1 + hash(world, $seed) % $gap)::BIGINT AS t_us,
      $types[1 + (hash(world, i, 'page') % len($types))::BIGINT] AS page_type,
      ['pc', 'tablet', 'tv'][1 + (hash(world, i, 'device') % 3)::BIGINT] AS device,
      ['paid', 'other'][1 + (hash(world, i, 'channel') % 2)::BIGINT] AS channel,
      CASE WHEN i < $pages THEN 'page' ELSE 'purchase' END AS action, i > hash(world) % (2 * $pages) AS new_visitor
    FROM points, range($pages + 1) AS pages(i)),
  ending AS (
    SELECT world, first.* EXCLUDE (world, session_id, step, moment, bought, is_known, visitor) REPLACE (
      ends.event_id + world * $ids AS event_id, ends.t_us AS t_us, ends.device AS device, ends.channel AS channel,
      ends.page_type AS page_type, ends.action AS action, ends.action = 'purchase' AS is_purchase,
      NULL AS query, NULL AS item_id, NULL AS price,
      CASE WHEN $by = 'visitor' THEN visitor_id WHEN is_known THEN visitor
           WHEN new_visitor THEN 'another visitor' END AS visitor_id)
    FROM first JOIN ends USING (world) WHERE bought OR ends.action = 'page'),
  begin AS (
    SELECT 0 AS world, * REPLACE (0 AS event_id, $since AS t_us, NULL AS visitor_id) FROM event LIMIT 1)
  SELECT * EXCLUDE (world) REPLACE (
    world || ':' || client_id AS client_id, world || ':' || visitor_id AS visitor_id,
    world || ':' || given_session AS given_session)
  FROM (FROM kept UNION ALL BY NAME FROM ending UNION ALL BY NAME FROM begin) ORDER BY client_id, t_us, event_id
) TO '{file}' (FORMAT parquet)"""


def _alter(
    log: Log, tables: SessionTables, table: FeatureTable, points: np.ndarray, folder: Path, seed: int
) -> tuple[Log, int]:
    """Write a log of all worlds, numbered from 1 on; return it, and how far apart their event ids are."""
    pa, duckdb = (require(name, "commerce", "a shift test") for name in ("pyarrow", "duckdb"))
    options, (rows, steps) = SessionOptions(**table.about["session_options"]), points.T
    moments = table.view.page_times[rows, np.maximum(steps, 1) - 1]
    gap = min(round(options.gap_minutes * 60 * SECOND) - 1, 600 * SECOND)
    identified = table.pages_before_identified[rows]
    world = {"world": np.arange(1, len(points) + 1), "session_id": table.session_ids[rows], "step": steps}
    world |= {"moment": moments, "bought": table.labels[rows]}
    world["is_known"] = (identified == 0) | (identified < steps)
    target = folder / EVENTS / "bucket=00"
    target.mkdir(parents=True)
    with duckdb.connect() as base:
        base.execute(f"CREATE VIEW event AS FROM {_read(log.buckets)}")
        base.execute(f"CREATE VIEW session AS FROM {_read(tables.files('sessions'))}")
        largest = base.execute("SELECT coalesce(max(event_id), 0) FROM event").fetchone()[0]
        offset = 2 * (largest + _NEW_EVENTS)
        base.register("points", pa.table(world))
        given = {"ids": offset, "by": options.by, "since": table.about["since_us"], "seed": seed, "gap": gap}
        given |= {"types": list(_TYPES), "pages": options.pages + BUFFER}
        file = str(target / "part.parquet").replace("'", "''")
        base.execute(_WORLDS.format(file=file), given)
        n = base.execute(f"SELECT count(*) FROM '{file}'").fetchone()[0]
    about = {
        **log.about,
        "events": n,
        "buckets": 1,
        "fingerprint": fingerprint(log.fingerprint, points, seed),
    }
    Log(about).save(folder / Log.marker())
    return Log.open(folder), offset


def _read(files: Sequence[Path]) -> str:
    names = ", ".join("'{}'".format(str(file).replace("'", "''")) for file in files)
    return f"read_parquet([{names}], hive_partitioning = false)"


def _compare(table: FeatureTable, other: FeatureTable, points: np.ndarray, offset: int) -> list[ShiftChange]:
    """Return what differs; world w's session s is session s + w · offset in the table of all worlds."""
    ids = table.session_ids[points[:, 0]] + offset * np.arange(1, len(points) + 1)
    places = np.searchsorted(other.session_ids[:-1], ids)
    lost, changed = other.session_ids[places] != ids, []
    for step in np.unique(points[:, 1]).tolist():
        identified = table.identified(step)[points[:, 0]]
        moved = other.identified(step)[places] != identified
        for setting in table.settings:
            mine = (points[:, 1] == step) & (identified == (setting == "identified"))
            for name, those in (("(population)", lost), ("(setting)", moved & ~lost)):
                gone = table.session_ids[points[mine & those, 0]].tolist()
                changed += [ShiftChange(one, setting, step, name, np.nan, np.nan) for one in gone]
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
