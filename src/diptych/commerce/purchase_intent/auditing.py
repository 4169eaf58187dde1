"""Leak audits: every check on a table of features and what it finds, kept as a folder."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.commerce.logs.database import literal, literals
from diptych.commerce.logs.log import EVENTS, SECOND, Log
from diptych.commerce.purchase_intent.engine import open_engine
from diptych.commerce.purchase_intent.evaluation import chosen_of
from diptych.commerce.purchase_intent.features.fitting import (
    NOTHING,
    OTHER_PAGE,
    FittedFeatures,
    SessionsView,
    fit_features,
)
from diptych.commerce.purchase_intent.features.make import make_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.models import FEWEST, fit_model
from diptych.commerce.purchase_intent.options import (
    AuditOptions,
    FeatureOptions,
    SessionOptions,
    TrainOptions,
)
from diptych.commerce.purchase_intent.scoring.training import slices_of
from diptych.commerce.purchase_intent.sessions import BUFFER, SessionTables, sessionise
from diptych.commerce.purchase_intent.shown import step_text
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.draws import Draws, draw_uniform
from diptych.core.errors import MismatchError
from diptych.core.extras import require
from diptych.core.files import write_csv
from diptych.core.table import Cell, Table

FOLDER = "audit"  # in the folder of its features
_STEPS = (0, 1, 5, 10)
_LATER = 0.4  # share of sessions that models and columns are tried on
_SHOWN = 5  # changed values of a shift test
_MANY = 0.05  # share of later sessions that are copies of earlier ones
_CONFIDENCE = 0.999
_ALTERED = 200  # sessions of a shift test
_ALL_TYPES = 1_000_000
_TYPES = ["home", "product", "basket", "checkout", "confirmation", "something new"]
_APART = 1 << 40  # of the event ids of two worlds; those of the other end of a session begin in the middle


class Finding(NamedTuple):
    """A finding of a check in one place."""

    text: str  # what it means; of a number what it is
    where: str = ""  # a setting and step, or a column; empty of the whole
    alarm: bool = False
    value: float | None = None
    low: float | None = None  # low, high: ends of its interval, where it has one
    high: float | None = None
    check: str = ""


Findings = Iterator[Finding]


class Parts(NamedTuple):
    """Earlier and later sessions of one setting and step, as pairs."""

    options: AuditOptions
    step: int
    labels: list[np.ndarray]
    views: list[SessionsView]
    fitted: FittedFeatures  # on the earlier part
    matrices: list[np.ndarray]  # (n, columns) and (m, columns)


def _known_columns(features: FeatureTable) -> Findings:
    """Look for columns that a known table has computed from the outcome; an alarm when one is kept."""
    kept, left_out = (features.about.get(name, ()) for name in ("kept_leaking", "left_out"))
    yield from (Finding("it is known to be computed from what was bought", name, True) for name in kept)
    yield from (Finding(f"left out: {one['why']}", one["column"]) for one in left_out)
    if not kept and not left_out:
        yield Finding("no column is known to know the outcome")


def _duplicates(parts: Parts) -> Findings:
    """Count later sessions with all values of an earlier one, at the last step; an alarm above 5 % of a log's."""
    earlier, later = ([row.tobytes() for row in matrix] for matrix in parts.matrices)
    share = float(np.isin(later, earlier).mean())
    alarm = parts.step >= 0 and share > _MANY  # without times of pages sessions may well look alike
    yield Finding("share of later sessions with all values of an earlier one", "", alarm, share)


def _single_column(parts: Parts) -> Findings:
    """Compute the ROC AUC of every column, at every setting and step; an alarm above 0.95."""
    aucs, names = column_aucs(parts.matrices[1], parts.labels[1]), parts.fitted.names
    for place in np.flatnonzero(aucs > parts.options.highest):
        yield Finding("ROC AUC: the column says who buys", names[place], True, float(aucs[place]))
    if aucs.max() <= parts.options.highest:
        yield Finding(f"ROC AUC of the best column, {names[aucs.argmax()]}", "", False, float(aucs.max()))


def _permuted_labels(parts: Parts) -> Findings:
    """Fit on permuted labels and measure on true ones; an alarm when the ROC AUC is surely above 0.55."""
    # What was learned is noise: sometimes it fits, sometimes the opposite does, and over repeats the ROC AUC is 0.5.
    # A leak, such as a feature that looks up the label of the session it is computed of, is right every time.
    roc_auc = require("sklearn.metrics", "commerce", "an audit").roc_auc_score
    stats, aucs = require("scipy.stats", "commerce", "an audit"), []
    options, (train, test), (labels, truth) = parts.options, parts.views, parts.labels
    for repeat in range(options.repeats):
        permuted = np.random.default_rng([options.seed, repeat, parts.step + 1]).permutation(labels)
        view = replace(train, labels=permuted, pages_before_purchase=None)
        fitted = fit_features(parts.fitted.features, view)
        model = fit_model(options.model, fitted.matrix(view), permuted, seed=options.seed)
        aucs.append(float(roc_auc(truth, model.scores(fitted.matrix(test)))))
    mean = float(np.mean(aucs))
    half = float(stats.t.ppf((1 + _CONFIDENCE) / 2, len(aucs) - 1) * stats.sem(aucs))
    alarm, ends = mean - half > 0.5 + options.margin, (max(0.0, mean - half), min(1.0, mean + half))
    yield Finding("mean ROC AUC of models of permuted labels", "", alarm, mean, *ends)


def column_aucs(matrix: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return (c,) ROC AUC of every column of (n, c), in the better direction, or of its having a value."""
    both = np.hstack([np.nan_to_num(matrix, nan=-np.inf), np.isnan(matrix)])
    ranks, bought = require("scipy.stats", "commerce", "an audit").rankdata(both, axis=0), labels.sum()
    wins = ranks[labels].sum(axis=0) - bought * (bought + 1) / 2
    aucs = wins / (bought * (len(labels) - bought))
    found: np.ndarray = np.maximum(aucs, 1 - aucs).reshape(2, -1).max(axis=0)
    return found


# The shift test: for a session and a step there is a world of its own: everything that happened up to the page of the
# step, to the session and to its visitor on all clients; and after that nothing but another end of the session. What
# decides whether one may predict on it stays: it goes on for long enough, and something is bought or not, as it was,
# behind the last page. Clients, visitors and events have names of their own in every world: all worlds together are one
# log, which goes through the same sessions and features as the log itself. What differs was looked up in the future.


def _shift(features: FeatureTable, log: Log | None, steps: Sequence[int], seed: int) -> Findings:
    """Alter everything after a page in a sample of sessions; an alarm when a feature of that page moves."""
    if features.is_whole or log is None:
        yield Finding("not looked at: it needs the log that the features were made of")
        return
    n, changed = shift_test(log, features, steps=steps, seed=seed)
    text = f"values that moved with later events, of {n:,} sessions at a step"
    yield Finding(text, "", bool(changed), float(len(changed)))
    for one in changed[:_SHOWN]:
        where = "step {step}, {column}".format(**one)
        yield Finding("session {session}: {before} became {after}".format(**one), where, True)


def shift_test(
    log: Log, features: FeatureTable, *, steps: Sequence[int], sample: int = _ALTERED, seed: int = 0
) -> tuple[int, list[dict[str, Any]]]:
    """Alter everything after a step, for a sample of sessions; return how many, and every value that changed."""
    with open_engine() as engine, tempfile.TemporaryDirectory(prefix="diptych-shift-") as folder:
        scratch, given = Path(folder), SessionOptions(**features.about["session_options"])
        tables = sessionise(log, given, engine=engine)
        if tables.fingerprint != features.about["sessions_fingerprint"]:
            wrong = f"{features.folder} was not made of the sessions of {log.folder}"
            raise MismatchError(wrong, "give the log that it was made of")
        # Half of the sessions are of known visitors, where there are as many of both.
        order = np.argsort(draw_uniform(seed, features.session_ids), kind="stable")
        known = ~np.isnan(features.pages_before_identified[order])
        n_known = min(int(known.sum()), max(sample // 2, sample - int((~known).sum())))
        drawn = np.sort(np.concatenate([order[known][:n_known], order[~known][: sample - n_known]]))
        points = [(row, step) for step in steps for row in drawn[features.undecided(step)[drawn]]]
        if not points:
            return 0, []
        rows, at = np.array(points, dtype=np.int64).T
        identified = features.pages_before_identified[rows]
        worlds = {
            "world": np.arange(1, len(rows) + 1),
            "session_id": features.session_ids[rows],
            "step": at,
            "moment": features.view.page_times[rows, np.maximum(at, 1) - 1],
            "bought": features.labels[rows],
            "is_known": (identified == 0) | (identified < at),
        }
        _write_worlds(log, tables, worlds, scratch / "log", seed)
        again = sessionise(Log.open(scratch / "log"), given, engine=engine, folder=scratch / "sessions")
        options = FeatureOptions(**features.about["options"]).model_copy(update={"types": _ALL_TYPES})
        other = make_features(again, options=options, folder=scratch / "again", engine=engine)
        types = other.view.page_types
        is_other = ~np.isin(types, [*features.about["vocabulary"], NOTHING])
        view = replace(other.view, page_types=np.where(is_other, OTHER_PAGE, types))
        return len(points), [*_changes(features, replace(other, view=view), rows, at)]


def _write_worlds(log: Log, tables: SessionTables, worlds: dict[str, Any], folder: Path, seed: int) -> None:
    """Write a log of all worlds, numbered from 1 on, their event ids :data:`_APART`."""
    import duckdb
    import pyarrow as pa

    options, target = SessionOptions(**tables.about["options"]), folder / EVENTS / "bucket=00"
    gap = min(round(options.gap_minutes * 60 * SECOND) - 1, 600 * SECOND)
    given = {"ids": _APART, "by": options.by, "seed": seed, "gap": gap, "types": _TYPES}
    files = {"events": literals(log.buckets), "sessions": literals(tables.files("sessions"))}
    query = Path(__file__).with_name("worlds.sql").read_text()
    target.mkdir(parents=True)
    with duckdb.connect() as base:
        base.register("points", pa.table(worlds))
        query = query.format(file=literal(target / "part.parquet"), **files)
        base.execute(query, given | {"pages": options.pages + BUFFER})
    Log(log.about | {"buckets": 1, "fingerprint": "altered"}).save(folder / Log.marker())


def _changes(
    table: FeatureTable, other: FeatureTable, rows: np.ndarray, steps: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Yield what differs of (m,) rows, as known at their steps, in the table of all worlds."""
    ids = table.session_ids[rows] + _APART * np.arange(1, len(rows) + 1)
    places = np.searchsorted(other.session_ids[:-1], ids)
    lost = other.session_ids[places] != ids
    for step in np.unique(steps).tolist():
        mine = (steps == step) & ~lost
        moved = mine & (other.identified(step)[places] != table.identified(step)[rows])
        mine &= ~moved
        for name, those in (("(population)", (steps == step) & lost), ("(setting)", moved)):
            for session in table.session_ids[rows[those]].tolist():
                yield {"session": session, "step": step, "column": name, "before": "", "after": ""}
        before, after = (_known(one.at(of[mine], step)) for one, of in ((table, rows), (other, places)))
        for name, values in before.items():
            for at in np.flatnonzero(values != after[name]).tolist():
                change = {"session": int(table.session_ids[rows[mine][at]]), "step": step, "column": name}
                yield change | {"before": values[at], "after": after[name][at]}


def _known(view: SessionsView) -> dict[str, np.ndarray]:
    pages = {f"page_type_{one}": types for one, types in enumerate(view.page_types.T, 1)}
    pages |= {f"page_us_{one}": times for one, times in enumerate(view.page_times.T, 1)}
    return {name: values.astype(str) for name, values in {**view.columns, **pages}.items()}


CHECKS: dict[str, Callable[..., Findings]] = {
    "shift": _shift,
    "known-columns": _known_columns,
    "duplicates": _duplicates,
    "single-column": _single_column,
    "permuted-labels": _permuted_labels,
}
"""All checks, in the order of a report; the first two are of a table, others of parts of it."""


@dataclass(frozen=True)
class LeakAudit(Artifact, kind="leak_audit", version=3, recreate="diptych intent audit FEATURES"):
    """The findings of checks on a table of features; saved ``of`` its fingerprint."""

    about: dict[str, Any]  # one line about it, the parts, and the options
    checks: tuple[str, ...]  # those that ran
    findings: tuple[Finding, ...] = ()  # of all of them, in order

    @property
    def alarms(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.alarm]

    def line(self) -> str:
        return f"{self.about['line']}: {len(self.findings)} findings, alarms: {len(self.alarms)}"

    def table(self, every: bool = True) -> Table:
        """Return all findings; or alarms, and of every check without one what comes nearest."""
        shown: Sequence[Finding] = self.findings
        if not every:
            ordered = sorted(shown, key=lambda one: (-one.alarm, -(one.value or 0.0)))
            first = {one.check: one for one in reversed(ordered)}
            shown = [one for one in shown if one.alarm or one is first[one.check]]
        rows = []
        for one in shown:
            value, alarm = Cell.number(one.value, 3, one.low, one.high), Cell("ALARM" if one.alarm else "")
            rows.append([Cell(one.check), Cell(one.where), value, alarm, Cell(one.text, words=True)])
        after = "of checks without an alarm what comes nearest; --all shows all findings" * (not every)
        return Table("Leak audit", ("check", "where", "value", "", "what"), rows, after=after)

    def write_files(self, folder: Path) -> None:
        write_csv(folder / "findings.csv", Finding._fields, self.findings)


def audit(
    features: FeatureTable,
    log: Log | None = None,
    *,
    options: AuditOptions | None = None,
    checks: Sequence[str] | None = None,
) -> LeakAudit:
    options, steps = options or AuditOptions(), features.steps
    if not features.is_whole:
        chosen_of("feature set", [options.feature_set], features.sets)
    chosen, fitted = chosen_of("check", checks, list(CHECKS)), chosen_of("step", options.steps, steps)
    if options.steps is None:
        fitted = [step for step in steps if step in _STEPS] or [*steps[-1:]]
    at: dict[str, Sequence[int]] = {
        "duplicates": steps[-1:],
        "single-column": steps,
        "permuted-labels": fitted,
    }
    *slices, note = slices_of(features, TrainOptions(holdout=_LATER, seed=options.seed))
    found: list[Finding] = []
    for name, given in (("shift", (features, log, fitted, options.seed)), ("known-columns", (features,))):
        if name in chosen:
            found += (one._replace(check=name) for one in CHECKS[name](*given))
    for setting, step in track([*product(features.settings, steps)], "checks", unit="settings and steps"):
        mine = [name for name in chosen if step in at.get(name, ())]
        parts = _parts(features, options, slices, setting, step) if mine else ""
        for name in mine:
            for one in [Finding(parts)] if isinstance(parts, str) else CHECKS[name](parts):
                where = ", ".join(filter(None, (setting, f"step {step_text(step)}", one.where)))
                found.append(one._replace(check=name, where=where))
    about: dict[str, Any] = {"line": features.describe(), "log": log and log.name, "parts": note}
    about |= {"options": options.model_dump(mode="json")}
    return LeakAudit(about, tuple(chosen), tuple(sorted(found, key=lambda one: chosen.index(one.check))))


def _parts(
    table: FeatureTable, options: AuditOptions, slices: Sequence[np.ndarray], setting: str, step: int
) -> Parts | str:
    """Return the parts of a setting and step; or why they cannot be judged."""
    population = table.population(setting, step)
    keyed = Draws(options.seed, "sessions of an audit").below(1 << 31)
    order = population[np.argsort(draw_uniform(keyed, table.session_ids[population]), kind="stable")]
    rows = [np.sort(order[part[order]][: options.most]) for part in slices]
    labels = [table.labels[one] for one in rows]
    for name, one, least in zip(("earlier", "later"), labels, (FEWEST, options.fewest), strict=True):
        bought = int(one.sum())
        if min(bought, len(one) - bought) < least:
            return f"{bought:,} purchases among {len(one):,} {name} sessions: too few to say anything"
    features = table.features(setting, table.sets[0] if table.is_whole else options.feature_set, step)
    if not features:
        return "no feature is known at this step"
    views = [table.at(one, step) for one in rows]
    fitted = fit_features(features, views[0])
    matrices = [fitted.matrix(view) for view in views]
    return Parts(options, step, labels, views, fitted, matrices)
