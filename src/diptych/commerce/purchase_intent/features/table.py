"""FeatureTable: a folder of all that is known of sessions at every step, and who is in which population.

::

    FEATURES/
      features.json      what it was made of and how, what was left out, the columns and page types
      sessions.parquet   one row per session, by rising session_id
      page_types.npy     (sessions, steps) int32 codes
      page_times.npy     (sessions, steps) int64 microseconds
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import FEATURES, Feature, column_feature
from diptych.commerce.purchase_intent.features.view import (
    HISTORY_COLUMNS,
    NO_PAGE,
    SessionsView,
    empty_column,
    text_array,
)
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.commerce.purchase_intent.shown import Discretion, percent
from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError, UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import map_array
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.logs.log import Log
    from diptych.commerce.purchase_intent.sessions import SessionTables

SESSIONS_FILE = "sessions.parquet"
PAGE_TYPES = "page_types.npy"
PAGE_TIMES = "page_times.npy"

FIXED = {
    "session_id": "int64",
    "person": "int64",
    "start_us": "int64",
    "end_us": "int64",
    "label": "bool",
    "pages_before_purchase": "number",
    "pages_before_identified": "number",
}
"""Columns that every table has before those of its view; numbers are float64 with NaN for none."""

_PURPOSE = "a table of features"
_GROUP = 1 << 17


@dataclass(frozen=True)
class FeatureHeader(Artifact, kind="features", recreate="diptych intent features LOG --out FEATURES"):
    """What a table of features was made of and how, what was left out, the columns and page types."""

    about: dict[str, Any]


def write_sessions(
    folder: Path, blocks: Iterable[Mapping[str, np.ndarray]], columns: Mapping[str, str]
) -> int:
    """Write ``sessions.parquet`` block by block.

    Args:
        blocks: name → (m,) values of :data:`FIXED` and of ``columns``.
    """
    pa, parquet = require("pyarrow", "commerce", _PURPOSE), require("pyarrow.parquet", "commerce", _PURPOSE)
    types = {"int64": pa.int64(), "bool": pa.bool_(), "number": pa.float64(), "text": pa.string()}
    kinds = {**FIXED, **columns}
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in kinds.items()])
    n = 0
    with parquet.ParquetWriter(folder / SESSIONS_FILE, schema, compression="zstd") as writer:
        for block in blocks:
            # NaN is stored as such: it means none, and null would only be a second way to say so.
            arrays = [pa.array(block[name], types[kind], from_pandas=False) for name, kind in kinds.items()]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=_GROUP)
            n += len(arrays[0])
    return n


def read_columns(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Name and (n,) values of some columns of ``sessions.parquet``, one after the other.

    Equal texts of a column are one object.
    """
    pa, parquet = require("pyarrow", "commerce", _PURPOSE), require("pyarrow.parquet", "commerce", _PURPOSE)
    try:
        with parquet.ParquetFile(folder / SESSIONS_FILE) as file:
            for name in names:
                column = file.read([name]).column(0).combine_chunks()
                if pa.types.is_string(column.type):
                    encoded = column.dictionary_encode()
                    texts = text_array(encoded.dictionary.to_pylist())
                    yield name, texts[encoded.indices.to_numpy()]
                else:
                    yield name, column.to_numpy(zero_copy_only=False)
    except (OSError, pa.ArrowException, KeyError, IndexError) as error:
        raise StorageError(
            f"{folder / SESSIONS_FILE} cannot be read: {error}", "make the features again"
        ) from None


# Who is in the population of a setting and a step (thesis section 6.5.1).
#
# Sessions have at least twelve pages: the last step and a buffer of two, so that nobody predicts at the very end.
# The thesis leaves it at that; but a session of thirty pages whose purchase comes with the fifth tells a model of
# step ten its outcome by the page that confirms it. So, by default, at step k only sessions are left whose first
# purchase, if any, comes after k + 2 pages at least; and a session is identified at step k only if its visitor is
# known by then: on arrival, or logged in before page k. ``compat="published"`` does neither: all sessions stay, and
# who logs in at any page is identified from the beginning.


def is_undecided(pages_before_purchase: np.ndarray, step: int, compat: str = "none") -> np.ndarray:
    """(n,) bool: whether no purchase lies before the step and its buffer.

    Args:
        pages_before_purchase: (n,) float64, infinity where there was none.
    """
    if compat == "published":
        return np.ones(len(pages_before_purchase), dtype=bool)
    undecided: np.ndarray = pages_before_purchase >= step + BUFFER
    return undecided


def is_identified(pages_before_identified: np.ndarray, step: int, compat: str = "none") -> np.ndarray:
    """(n,) bool: whether the visitor is known once ``step`` pages are open.

    Args:
        pages_before_identified: (n,) float64, NaN where the visitor was never known.
    """
    before = pages_before_identified
    if compat == "published":
        known: np.ndarray = ~np.isnan(before)
        return known
    identified: np.ndarray = (before == 0) | (before < step)
    return identified


def count_populations(table: FeatureTable) -> list[dict[str, Any]]:
    """For every setting and step: sessions, purchases among them, and those left out for their early purchase."""
    rows = []
    for setting in table.settings:
        for step in table.steps:
            chosen = table.population(setting, step)
            in_setting = len(table)
            if not table.is_whole:
                identified = int(table.identified(step).sum())
                in_setting = identified if setting == "identified" else len(table) - identified
            rows.append(
                {
                    "setting": setting,
                    "step": step,
                    "sessions": len(chosen),
                    "purchases": int(table.labels[chosen].sum()),
                    "bought_too_early": in_setting - len(chosen),
                }
            )
    return rows


SETTINGS = ("anonymous", "identified")
FEATURE_SETS = ("baseline", "extended")

TABLE_6_7 = (
    "dwell-mean",
    "dwell-deviation",
    "page-sequence-score",
    "pages",
    "channel",
    "start-hour",
    "week-day",
    "device",
    "device-rate",
    "orders",
    "days-since-purchase",
    "sessions",
    "devices",
    "device-sequence-score",
    "switch-probability",
)
"""Names in the order of the printed rows."""


def features_of(setting: str, feature_set: str, step: int, also: Sequence[str] = ()) -> list[Feature]:
    """Return the features of one cell, in the order of Table 6.7, others behind them."""
    names = [*TABLE_6_7, *(name for name in FEATURES.names() if name not in TABLE_6_7)]
    return [
        one
        for one in map(FEATURES.get, names)
        if (step != 0 or not one.dynamic)
        and (setting != "anonymous" or one.group != "history")
        and (one.baseline if feature_set == "baseline" else one.default or one.name in also)
    ]


WHOLE_SESSION = -1
"""The one step of a table whose rows are whole sessions."""

_AGAIN = "make the features again"

ALL = "all"
"""The one setting and the one feature set of such a table."""


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Sessions to predict on.

    A table is of ``steps``, made from a log, with the settings and feature sets of the thesis; or of ``whole``
    sessions, whose columns somebody else has computed when they were over.

    Attributes:
        folder: where it is.
        about: what ``features.json`` says.
        view: all n sessions at all steps; what a model may see of them at one step is :meth:`at`.
        session_ids: (n,) int64, rising.
        persons: (n,) int64, equal for sessions of one person.
        start_us, end_us: (n,) int64 microseconds; 0 where the table has no times.
        pages_before_identified: (n,) float64 pages opened before the visitor was known, NaN for never.
    """

    folder: Path
    about: dict[str, Any]
    view: SessionsView
    session_ids: np.ndarray
    persons: np.ndarray
    start_us: np.ndarray
    end_us: np.ndarray
    pages_before_identified: np.ndarray

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
        """``none``, or ``published``: see :mod:`diptych.commerce.purchase_intent.features.table`."""
        return str(self.about["options"].get("compat", "none"))

    @property
    def fingerprint(self) -> str:
        """Of what it was made of and how."""
        return str(self.about["fingerprint"])

    def population(self, setting: str, step: int) -> np.ndarray:
        """(m,) int64 rows, rising, of the sessions that a model of this setting and step is about."""
        self._check(setting, step)
        if self.is_whole:
            return np.arange(len(self))
        identified = self.identified(step)
        chosen = identified if setting == "identified" else ~identified
        return np.flatnonzero(chosen & self.undecided(step))

    def undecided(self, step: int) -> np.ndarray:
        """(n,) bool: whether a prediction at this step still comes well before a purchase."""
        before = self.view.pages_before_purchase
        assert before is not None
        return is_undecided(before, step, self.compat)

    def identified(self, step: int) -> np.ndarray:
        """(n,) bool: whether the visitor is known at this step."""
        return is_identified(self.pages_before_identified, step, self.compat)

    def populations(self) -> Table:
        """Return how many sessions there are at every step, how many buy, and how many are left out."""
        by_cell = {(row["setting"], row["step"]): row for row in self.about["populations"]}
        discretion, lines = Discretion.current(), []
        for step in self.steps:
            line = [Cell(str(step))]
            for setting in self.settings:
                row = by_cell[setting, step]
                sessions, buys = row["sessions"], row["purchases"]
                hidden = not sessions or discretion.small(buys, sessions - buys)
                rate = None if hidden else buys / sessions
                line += [
                    discretion.count(sessions),
                    Cell(percent(rate)),
                    discretion.count(row["bought_too_early"]),
                ]
            lines.append(line)
        after = (
            "left out: something was bought before two pages more were open"
            if self.compat == "none"
            else "as published: nobody is left out, and who logs in at any page is identified from the beginning"
        )
        groups = [("", 1), *((setting, 3) for setting in self.settings)]
        heads = ("step", *(what for _ in self.settings for what in ("sessions", "% bought", "left out")))
        return Table("Sessions by step", heads, lines, groups, after)

    def tables(self) -> list[Table]:
        """Return how many sessions there are at every step; nothing of whole sessions."""
        return [] if self.is_whole else [self.populations()]

    def lines(self) -> list[str]:
        """Return what was made, and what of it a reader has to know."""
        about, counts = self.about, self.about["counts"]
        if not self.is_whole:
            least = f"fewer than {about['session_options']['pages'] + BUFFER} pages"
            return [
                self.describe(),
                f"of {counts['sessions']:,} sessions {counts['too_short']:,} are too short ({least}); "
                f"{counts['population']:,} are left",
            ]
        return [
            self.describe(),
            *(
                f"the column {left['column']} is left out: {left['why']} (--keep-leaking keeps it)"
                for left in about["left_out"]
            ),
            *(
                f"warning: {name} is kept, which is computed from the outcome; no number with it says anything"
                for name in about["kept_leaking"]
            ),
            *(f"note: {note}" for note in about["notes"]),
        ]

    def sessions(self, log: Log) -> SessionTables:
        """Return the sessions of the log that the features were made of."""
        from diptych.commerce.purchase_intent.options import SessionOptions
        from diptych.commerce.purchase_intent.sessions import sessionise

        if self.is_whole:
            raise UsageError("--keep-history with whole sessions, which have none", "leave it out")
        tables = sessionise(log, SessionOptions(**self.about["session_options"]))
        if tables.fingerprint != self.about["sessions_fingerprint"]:
            raise UsageError(
                f"the features were not made of {log.folder}", "give the log that they were made of"
            )
        return tables

    def features(self, setting: str, feature_set: str, step: int) -> list[Feature]:
        """The features of a setting, a set and a step; those that the log was asked for besides are in the
        extended set.
        """
        self._check(setting, step)
        if feature_set not in self.sets:
            raise UnknownNameError("feature set", feature_set, self.sets)
        if self.is_whole:
            return [column_feature(name, kind) for name, kind in self.about["columns"].items()]
        return features_of(setting, feature_set, step, self.about["options"].get("also", ()))

    def at(self, rows: np.ndarray, step: int) -> SessionsView:
        """What is known of some sessions at a step: pages behind it are gone, and so is the history of visitors
        who are not known by then.
        """
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

    def describe(self) -> str:
        """One line."""
        n = len(self)
        rate = self.labels.mean() if n else 0.0
        points = "whole sessions" if self.is_whole else f"{len(self.steps)} steps"
        return f"{self.about['name']}: {n:,} sessions, {points}, {rate:.1%} with a purchase"

    def _check(self, setting: str, step: int) -> None:
        if setting not in self.settings:
            raise UnknownNameError("setting", setting, self.settings)
        if step not in self.steps:
            raise UnknownNameError("step", str(step), map(str, self.steps))


def open_features(folder: Path | str) -> FeatureTable:
    """Open a folder that :func:`~diptych.commerce.purchase_intent.features.make.make_features` has written."""
    folder = Path(folder)
    about = FeatureHeader.open(folder).about
    fixed = dict(read_columns(folder, FIXED))
    types, times = map_array(folder / PAGE_TYPES, fix=_AGAIN), map_array(folder / PAGE_TIMES, fix=_AGAIN)
    columns, vocabulary = about["columns"], tuple(about["vocabulary"])
    _check_pages(folder, types, times, len(fixed["session_id"]), max(0, *about["steps"]), len(vocabulary))
    texts = dict(read_columns(folder, columns))
    before = fixed["pages_before_purchase"]
    view = SessionsView(
        texts, types, times, vocabulary, fixed["label"], np.where(np.isnan(before), np.inf, before)
    )
    return FeatureTable(
        folder,
        about,
        view,
        fixed["session_id"],
        fixed["person"],
        fixed["start_us"],
        fixed["end_us"],
        fixed["pages_before_identified"],
    )


def _check_pages(folder: Path, types: np.ndarray, times: np.ndarray, n: int, steps: int, most: int) -> None:
    """See that there are pages of ``n`` sessions for ``steps`` steps, with codes up to ``most``."""
    if types.ndim != 2 or types.shape != times.shape or len(types) != n or types.shape[1] < steps:
        raise StorageError(
            f"{folder} has {n} sessions and {steps} steps, and pages of {types.shape} and {times.shape}",
            _AGAIN,
        )
    if types.dtype != np.int32 or times.dtype != np.int64:
        raise StorageError(f"{folder} has pages of {types.dtype} and {times.dtype}", _AGAIN)
    if types.size and (types.min() < NO_PAGE or types.max() > most):
        raise StorageError(f"{folder} has pages of a type that its vocabulary does not have", _AGAIN)
