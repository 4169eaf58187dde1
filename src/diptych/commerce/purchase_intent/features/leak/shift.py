"""The shift test: what is known of a session at a step must not change when what comes after it is another.

A sample of sessions is put into a log of altered events, see :mod:`.altered`, which goes through the same sessions
and the same features as the log itself. A value that differs was looked up in the future.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.features.leak.altered import Point, Worlds
from diptych.commerce.purchase_intent.features.leak.altered_log import largest_event_id, write_altered_log
from diptych.commerce.purchase_intent.features.leak.comparison import ShiftChange, compare_step
from diptych.commerce.purchase_intent.features.leak.gathered import gather
from diptych.commerce.purchase_intent.features.make import FeatureOptions, make_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.sessions.schema import BUFFER, SessionOptions
from diptych.core.draws import draw_uniform
from diptych.core.errors import MismatchError, UsageError
from diptych.data.logs.log import Log
from diptych.data.logs.schema import SECOND

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.engine import Engine

__all__ = ["ShiftFinding", "shift_test"]

_MOST_EVENTS = 20_000
"""Of a session's visitor; the altered log would have them once per step."""

_ALL_TYPES = 1_000_000
_NEW_EVENTS = 1_000
"""Event ids that are free for the other end of a session, at least."""


@dataclass(frozen=True)
class ShiftFinding:
    """What the test found.

    Attributes:
        n_checked: sessions at steps that were looked at.
        n_left_out: sessions of the sample whose visitor has too many events to be put into another log.
        changed: every value that differs; empty where nothing looks into the future.
    """

    n_checked: int
    n_left_out: int
    changed: list[ShiftChange]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)

    def line(self) -> str:
        """One line."""
        changed = len({(one.session_id, one.step) for one in self.changed})
        columns = sorted({one.column for one in self.changed})
        said = f"{changed:,} changed with later events: {', '.join(columns)}" if changed else "none changed"
        left_out = f"; {self.n_left_out:,} with too many events left out" if self.n_left_out else ""
        return f"{self.n_checked:,} sessions at a step, {said}{left_out}"


def shift_test(
    log: Log,
    *,
    options: FeatureOptions | None = None,
    session_options: SessionOptions | None = None,
    features: FeatureTable | None = None,
    sample: int = 200,
    steps: Sequence[int] = (0, 1, 5, 10),
    seed: int = 0,
    engine: Engine | None = None,
) -> ShiftFinding:
    """Alter everything after a step, for a sample of sessions, and compare all features of the step.

    Args:
        log: whose sessions are looked at.
        options: of features, where no ``features`` are given.
        session_options: of sessions, where no ``features`` are given.
        features: a table made of the log, whose stored values are held against the altered log's.
        sample: sessions, half of them with a visitor where there are as many.
        steps: pages that are open; those that the table does not have are passed over.
        seed: of the sample and of the other ends.
        engine: DuckDB by default.

    Raises:
        UsageError: a table of whole sessions.
        MismatchError: the table was not made of this log.
    """
    from diptych.commerce.purchase_intent.engine import open_engine

    if features is not None:
        options, session_options = _options_of(features)
    options, session_options = options or FeatureOptions(), session_options or SessionOptions()
    with (
        nullcontext(engine) if engine is not None else open_engine() as runs,
        tempfile.TemporaryDirectory(prefix="diptych-shift-") as scratch,
    ):
        return _test(log, options, session_options, features, sample, steps, seed, runs, Path(scratch))


def _test(
    log: Log,
    options: FeatureOptions,
    session_options: SessionOptions,
    features: FeatureTable | None,
    sample: int,
    steps: Sequence[int],
    seed: int,
    engine: Engine,
    scratch: Path,
) -> ShiftFinding:
    from diptych.commerce.purchase_intent.sessions import sessionise

    tables = sessionise(log, session_options, engine=engine)
    if features is not None and features.about["sessions_fingerprint"] != tables.fingerprint:
        raise MismatchError(
            f"{features.folder} was not made of the sessions of {log.folder}", "make the features again"
        )
    table = features or make_features(tables, options=options, folder=scratch / "features", engine=engine)
    drawn = _sample(table, sample, seed)
    ids = table.session_ids[drawn].tolist()
    gathered = gather(log, tables.files("sessions"), ids, session_options.by)
    rows = drawn[np.array([gathered.size(one) <= _MOST_EVENTS for one in ids], dtype=bool)]
    of_step = {step: rows[table.undecided(step)[rows]] for step in steps if step in table.steps}
    points = [
        Point(int(table.session_ids[row]), step, bool(table.labels[row]))
        for step, chosen in of_step.items()
        for row in chosen
    ]
    n_left_out = len(drawn) - len(rows)
    if not points:
        return ShiftFinding(0, n_left_out, [])
    worlds = Worlds(
        ids=2 * (largest_event_id(log) + _NEW_EVENTS),
        least_pages=session_options.pages + BUFFER,
        gap_us=round(session_options.gap_minutes * 60 * SECOND),
        strangers=session_options.by != "visitor",
        seed=seed,
    )
    altered = write_altered_log(scratch / "log", log, table.about["since_us"], points, gathered, worlds)
    again = make_features(
        sessionise(altered, session_options, engine=engine, folder=scratch / "sessions"),
        options=replace(options, types=_ALL_TYPES),
        folder=scratch / "again",
        engine=engine,
    )
    changed: list[ShiftChange] = []
    number = 1
    for step, chosen in of_step.items():
        numbers = np.arange(number, number + len(chosen))
        number += len(chosen)
        changed += compare_step(table, again, step, chosen, worlds.ids * numbers + table.session_ids[chosen])
    return ShiftFinding(len(points), n_left_out, changed)


def _options_of(features: FeatureTable) -> tuple[FeatureOptions, SessionOptions]:
    if features.is_whole:
        raise UsageError("whole sessions have no steps after which anything could be altered", "give a log's")
    given = features.about["options"]
    options = FeatureOptions(given["compat"], tuple(given["also"]), given["types"])
    return options, SessionOptions(**features.about["session_options"])


def _sample(table: FeatureTable, sample: int, seed: int) -> np.ndarray:
    """(m,) rows, rising; half of them of known visitors, where there are as many of both."""
    order = np.argsort(draw_uniform(seed, table.session_ids), kind="stable")
    known = ~np.isnan(table.pages_before_identified[order])
    with_visitor, without = order[known], order[~known]
    n_with = min(len(with_visitor), max(sample // 2, sample - len(without)))
    return np.sort(np.concatenate([with_visitor[:n_with], without[: sample - n_with]]))
