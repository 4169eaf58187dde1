"""FeatureTable: all that is known of sessions at every step, and which of them are in which population.

``sessions.parquet`` has a row per session, by rising session_id: SESSION, the view's columns, ``page_type_k`` and
``page_us_k`` of every step k.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import (
    HISTORY_COLUMNS,
    OTHER_PAGE,
    PURPOSE,
    Feature,
    SessionsView,
    column,
    column_feature,
    features_of,
    text_array,
)
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.commerce.purchase_intent.shown import TEXTS, DisclosureControl, percent
from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.core.table import Cell, Table, Tabular

SESSIONS_FILE = "sessions.parquet"
SETTINGS = ("anonymous", "identified")
FEATURE_SETS = ("baseline", "extended")

WHOLE_SESSION = -1  # the one step of a table whose rows are whole sessions
ALL = "all"  # the one setting and the one feature set of such a table

_ARRAYS = ("session_ids", "persons", "start_us", "end_us", "pages_before_identified")
SESSION = (
    *("session_id", "person", "start_us", "end_us", "label"),
    *("pages_before_purchase", "pages_before_identified"),
)
"""Columns that every table of features has before those of its view."""


@dataclass(frozen=True, eq=False)
class FeatureTable(
    Tabular,
    Artifact,
    kind="features",
    version=2,
    recreate="diptych intent features LOG --out FEATURES",
    files=["view", *_ARRAYS],
):
    """Sessions to predict on.

    A table is of ``steps``, made from a log, with the settings and feature sets of the thesis; or of ``whole``
    sessions, whose columns were computed elsewhere when they were over.
    """

    about: dict[str, Any]  # of what it was made and how, what was left out, the columns and page types
    view: SessionsView  # all n sessions at all steps; what a model may see at one step is at()
    session_ids: np.ndarray  # (n,) int64, rising
    persons: np.ndarray  # (n,) int64, equal for sessions of one person
    start_us: np.ndarray  # (n,) int64 microseconds; 0 where the table has no times
    end_us: np.ndarray
    pages_before_identified: np.ndarray  # (n,) float64, NaN where the visitor was never known
    folder: Path = field(init=False, default=Path(), compare=False)

    def __len__(self) -> int:
        return len(self.session_ids)

    def write_files(self, folder: Path) -> None:
        """Write the sessions, unless an engine has written them there."""
        if (folder / SESSIONS_FILE).exists():
            return
        arrow, parquet = (require(name, "commerce", PURPOSE) for name in ("pyarrow", "pyarrow.parquet"))
        before = self.view.pages_before_purchase
        purchase = None if before is None else np.where(np.isinf(before), np.nan, before)
        *first, identified = (getattr(self, name) for name in _ARRAYS)
        own = zip(SESSION, (*first, self.labels, purchase, identified), strict=True)
        rows = {**dict(own), **self.view.columns}
        for place in range(self.view.page_types.shape[1]):
            rows[f"page_type_{place + 1}"] = self.view.page_types[:, place]
            rows[f"page_us_{place + 1}"] = self.view.page_times[:, place]
        parquet.write_table(arrow.table(rows), folder / SESSIONS_FILE)

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        """Read the sessions, all in memory; page types that are not in the vocabulary are one."""
        arrow, parquet = (require(name, "commerce", PURPOSE) for name in ("pyarrow", "pyarrow.parquet"))
        about = content["about"]
        steps, known = range(1, 1 + max(0, *about["steps"])), {*about["vocabulary"]}
        try:
            with parquet.ParquetFile(folder / SESSIONS_FILE) as file:
                found = {name: _values(file, name) for name in (*SESSION, *about["columns"])}
                types = np.empty((len(found["session_id"]), len(steps)), dtype=object)
                times = np.empty(types.shape, dtype=np.int64)
                for step in steps:
                    types[:, step - 1] = _values(file, f"page_type_{step}", known)
                    times[:, step - 1] = _values(file, f"page_us_{step}")
        except (OSError, arrow.ArrowException, KeyError, IndexError, ValueError) as error:
            wrong = f"{folder / SESSIONS_FILE} cannot be read: {error}"
            raise StorageError(wrong, f"recreate it: {cls.RECREATE}") from None
        *arrays, labels, purchase, identified = map(found.pop, SESSION)
        view = SessionsView(found, types, times, labels, np.where(np.isnan(purchase), np.inf, purchase))
        return {"view": view} | dict(zip(_ARRAYS, (*arrays, identified), strict=True))

    @property
    def labels(self) -> np.ndarray:
        assert self.view.labels is not None
        return self.view.labels

    @property
    def is_whole(self) -> bool:
        return bool(self.about["kind"] == "whole")

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(self.about["steps"])

    @property
    def settings(self) -> tuple[str, ...]:
        return (ALL,) if self.is_whole else SETTINGS

    @property
    def sets(self) -> tuple[str, ...]:
        return (ALL,) if self.is_whole else FEATURE_SETS

    @property
    def compat(self) -> str:
        """Return ``none``; or ``published``: all sessions stay, and a later log-in identifies from the beginning."""
        return str(self.about["options"].get("compat", "none"))

    @property
    def fingerprint(self) -> str:
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
        return np.flatnonzero((self.identified(step) == (setting == "identified")) & self.undecided(step))

    def undecided(self, step: int) -> np.ndarray:
        """Return (n,) bool: whether a prediction at this step still comes well before a purchase."""
        before = self.view.pages_before_purchase
        assert before is not None
        return (before >= step + BUFFER) | (self.compat == "published")

    def identified(self, step: int) -> np.ndarray:
        """Return (n,) bool: whether the visitor is known at this step."""
        before = self.pages_before_identified
        found: np.ndarray = ~np.isnan(before)
        return found if self.compat == "published" else (before == 0) | (before < step)

    def features(self, setting: str, feature_set: str, step: int) -> list[Feature]:
        """Return the features of a setting, a set and a step; ``also`` of the options are extended ones."""
        self._check(setting, step)
        if feature_set not in self.sets:
            raise UnknownNameError("feature set", feature_set, self.sets)
        if self.is_whole:
            return [column_feature(name, kind == "text") for name, kind in self.about["columns"].items()]
        return features_of(setting, feature_set, step, self.about["options"].get("also", ()))

    def at(self, rows: np.ndarray, step: int) -> SessionsView:
        """Return what is known of some sessions at a step: no later page, no history of a visitor not known by then."""
        self._check(self.settings[0], step)
        taken = self.view.take(rows)
        if self.is_whole:
            return taken
        unknown, columns = ~self.identified(step)[rows], taken.columns
        nothing = {name: column(self.about["columns"][name], len(rows)) for name in HISTORY_COLUMNS}
        known = {name: np.where(unknown, one, columns[name]) for name, one in nothing.items()}
        return replace(taken, columns={**columns, **known}).until(step)

    def sample(self, sessions: int | Sequence[int] | None, seed: int) -> Self:
        """Return ``sessions`` or more, of persons drawn at random; or so many of each setting at the first step."""
        if sessions is None:
            return self
        if whole_persons := isinstance(sessions, int):
            limits = [(np.arange(len(self)), sessions)]
        else:
            parts = [self.population(setting, self.steps[0]) for setting in self.settings]
            limits = list(zip(parts, sessions, strict=True))
        if all(len(rows) <= most for rows, most in limits):
            return self
        persons, inverse = np.unique(self.persons, return_inverse=True)
        place = np.argsort(np.random.default_rng(seed).permutation(len(persons)))[inverse]
        drawn = np.concatenate([rows[np.argsort(place[rows], kind="stable")][:most] for rows, most in limits])
        rows = np.flatnonzero(np.isin(place, place[drawn])) if whole_persons else np.sort(drawn)
        return self.take(rows, "sampled", sessions, seed)

    def take(self, rows: np.ndarray, *key: Any, name: str = "") -> Self:
        """Return some of the sessions, by places or a mask; ``key`` is what they are, for the fingerprint."""
        about = self.about | {"fingerprint": fingerprint(self.fingerprint, *key)}
        about |= {"name": f"{about['name']}, {name}"} if name else {}
        taken: dict[str, Any] = {one: getattr(self, one)[rows] for one in _ARRAYS}
        return replace(self, about=about, view=self.view.take(rows), **taken)

    def shared(self, processes: int) -> Self | Path:
        """Return what processes open it by: its folder; for one, or without a folder as a sample is, itself."""
        return self if processes == 1 or not self.folder.name else self.folder

    def describe(self) -> str:
        rate = self.labels.mean() if len(self) else 0.0
        points = "whole sessions" if self.is_whole else f"{len(self.steps)} steps"
        return f"{self.about['name']}: {len(self):,} sessions, {points}, {rate:.1%} with a purchase"

    def lines(self) -> list[str]:
        """Return what was made, and what of it a reader has to know."""
        about, counts, lines = self.about, self.about["counts"], [self.describe()]
        if not self.is_whole:
            return [*lines, f"{counts['too_short']:,} of {counts['sessions']:,} sessions are too short"]
        lines += [f"left out: the column {one['column']}: {one['why']}" for one in about["left_out"]]
        lines += [f"warning: {one} is computed from the outcome" for one in about["kept_leaking"]]
        return [*lines, *about["notes"]]

    def tables(self) -> list[Table]:
        """Return how many sessions there are at every step, buy, and are left out; nothing of whole sessions."""
        if self.is_whole:
            return []
        control, lines = DisclosureControl.current(), {step: [Cell(str(step))] for step in self.steps}
        for setting, step in product(self.settings, self.steps):
            rows = self.population(setting, step)
            early = int((self.identified(step) == (setting == "identified")).sum()) - len(rows)
            rate = Cell(percent(control.share(int(self.labels[rows].sum()), len(rows))))
            lines[step] += [control.count(len(rows)), rate, control.count(early)]
        groups = [("", 1), *((setting, 3) for setting in self.settings)]
        heads = ("step", *("sessions", "% bought", "left out") * len(self.settings))
        after = TEXTS["left_out"][self.compat]
        return [Table("Sessions by step", heads, list(lines.values()), groups, after)]

    def _check(self, setting: str, step: int) -> None:
        for kind, name, known in (("setting", setting, self.settings), ("step", step, self.steps)):
            if name not in known:
                raise UnknownNameError(kind, str(name), map(str, known))


def open_features(folder: Path | str | FeatureTable) -> FeatureTable:
    """Open a folder of features; a table is returned as it is."""
    return folder if isinstance(folder, FeatureTable) else FeatureTable.open(folder)


def _values(file: Any, name: str, known: set[str] | None = None) -> Any:
    """Return a column, null numbers NaN; equal texts are one object, those that are not ``known`` another one."""
    if str(file.schema_arrow.field(name).type) != "string":
        return file.read([name]).column(0).to_numpy()
    encoded = file.read([name]).column(0).combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    names = texts if known is None else [one if one in known else OTHER_PAGE for one in texts]
    return text_array(names)[encoded.indices.to_numpy()]
