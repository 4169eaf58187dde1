"""Scorer: a folder of models, and the one object that a shop asks.

::

    SCORER/
      scorer.json          what it was made of and how, and what was measured, by setting and step
      model_card.md        the same for people
      example.json         a made-up session to try it with
      models/SETTING/step-K/…
      history.parquet      what visitors did before, only where it was asked for

A session that runs just now and a million sessions of a table go through the same view, features and model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.evaluation.shown import left_out_lines
from diptych.commerce.purchase_intent.features.view import (
    COLUMNS,
    HISTORY_COLUMNS,
    SessionsView,
    empty_column,
    encode_pages,
    text_array,
)
from diptych.commerce.purchase_intent.scoring.cell import Cell, Score, cell_folder
from diptych.commerce.purchase_intent.scoring.events import FILE, HistoryTable, history_columns, shown
from diptych.commerce.purchase_intent.scoring.request import (
    Request,
    SessionSoFar,
    SessionStream,
    read_request,
)
from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, MismatchError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KIND = {column.name: column.kind for column in COLUMNS}


def local_hour_and_day(t_us: int, zone: str) -> tuple[int, int]:
    """Hour, 0 to 23, and week day, 0 is Monday, of a time in a zone."""
    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise DataError(
            f"the time zone {zone!r} is not known here", "install tzdata: pip install tzdata"
        ) from None
    local = (_EPOCH + timedelta(microseconds=t_us)).astimezone(known)
    return local.hour, local.weekday()


def view_of(
    session: SessionSoFar,
    history: Mapping[str, Any] | None,
    *,
    vocabulary: tuple[str, ...],
    pages: int,
    zone: str,
) -> SessionsView:
    """(1,) the session with everything that is known of it."""
    hour, day = local_hour_and_day(session.start_us, zone)
    columns = {
        "channel": text_array([session.channel]),
        "device": text_array([session.device]),
        "start_hour": np.array([float(hour)]),
        "start_dow": np.array([float(day)]),
    }
    for name in HISTORY_COLUMNS:
        value = None if history is None else history[name]
        if value is None:
            columns[name] = empty_column(_KIND[name], 1)
        else:
            columns[name] = text_array([value]) if isinstance(value, str) else np.array([float(value)])
    times = np.zeros((1, pages), dtype=np.int64)
    opened = session.page_times[:pages]
    times[0, : len(opened)] = opened
    return SessionsView(
        columns=columns,
        page_types=encode_pages([session.page_types], vocabulary, pages),
        page_times=times,
        vocabulary=vocabulary,
    )


_MOST_SHOWN = 5

Columns = dict[str, float | str]


def known_history(
    request: Request, setting: str, since_us: int | None, kept: HistoryTable | None
) -> tuple[Columns | None, list[str]]:
    """Values of the history columns, and what has to be said about them; None for an anonymous session."""
    session = request.session
    if setting != "identified":
        if request.history is None:
            return None, []
        why = "" if session.is_identified else "the visitor is not known yet: "
        return None, [f"{why}the history is not looked at"]
    if request.history is None and kept is not None:
        return _looked_up(session, since_us, kept)
    columns, missing = history_columns(request.history, session.start_us, session.device, since_us)
    if not missing:
        return columns, []
    return columns, [f"the history does not say: {', '.join(missing)}; taken as missing"]


def _looked_up(session: SessionSoFar, since_us: int | None, kept: HistoryTable) -> tuple[Columns, list[str]]:
    assert session.visitor_id is not None
    found = kept.columns(session.visitor_id, session.start_us, session.device, since_us)
    if found is None:
        nothing, _ = history_columns({"sessions": 0}, session.start_us, session.device, since_us)
        return nothing, ["the visitor is not in the kept history: taken as new"]
    columns, last_end_us = found
    if last_end_us >= session.start_us:
        raise DataError(
            "the kept history of this visitor goes beyond the session's start",
            "give the history with the session: the kept one is for sessions after the log",
        )
    return columns, ["the history is that of the log the scorer was trained on"]


def unknown_words(about: Mapping[str, Any], session: SessionSoFar, pages: int) -> list[str]:
    """Words that training has not seen, and so count as another, each in a sentence."""
    known = about["known"]
    notes = [
        f"the {name} {shown(value)} was not seen in training: it counts as another"
        for name, value in (("device", session.device), ("channel", session.channel))
        if known[name] is not None and value not in known[name]
    ]
    strange = sorted(set(session.page_types[:pages]) - set(about["vocabulary"]))
    if strange:
        notes.append(
            f"page types not seen in training count as others: {', '.join(map(shown, strange[:_MOST_SHOWN]))}"
        )
    return notes


_UNKNOWN_SETTING = "the visitor is known, but the scorer has no model for that: scored as anonymous"
_JUST_KNOWN = "the visitor logged in after the last page: known from the next page on"


def choose_place(
    places: Sequence[tuple[str, int]], session: SessionSoFar
) -> tuple[str, int, tuple[str, ...]]:
    """Setting and step of the model for a session, and what has to be said about the choice."""
    notes = []
    setting = "identified" if session.is_identified else "anonymous"
    steps = _reached(places, setting, session.n_pages)
    if not steps and setting == "identified":
        setting = "anonymous"
        steps = _reached(places, setting, session.n_pages)
        notes.append(_UNKNOWN_SETTING)
    elif not session.is_identified and session.visitor_id is not None:
        notes.append(_JUST_KNOWN)
    if not steps:
        raise UsageError(
            f"the scorer has no model for {setting} sessions with {_pages(session.n_pages)}",
            "its model card says which it has, and why",
        )
    step = max(steps)
    if session.n_pages > step:
        which = "the last" if step == max(of for _, of in places) else "the nearest before"
        looks = f"looks at the first {step}" if step else "looks at none of them"
        verb = "is" if session.n_pages == 1 else "are"
        notes.append(f"{_pages(session.n_pages)} {verb} open: the model of step {step}, {which}, {looks}")
    return setting, step, tuple(notes)


def _reached(places: Sequence[tuple[str, int]], setting: str, pages: int) -> list[int]:
    return [step for of, step in places if of == setting and step <= pages]


def _pages(n: int) -> str:
    return f"{n:,} page{'s' * (n != 1)}"


_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class TableScores:
    """Scores of the sessions of one setting at one step."""

    cell: Cell  # what scored them
    rows: np.ndarray  # (m,) int64 of the table
    p: np.ndarray  # (m,) calibrated probabilities


@dataclass(frozen=True, eq=False)
class Scorer(Artifact, kind="scorer", recreate="diptych intent train FEATURES --out SCORER"):
    """Probabilities of a purchase, by setting and step; models are read when they are first needed.

    Attributes:
        about: of what it was made and how, its cells, what was measured.
        folder: where it is.
    """

    about: dict[str, Any]
    folder: Path = field(init=False, default=Path(), compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether it scores whole sessions of a table, and none that still run."""
        return bool(self.about["kind"] == "whole")

    @property
    def places(self) -> list[tuple[str, int]]:
        """Setting and step of every model there is."""
        return [(cell["setting"], cell["step"]) for cell in self.about["cells"]]

    def cell(self, setting: str, step: int) -> Cell:
        """One model with all that belongs to it; read once."""
        if (setting, step) not in self._cells:
            if (setting, step) not in self.places:
                raise UsageError(
                    f"the scorer has no model of the setting {setting} at step {step}",
                    "its model card says which it has, and why",
                )
            self._cells[setting, step] = Cell.open(cell_folder(self.folder, setting, step))
        return self._cells[setting, step]

    @cached_property
    def _cells(self) -> dict[tuple[str, int], Cell]:
        return {}

    @cached_property
    def _history(self) -> HistoryTable | None:
        return HistoryTable(self.folder / FILE) if self.about["history"] else None

    @cached_property
    def gap_us(self) -> int | None:
        """Idle microseconds after which a session has ended; None where the log said what a session is."""
        options = self._session_options
        return None if options["by"] == "given" else round(options["gap_minutes"] * 60 * SECOND)

    @cached_property
    def pages(self) -> int:
        """How many first pages are looked at."""
        return max(0, *(step for _, step in self.places))

    @property
    def _session_options(self) -> dict[str, Any]:
        if self.is_whole:
            raise UsageError(
                "this scorer is of whole sessions, whose columns are known when they are over",
                "score a table like the one it was trained on; for sessions that still run train on a log's features",
            )
        return dict(self.about["session_options"])

    def score(self, session: Mapping[str, Any], *, reasons: int = 5) -> Score:
        """Score one session as far as it has come."""
        return self.score_request(read_request(session, self.gap_us, self.pages), reasons)

    def stream(self, *, reasons: int = 5, **known: Any) -> SessionStream:
        """A session that is about to run, to be given event by event."""
        return SessionStream(
            lambda request: self.score_request(request, reasons), self.gap_us, self.pages, known
        )

    def score_request(self, request: Request, reasons: int = 5) -> Score:
        """The same of a session that is read already."""
        session = request.session
        setting, step, chosen = choose_place(self.places, session)
        cell, notes = self.cell(setting, step), (*session.notes, *chosen)
        if session.bought_at is not None:
            said = f"something was bought with event {session.bought_at}: there is nothing left to predict"
            return Score(1.0, step, setting, cell.base_rate, cell.threshold, (), (*notes, said), True)
        history, more = known_history(request, setting, self.about["since_us"], self._history)
        view = view_of(
            session,
            history,
            vocabulary=tuple(self.about["vocabulary"]),
            pages=step,
            zone=self.about["zone"],
        )
        return cell.score(view, reasons, (*notes, *more, *unknown_words(self.about, session, step)))

    def check(self, features: FeatureTable) -> None:
        """See that a table's columns mean what they mean to the scorer."""
        for name in ("kind", "zone", "session_options", "columns"):
            mine, theirs = self.about[name], features.about.get(name)
            if mine != theirs:
                raise MismatchError(
                    f"the scorer was trained on features with {name} {mine}, these have {theirs}",
                    "make the features in the same way, or train on these",
                )

    def score_table(
        self,
        features: FeatureTable,
        *,
        settings: Sequence[str] | None = None,
        steps: Sequence[int] | None = None,
    ) -> Iterator[TableScores]:
        """Score every session of a table at every step, setting after setting; block by block."""
        self.check(features)
        for setting, step in self.places:
            if (settings is not None and setting not in settings) or (
                steps is not None and step not in steps
            ):
                continue
            cell, rows = self.cell(setting, step), features.population(setting, step)
            blocks = [rows[begin : begin + _BLOCK] for begin in range(0, len(rows), _BLOCK)]
            found = [cell.probabilities(features.at(block, step)) for block in blocks]
            yield TableScores(cell, rows, np.concatenate([np.zeros(0), *found]))

    def lines(self) -> list[str]:
        """Return what a reader of its numbers has to know."""
        about, slices = self.about, self.about["slices"]
        cells = [(one, note) for one in about["cells"] for note in one["notes"]]
        lines = [f"{one['setting']}, step {one['step']}: {note}" for one, note in cells]
        lines += left_out_lines(about["not_trained"], "not trained")
        sizes = ", ".join(f"{name} {size:,}" for name, size in slices["sizes"].items())
        lines.append(f"{slices['note']}: {sizes}; {slices['left_out']:,} run across an end and are in none")
        if about["history"]:
            lines.append(f"the scorer holds the histories of {about['history']:,} visitors: personal data")
        return lines

    def describe(self) -> str:
        """One line."""
        n = len(self.places)
        return (
            f"{self.about['name']}: {self.about['options']['model']}, {n} model{'s' * (n != 1)}, "
            f"{self.about['days']}, fitted on {self.about['slices']['sizes']['fit']:,} sessions"
        )
