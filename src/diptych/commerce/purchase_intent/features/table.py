"""FeatureTable: all that is known of sessions at every step, and which of them are in which population.

::

    FEATURES/
      features.json      what it was made of and how, what was left out, the columns and page types
      sessions.parquet   a row per session, by rising session_id: SESSION, the view's columns, and of step k
                         page_type_k and page_us_k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.disclosure import DisclosureControl
from diptych.commerce.purchase_intent.features.fitting import Feature, column_feature, features_of
from diptych.commerce.purchase_intent.features.view import (
    HISTORY_COLUMNS,
    SessionsView,
    empty_column,
    text_array,
)
from diptych.commerce.purchase_intent.options import SessionOptions
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.commerce.purchase_intent.shown import percent
from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError, UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.logs.log import Log
    from diptych.commerce.purchase_intent.sessions import SessionTables

SESSIONS_FILE = "sessions.parquet"

SESSION = (
    "session_id",
    "person",
    "start_us",
    "end_us",
    "label",
    "pages_before_purchase",
    "pages_before_identified",
)
"""Columns that every table has before those of its view."""

SETTINGS = ("anonymous", "identified")
FEATURE_SETS = ("baseline", "extended")

WHOLE_SESSION = -1
"""The one step of a table whose rows are whole sessions."""

ALL = "all"
"""The one setting and the one feature set of such a table."""


@dataclass(frozen=True)
class FeatureHeader(
    Artifact, kind="features", version=2, recreate="diptych intent features LOG --out FEATURES"
):
    """What a table of features was made of and how, what was left out, the columns and page types."""

    about: dict[str, Any]


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Sessions to predict on.

    A table is of ``steps``, made from a log, with the settings and feature sets of the thesis; or of ``whole``
    sessions, whose columns were computed elsewhere when they were over.
    """

    folder: Path
    about: dict[str, Any]  # what features.json says
    view: SessionsView  # all n sessions at all steps; what a model may see at one step is at()
    session_ids: np.ndarray  # (n,) int64, rising
    persons: np.ndarray  # (n,) int64, equal for sessions of one person
    start_us: np.ndarray  # (n,) int64 microseconds; 0 where the table has no times
    end_us: np.ndarray
    pages_before_identified: (
        np.ndarray
    )  # (n,) float64 pages opened before the visitor was known, NaN for never

    def __len__(self) -> int:
        return len(self.session_ids)

    @property
    def labels(self) -> np.ndarray:
        """(n,) bool, whether a session ends in a purchase."""
        assert self.view.labels is not None
        return self.view.labels

    @property
    def is_whole(self) -> bool:
        """Whether rows are whole sessions, without steps."""
        return bool(self.about["kind"] == "whole")

    @property
    def has_times(self) -> bool:
        """Whether it is known when sessions were; a split by time needs it."""
        return bool(self.about["has_times"])

    @property
    def steps(self) -> tuple[int, ...]:
        """Points of prediction: pages that are open, or :data:`WHOLE_SESSION` alone."""
        return tuple(self.about["steps"])

    @property
    def settings(self) -> tuple[str, ...]:
        """``anonymous`` and ``identified``, or ``all``."""
        return (ALL,) if self.is_whole else SETTINGS

    @property
    def sets(self) -> tuple[str, ...]:
        """``baseline`` and ``extended``, or ``all``."""
        return (ALL,) if self.is_whole else FEATURE_SETS

    @property
    def compat(self) -> str:
        """``none``; or ``published``: all sessions stay, and a later log-in identifies from the beginning."""
        return str(self.about["options"].get("compat", "none"))

    @property
    def fingerprint(self) -> str:
        """Of what it was made of and how."""
        return str(self.about["fingerprint"])

    # Who is in the population of a setting and a step (thesis section 6.5.1).
    #
    # Sessions have at least twelve pages: the last step and a buffer of two, so that nothing is predicted at the
    # very end. The thesis leaves it at that; but a session of thirty pages whose purchase comes with the fifth tells
    # a model of step ten its outcome by the page that confirms it. So, by default, at step k only sessions are left
    # whose first purchase, if any, comes after k + 2 pages at least; and a session is identified at step k only if
    # its visitor is known by then: on arrival, or logged in before page k.

    def population(self, setting: str, step: int) -> np.ndarray:
        """Return (m,) int64 rows, rising, of the sessions that a model of this setting and step is about."""
        self._check(setting, step)
        if self.is_whole:
            return np.arange(len(self))
        identified = self.identified(step)
        chosen = identified if setting == "identified" else ~identified
        return np.flatnonzero(chosen & self.undecided(step))

    def undecided(self, step: int) -> np.ndarray:
        """Return (n,) bool: whether a prediction at this step still comes well before a purchase."""
        before = self.view.pages_before_purchase
        assert before is not None
        return np.ones(len(self), dtype=bool) if self.compat == "published" else before >= step + BUFFER

    def identified(self, step: int) -> np.ndarray:
        """Return (n,) bool: whether the visitor is known at this step."""
        before = self.pages_before_identified
        found: np.ndarray = (
            ~np.isnan(before) if self.compat == "published" else (before == 0) | (before < step)
        )
        return found

    def features(self, setting: str, feature_set: str, step: int) -> list[Feature]:
        """Return the features of a setting, a set and a step; those that were asked for besides are extended ones."""
        self._check(setting, step)
        if feature_set not in self.sets:
            raise UnknownNameError("feature set", feature_set, self.sets)
        if self.is_whole:
            return [column_feature(name, kind) for name, kind in self.about["columns"].items()]
        return features_of(setting, feature_set, step, self.about["options"].get("also", ()))

    def at(self, rows: np.ndarray, step: int) -> SessionsView:
        """Return what is known of some sessions at a step: no later page, no history of a visitor not known by then."""
        self._check(self.settings[0], step)
        taken = self.view.take(rows)
        if self.is_whole:
            return taken
        unknown = ~self.identified(step)[rows]
        columns = dict(taken.columns)
        for name in HISTORY_COLUMNS:
            columns[name] = columns[name].copy()
            columns[name][unknown] = empty_column(self.about["columns"][name], int(unknown.sum()))
        return replace(taken, columns=columns).until(step)

    def sample(self, sessions: int | Sequence[int] | None, seed: int) -> FeatureTable:
        """Return ``sessions`` or more, of persons drawn at random; or so many of each setting at the first step."""
        if sessions is None:
            return self
        parts = [np.arange(len(self))]
        if not isinstance(sessions, int):
            parts = [self.population(setting, self.steps[0]) for setting in self.settings]
        wanted = list(zip(parts, [sessions] if isinstance(sessions, int) else sessions, strict=True))
        if all(len(rows) <= most for rows, most in wanted):
            return self
        persons, inverse = np.unique(self.persons, return_inverse=True)
        place = np.argsort(np.random.default_rng(seed).permutation(len(persons)))[inverse]
        drawn = np.concatenate([rows[np.argsort(place[rows], kind="stable")][:most] for rows, most in wanted])
        # a single number draws whole persons
        rows = np.flatnonzero(np.isin(place, place[drawn])) if isinstance(sessions, int) else np.sort(drawn)
        columns = ("session_ids", "persons", "start_us", "end_us", "pages_before_identified")
        taken: dict[str, Any] = {name: getattr(self, name)[rows] for name in columns}
        about = self.about | {"fingerprint": fingerprint(self.fingerprint, "sampled", sessions, seed)}
        return replace(self, about=about, view=self.view.take(rows), **taken)

    def sessions(self, log: Log) -> SessionTables:
        """Return the sessions of the log that the features were made of."""
        from diptych.commerce.purchase_intent.sessions import sessionise

        if self.is_whole:
            raise UsageError("--keep-history with whole sessions, which have none", "leave it out")
        tables = sessionise(log, SessionOptions(**self.about["session_options"]))
        if tables.fingerprint != self.about["sessions_fingerprint"]:
            raise UsageError(
                f"the features were not made of {log.folder}", "give the log that they were made of"
            )
        return tables

    def describe(self) -> str:
        """Return one line."""
        n = len(self)
        rate = self.labels.mean() if n else 0.0
        points = "whole sessions" if self.is_whole else f"{len(self.steps)} steps"
        return f"{self.about['name']}: {n:,} sessions, {points}, {rate:.1%} with a purchase"

    def lines(self) -> list[str]:
        """Return what was made, and what of it a reader has to know."""
        about, counts = self.about, self.about["counts"]
        if not self.is_whole:
            least = f"fewer than {about['session_options']['pages'] + BUFFER} pages"
            short = f"of {counts['sessions']:,} sessions {counts['too_short']:,} are too short ({least}); "
            return [self.describe(), f"{short}{counts['population']:,} are left"]
        left_out, kept = (
            "the column {column} is left out: {why} (--keep-leaking keeps it)",
            about["kept_leaking"],
        )
        warning = "warning: {} is kept, which is computed from the outcome; no number with it says anything"
        lines = [self.describe(), *(left_out.format(**one) for one in about["left_out"])]
        return [*lines, *map(warning.format, kept), *(f"note: {note}" for note in about["notes"])]

    def tables(self) -> list[Table]:
        """Return how many sessions there are at every step, buy, and are left out; nothing of whole sessions."""
        if self.is_whole:
            return []
        control, lines = DisclosureControl.current(), {step: [Cell(str(step))] for step in self.steps}
        for row in sorted(self.about["populations"], key=lambda one: self.settings.index(one["setting"])):
            sessions, buys = row["sessions"], row["purchases"]
            hidden = not sessions or control.small(buys, sessions - buys)
            rate = Cell(percent(None if hidden else buys / sessions))
            counts = map(control.count, (sessions, row["bought_too_early"]))
            lines[row["step"]] += [next(counts), rate, next(counts)]
        after = (
            "left out: something was bought before two pages more were open"
            if self.compat == "none"
            else "as published: nobody is left out, and who logs in at any page is identified from the beginning"
        )
        groups = [("", 1), *((setting, 3) for setting in self.settings)]
        heads = ("step", *(what for _ in self.settings for what in ("sessions", "% bought", "left out")))
        return [Table("Sessions by step", heads, list(lines.values()), groups, after)]

    def _check(self, setting: str, step: int) -> None:
        if setting not in self.settings:
            raise UnknownNameError("setting", setting, self.settings)
        if step not in self.steps:
            raise UnknownNameError("step", str(step), map(str, self.steps))


def count_populations(table: FeatureTable) -> list[dict[str, Any]]:
    """Return of every setting and step sessions, purchases among them, and those that bought too early."""
    rows = []
    for setting in table.settings:
        for step in table.steps:
            chosen = table.population(setting, step)
            identified = int(table.identified(step).sum())
            of_setting = {ALL: len(table), "identified": identified, "anonymous": len(table) - identified}
            counts = {"sessions": len(chosen), "purchases": int(table.labels[chosen].sum())}
            early = of_setting[setting] - len(chosen)
            rows.append({"setting": setting, "step": step, **counts, "bought_too_early": early})
    return rows


def save_header(folder: Path, about: dict[str, Any]) -> None:
    """Write ``features.json`` beside the sessions, with their populations."""
    header = folder / FeatureHeader.marker()
    FeatureHeader(about).save(header)
    FeatureHeader(about | {"populations": count_populations(open_features(folder))}).save(header)


def open_features(folder: Path | str) -> FeatureTable:
    """Open a table of features, all of it in memory."""
    folder = Path(folder)
    about = FeatureHeader.open(folder).about
    arrow, parquet = (
        require(name, "commerce", "a table of features") for name in ("pyarrow", "pyarrow.parquet")
    )
    steps, vocabulary = range(1, 1 + max(0, *about["steps"])), tuple(about["vocabulary"])
    code_of = {name: code for code, name in enumerate(vocabulary)}
    try:
        with parquet.ParquetFile(folder / SESSIONS_FILE) as file:
            found = {name: _values(file, name) for name in (*SESSION, *about["columns"])}
            types = np.empty((len(found["session_id"]), len(steps)), dtype=np.int32)
            times = np.empty(types.shape, dtype=np.int64)
            for step in steps:
                names, places = _encoded(file, f"page_type_{step}")
                codes = np.array([code_of.get(name, len(code_of)) for name in names], dtype=np.int32)
                types[:, step - 1] = codes[places]
                times[:, step - 1] = _values(file, f"page_us_{step}")
    except (OSError, arrow.ArrowException, KeyError, IndexError, ValueError) as error:
        raise StorageError(
            f"{folder / SESSIONS_FILE} cannot be read: {error}", f"recreate it: {FeatureHeader.RECREATE}"
        ) from None
    ids, persons, start_us, end_us, labels, before_purchase, before_identified = map(found.pop, SESSION)
    before = np.where(np.isnan(before_purchase), np.inf, before_purchase)
    view = SessionsView(found, types, times, vocabulary, labels, before)
    return FeatureTable(folder, about, view, ids, persons, start_us, end_us, before_identified)


def _values(file: Any, name: str) -> Any:
    """Return a column; equal texts are one object, and null numbers NaN."""
    column = file.read([name]).column(0)
    if str(column.type) != "string":
        return column.to_numpy()
    names, places = _encoded(file, name)
    return text_array(names)[places]


def _encoded(file: Any, name: str) -> tuple[list[str], np.ndarray]:
    """Return the different texts of a column, and (n,) the place of each row's in them."""
    encoded = file.read([name]).column(0).combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
