"""Whether features look into the future: later events are altered, and nothing may change."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.logs.log import EVENTS, Log
from diptych.commerce.logs.schema import COLUMNS, SECOND
from diptych.commerce.purchase_intent.features.fitting import fit_features
from diptych.commerce.purchase_intent.features.make import make_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.features.view import NO_PAGE, SessionsView
from diptych.commerce.purchase_intent.options import FeatureOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.core.draws import Draws, draw_uniform
from diptych.core.errors import MismatchError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.engine import Engine


_NOT_THERE = "(population)"
_SETTING = "(setting)"


@dataclass(frozen=True)
class ShiftChange:
    """A value that depends on what comes after the step.

    Attributes:
        column: of the features; ``(setting)`` where the session is in another one, ``(population)`` where it is in
            none.
    """

    session_id: int  # of the session
    setting: str  # that it is in at the step
    step: int  # pages that are open
    column: str
    before: float | None  # before, after: the value, and that in the altered log; None where there is none
    after: float | None


def compare_step(
    table: FeatureTable, again: FeatureTable, step: int, rows: np.ndarray, altered_ids: np.ndarray
) -> list[ShiftChange]:
    """What differs at a step.

    Args:
        rows: (m,) of ``table``.
        altered_ids: (m,) what their sessions are called in ``again``.
    """
    place = {session_id: row for row, session_id in enumerate(again.session_ids.tolist())}
    places = np.array([place.get(one, -1) for one in altered_ids.tolist()], dtype=np.int64)
    there = places >= 0
    identified = table.identified(step)[rows]
    same = there.copy()
    same[there] = again.identified(step)[places[there]] == identified[there]
    changed = []
    for setting in table.settings:
        mine = identified == (setting == "identified")
        changed += [_change(table, row, setting, step, _NOT_THERE) for row in rows[mine & ~there]]
        changed += [_change(table, row, setting, step, _SETTING) for row in rows[mine & there & ~same]]
        kept = mine & same
        changed += _compare_values(table, again, setting, step, rows[kept], places[kept])
    return changed


def _compare_values(
    table: FeatureTable, again: FeatureTable, setting: str, step: int, rows: np.ndarray, places: np.ndarray
) -> list[ShiftChange]:
    population = table.population(setting, step)
    if not len(rows) or not len(population):
        return []
    fitted = fit_features(table.features(setting, table.sets[-1], step), table.at(population, step))
    before = fitted.matrix(table.at(rows, step))
    after = fitted.matrix(_in_words_of(table.view, again.at(places, step)))
    # The same numbers are computed in blocks of other sizes: sums may differ in the last bits.
    differs = ~np.isclose(before, after, rtol=1e-9, atol=1e-12, equal_nan=True)
    return [
        _change(
            table, rows[row], setting, step, fitted.names[column], before[row, column], after[row, column]
        )
        for row, column in np.argwhere(differs)
    ]


def _in_words_of(view: SessionsView, other: SessionsView) -> SessionsView:
    """A view with the codes of another's vocabulary."""
    code_of = {name: code for code, name in enumerate(view.vocabulary)}
    codes = [code_of.get(name, len(code_of)) for name in other.vocabulary]
    new = np.array([*codes, len(code_of), NO_PAGE], dtype=np.int32)  # NO_PAGE is -1: the last
    return replace(other, page_types=new[other.page_types], vocabulary=view.vocabulary)


def _change(
    table: FeatureTable,
    row: int,
    setting: str,
    step: int,
    column: str,
    before: float = np.nan,
    after: float = np.nan,
) -> ShiftChange:
    values = (None if np.isnan(value) else float(value) for value in (before, after))
    return ShiftChange(int(table.session_ids[row]), setting, step, column, *values)


# The shift test: what is known of a session at a step must not change when what comes after it is another.
#
# A sample of sessions is put into a log of altered events, see :mod:`.altered`, which goes through the same sessions
# and the same features as the log itself. A value that differs was looked up in the future.


# A session as if nothing were known of what comes after a page: events for the shift test.
#
# For a session and a step there is a world of its own: everything that happened up to the page of the step, to the
# session and to its visitor on all clients; and after that nothing but another end of the session, of other page
# types, times, device and visitor. What decides whether one may predict on the session stays: it goes on for long
# enough, and something is bought or not, as it was, behind the last page. Clients, visitors and events have names
# of their own in every world, so that all worlds together are one log.

Event = dict[str, Any]

_TYPES = ("home", "product", "basket", "checkout", "confirmation", "something new")
_LONGER = 5
"""Pages that the other end has more than are needed, at most."""


@dataclass(frozen=True)
class Point:
    """A session at a step."""

    session_id: int  # of the session
    step: int  # pages that are open
    bought: bool  # whether something is bought in it


@dataclass(frozen=True)
class Worlds:
    """How worlds are made and told apart.

    Attributes:
        ids: event ids per world: event 3 of the log is event 3 + number · ids of a world; those of the log are below
            half of it.
    """

    ids: int
    least_pages: int  # that a session has to have in the end
    gap_us: int  # microseconds that a session may be idle
    strangers: (
        bool  # whether an end may bring a visitor where none is known; not where it would begin a session
    )
    seed: int  # of all ends

    def events(
        self, number: int, point: Point, session: Sequence[Event], others: Sequence[Event]
    ) -> list[Event]:
        """What is known of a point, and another end."""
        known = _known(session, point.step)
        moment = _moment(known[-1])
        kept = [*known, *(event for event in others if _moment(event) <= moment)]
        end = self._other_end(point, known)
        first = self.ids * number
        behind = first + self.ids // 2
        return [
            *(_renamed(event, number) | {"event_id": first + event["event_id"]} for event in kept),
            *(_renamed(event, number) | {"event_id": behind + place} for place, event in enumerate(end)),
        ]

    def _other_end(self, point: Point, known: Sequence[Event]) -> list[Event]:
        draws = Draws(self.seed, "another end", point.session_id, point.step)
        last = known[-1]
        needed = self.least_pages - sum(event["action"] == "page" for event in known)
        visitor = next((event["visitor_id"] for event in reversed(known) if event["visitor_id"]), None)
        events: list[Event] = []
        t_us = last["t_us"]
        for _ in range(max(1, needed) + draws.below(_LONGER + 1)):
            t_us += 1 + int(draws.uniform() * min(self.gap_us - 1, 600_000_000))
            if visitor is None and self.strangers and draws.uniform() < 0.3:
                visitor = "somebody else"
            events.append(
                {
                    **dict.fromkeys(column.name for column in COLUMNS),
                    **{name: last[name] for name in _OF_THE_SESSION},
                    "visitor_id": visitor,
                    "t_us": t_us,
                    "device": draws.choice(("pc", "tablet", "tv")),
                    "channel": draws.choice(("paid", "other")),
                    "action": "page",
                    "page_type": draws.choice(_TYPES),
                    "is_purchase": False,
                }
            )
        if point.bought:
            events.append({**events[-1], "t_us": t_us + 1, "action": "purchase", "is_purchase": True})
        return events


_OF_THE_SESSION = ("client_id", "given_session", "local_day", "local_hour", "local_dow")


def _moment(event: Mapping[str, Any]) -> tuple[int, int]:
    return event["t_us"], event["event_id"]


def _known(session: Sequence[Event], step: int) -> list[Event]:
    """The events up to the step's page. At step 0 up to the first page, of which everything but its type is known
    when it is asked for: by whom, on what and when."""
    pages = [place for place, event in enumerate(session) if event["action"] == "page"]
    known = [dict(event) for event in session[: pages[max(1, step) - 1] + 1]]
    if step == 0:
        known[-1]["page_type"] = "something else"
    return known


def _renamed(event: Event, number: int) -> Event:
    names = ("client_id", "visitor_id", "given_session")
    return {**event, **{name: event[name] and f"{number}:{event[name]}" for name in names}}


class Gathered:
    """Events of sessions, and of their visitors outside them."""

    def __init__(self, sessions: Mapping[int, Mapping[str, Any]], events: Iterable[Event], by: str) -> None:
        self._sessions, self._by = sessions, by
        self._of_client: dict[str, list[Event]] = defaultdict(list)
        self._clients: dict[str, set[str]] = defaultdict(set)
        self._first: dict[int, Event] = {}
        for event in sorted(events, key=lambda one: (one["t_us"], one["event_id"])):
            self._of_client[event["client_id"]].append(event)
            if event["visitor_id"] is not None:
                self._clients[event["visitor_id"]].add(event["client_id"])
            if event["event_id"] in sessions:
                self._first[event["event_id"]] = event

    def size(self, session_id: int) -> int:
        """How many events a session's visitor has on all clients, or its client where nobody is known."""
        return sum(len(self._of_client[client]) for client in self._clients_of(session_id))

    def session(self, session_id: int) -> list[Event]:
        """The events of a session in order."""
        return [event for event in self._all(session_id) if self._is_in(session_id, event)]

    def others(self, session_id: int) -> list[Event]:
        """All other events of its clients."""
        return [event for event in self._all(session_id) if not self._is_in(session_id, event)]

    def _clients_of(self, session_id: int) -> list[str]:
        row = self._sessions[session_id]
        return sorted({row["client_id"], *self._clients.get(row["visitor_id"], ())})

    def _all(self, session_id: int) -> list[Event]:
        events = [event for client in self._clients_of(session_id) for event in self._of_client[client]]
        return sorted(events, key=lambda one: (one["t_us"], one["event_id"]))

    def _is_in(self, session_id: int, event: Event) -> bool:
        row = self._sessions[session_id]
        if self._key(event) != self._key(self._first[session_id]):
            return False
        return bool(row["start_us"] <= event["t_us"] <= row["end_us"])

    def _key(self, event: Event) -> Any:
        if self._by == "visitor" and event["visitor_id"] is not None:
            return "visitor", event["visitor_id"]
        if self._by == "given" and event["given_session"] is not None:
            return "given", event["given_session"]
        return "client", event["client_id"]


def gather(log: Log, files: Sequence[Path], session_ids: Iterable[int], by: str) -> Gathered:
    """Read what belongs to some sessions; two passes over the log's narrow columns, and one over its rows."""
    pa, dataset = (require(name, "commerce", "a shift test") for name in ("pyarrow", "pyarrow.dataset"))
    columns = ["session_id", "client_id", "visitor_id", "start_us", "end_us"]
    wanted = dataset.field("session_id").isin(pa.array(list(session_ids), pa.int64()))
    rows = dataset.dataset(list(map(str, files))).to_table(columns=columns, filter=wanted)
    sessions = {row["session_id"]: row for row in rows.to_pylist()}
    events = dataset.dataset(list(map(str, log.buckets)), partitioning=None)
    visitors = pa.array(sorted({row["visitor_id"] for row in sessions.values()} - {None}), pa.string())
    seen = events.to_table(columns=["client_id"], filter=dataset.field("visitor_id").isin(visitors))
    clients = {row["client_id"] for row in sessions.values()} | set(seen.column(0).unique().to_pylist())
    of_them = dataset.field("client_id").isin(pa.array(sorted(clients), pa.string()))
    return Gathered(sessions, events.to_table(filter=of_them).to_pylist(), by)


_PURPOSE = "a shift test"


def largest_event_id(log: Log) -> int:
    """0 where there is no event."""
    dataset, compute = (require(f"pyarrow.{name}", "commerce", _PURPOSE) for name in ("dataset", "compute"))
    events = dataset.dataset(list(map(str, log.buckets)), partitioning=None)
    largest = (compute.max(batch.column(0)).as_py() for batch in events.to_batches(columns=["event_id"]))
    return max((one for one in largest if one is not None), default=0)


def write_altered_log(
    folder: Path, log: Log, since_us: int, points: Sequence[Point], gathered: Gathered, worlds: Worlds
) -> Log:
    """Write all worlds, numbered from 1 on as the points are."""
    events: list[Event] = []
    for number, point in enumerate(points, start=1):
        session = gathered.session(point.session_id)
        if not events:
            nobody = {"client_id": "first", "given_session": "first", "visitor_id": None}
            events.append({**session[0], **nobody, "event_id": 0, "t_us": since_us})
        events += worlds.events(number, point, session, gathered.others(point.session_id))
    pa, parquet = (require(name, "commerce", _PURPOSE) for name in ("pyarrow", "pyarrow.parquet"))
    schema = pa.schema(
        [pa.field(one.name, pa.type_for_alias(one.type), nullable=one.nullable) for one in COLUMNS]
    )
    events.sort(key=lambda one: (one["client_id"], one["t_us"], one["event_id"]))
    target = folder / EVENTS / "bucket=00"
    target.mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(events, schema), target / "part.parquet")
    about = {**log.about, "events": len(events), "buckets": 1, "fingerprint": fingerprint(events)}
    Log(about).save(folder / Log.marker())
    return Log.open(folder)


_MOST_EVENTS = 20_000
"""Of a session's visitor; the altered log would have them once per step."""

_ALL_TYPES = 1_000_000
_NEW_EVENTS = 1_000
"""Event ids that are free for the other end of a session, at least."""


@dataclass(frozen=True)
class ShiftFinding:
    """What the test found."""

    n_checked: int  # sessions at steps that were looked at
    n_left_out: int  # sessions of the sample whose visitor has too many events to be put into another log
    changed: list[ShiftChange]  # every value that differs; empty where nothing looks into the future

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
    """Alter everything after a step, for a sample of sessions, and compare all features of the step."""
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
        options=options.model_copy(update={"types": _ALL_TYPES}),
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
    options = FeatureOptions(**given)
    return options, SessionOptions(**features.about["session_options"])


def _sample(table: FeatureTable, sample: int, seed: int) -> np.ndarray:
    """(m,) rows, rising; half of them of known visitors, where there are as many of both."""
    order = np.argsort(draw_uniform(seed, table.session_ids), kind="stable")
    known = ~np.isnan(table.pages_before_identified[order])
    with_visitor, without = order[known], order[~known]
    n_with = min(len(with_visitor), max(sample // 2, sample - len(without)))
    return np.sort(np.concatenate([with_visitor[:n_with], without[: sample - n_with]]))
