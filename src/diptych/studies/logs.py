"""Rows of a shop's log: what is counted in it, what is predicted from it, and tables and charts of both."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import DataError, UsageError
from diptych.data.logs.schema import THESIS_DEVICES
from diptych.studies.evidence import HIGH, LOW
from diptych.studies.plan import MEASURE, Plan
from diptych.studies.predicting import (
    SETTINGS,
    Statistics,
    Values,
    description_of,
    importances,
    numbers,
    predictions,
)
from diptych.studies.results import Measurement, Measuring, Results
from diptych.studies.runner import setting_for
from diptych.studies.sources import Source, Subject
from diptych.studies.study import PUBLISHED, Row
from diptych.studies.verdict import Measured
from diptych.studies.workshop import FOREST, LogOptions, Workshop, command, open_log

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation


@dataclass(frozen=True)
class LogRow:
    """A row that is measured on a log, and the folder where it is kept."""

    name: str
    folder: Path
    workshop: Workshop

    def beside(self, folder: Path) -> str:
        """Return where a folder is, seen from the row's: both can be moved together."""
        return os.path.relpath(folder.resolve(), self.folder.resolve())


class LogRows(Source):
    """Rows of a log, each measured once; of a study of nothing, rows of what this package declares."""

    nothing = "the log has nothing of it, or too little"
    workshop: Workshop | None = None

    def begin(self, plan: Plan, rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, str]:
        """Open the log and choose the setting: the paper's log is recognised by its name."""
        study, given = plan.study, plan.choices.log
        for key in plan.choices.values:
            if key.partition(".")[0] != MEASURE:
                known = ", ".join(f"{MEASURE}.{one}" for one in study.measured_by) or "nothing"
                raise UsageError(
                    f"{key} is about a training, and {study.name} is of a shop's log",
                    f"what can be set: {known}",
                )
        chosen = plan.measuring()
        LogOptions.read(chosen, MEASURE)
        if study.of == "nothing":
            plan.name = "paper"
            return {}
        generated = study.setting(plan.name).generated
        if given is None and generated is None:
            raise DataError(f"no log given for {study.name}", "--data LOG, or --quick for a generated one")
        beside = plan.folder.resolve().parent / f"{study.paper.key}.logs"
        folder, log = open_log(beside, given, generated or {})
        if given is not None:
            plan.name = setting_for(study, log.name, plan.choices.setting)
        options = LogOptions.read({**study.setting(plan.name).measure, **chosen}, MEASURE)
        self.workshop = Workshop(folder, log, options)
        return {}

    def is_fixed(self, row: Row) -> bool:
        """Return that no seed changes a row."""
        return True

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        """Return how the log is counted."""
        given = {**plan.setting.measure, **plan.choices.below(MEASURE)}
        return {MEASURE: LogOptions.read(given, MEASURE).model_dump(mode="json")}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        """Say what is measured: it is made meanwhile."""
        shop, data = self.workshop, self.hint()[0]
        if shop is None:
            return Subject(row, None, plan.features, data=data, costs=True)
        state = shop.options.only(*(key for key in plan.study.measured_by if key != "jobs"))
        run = LogRow(row.name, plan.target(row, seed), shop)
        return Subject(run, None, plan.features, state=(shop.log.fingerprint, state), data=data, costs=True)

    def hint(self) -> tuple[str, str]:
        """Return what was measured, and how to see what there is."""
        data = "what is declared" if self.workshop is None else self.workshop.log.describe()
        return data, "diptych intent describe LOG shows what a log has"


# What is counted -----------------------------------------------------------------------------------

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DEVICES = {"> 1": "several", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five"}
_LENGTHS = "session-length"
_WITH_ENDS = ("per_session", "rate", "share")  # whose interval a statistic's row has: the first that is there
_SHARES = ("share", "purchase_share", "other_share", "unique_share", "rate")
_COUNTS = ("total", "count", "sessions", "transitions")  # end the names of columns that are counts
_FEWEST = 5  # sessions or transitions of a distribution: fewer say nothing, and may be known people
_MOST = 3


@dataclass(frozen=True)
class Counted(Measuring):
    """Rows and columns of a log's statistic, by templates.

    Attributes:
        statistic: its name.
        row: what a row of the study is called.
        columns: what a column is called → the statistic's column.
    """

    statistic: str
    row: str
    columns: Mapping[str, str]

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Count one row; nothing where the log has nothing of it."""
        row: LogRow = subject.run
        shop = row.workshop
        of = shop.description.rows
        values = shop.once(f"counting of {self.statistic}", lambda: self.counted(of)).get(row.name)
        if not values:
            return ()
        totals = {one["what"]: int(one["total"]) for one in of("overview")}
        on = Measured(shop.log.name, "all", sessions=totals["sessions"], protocol=shop.options.protocol)
        by, kept = command("describe", shop.log.folder), row.beside(shop.described_in)
        return (Measurement(values, on, shop.description.line(), (by,), kept=kept),)

    def counted(self, of: Statistics) -> Values:
        """Return all numbers: those of the statistic, shares in per cent, and what follows from them."""
        values: Values = {}
        rows = [row for row in of(self.statistic) if row.get("to_device", "tv") in THESIS_DEVICES]
        for row in rows:
            columns = values.setdefault(self._row(row), {})
            with_ends = next((one for one in _WITH_ENDS if one in row), None)
            for column, key in self.columns.items():
                name, scale = column.format(**_names(row)), 100.0 if key in _SHARES else 1.0
                ends = (row.get("low"), row.get("high")) if key == with_ends else (None, None)
                columns |= numbers(name, row[key], *ends, scale)
        self._derive(values, rows, of)
        return {name: found for name, found in values.items() if found}

    def _row(self, row: Mapping[str, Any]) -> str:
        return self.row.format(**_names(row)).replace(" ", "-")

    def _derive(self, values: Values, rows: Sequence[Mapping[str, Any]], of: Statistics) -> None:
        """Add what follows from several rows; leave out what has too few sessions."""
        match self.statistic:
            case "session-length-quantiles":
                lengths: dict[str, Counter[int]] = {}
                for row in of(_LENGTHS):
                    lengths.setdefault(self._row(row), Counter())[int(row["length"])] += int(row["sessions"])
                for name, columns in values.items():
                    if columns.get("sessions", 0) < _FEWEST:
                        values[name] = {}
                    else:
                        columns["P50 to P90"] = middle(lengths[name])
            case "week-days" | "hours":
                sessions = Counter[str]()
                for row in rows:
                    sessions[_names(row)["time"]] += row["sessions"]
                times = _DAYS if self.statistic == "week-days" else [f"{hour} h" for hour in range(24)]
                if sessions.total():
                    values["either"] = {one: 100 * sessions[one] / sessions.total() for one in times}
                for shares in values.values():
                    if shares and self.statistic == "week-days":
                        days = sorted((shares.get(day, 0.0) for day in _DAYS), reverse=True)
                        most, least = sum(days[:_MOST]), sum(days[_MOST:])
                        shares |= {"three most": most, "four least": least, "difference": abs(most - least)}
            case "channels":  # the thesis divides by n − 1
                rates = [100 * row["rate"] for row in rows if row["standardised"] is not None]
                for columns in values.values():
                    if "standardised" in columns and len(rates) > 1:
                        away = columns["rate"] - statistics.fmean(rates)
                        columns[f"standardised{PUBLISHED}"] = away / (statistics.stdev(rates) or 1.0)
            case "device-transitions":
                for name, columns in values.items():
                    own = [row for row in rows if self._row(row) == name]
                    nowhere = set(THESIS_DEVICES) - {row["to_device"] for row in own}
                    columns |= {f"to {device}": 0.0 for device in nowhere}
                    columns["transitions"] = float(sum(row["transitions"] for row in own))
                    if columns["transitions"] < _FEWEST:
                        values[name] = {}
            case "unique-queries":  # totals of the thesis are sums, which count some queries twice
                for non in ("", "non-"):
                    own = [row for row in rows if _names(row)["non"] == non and row["device"] != "all"]
                    if own and "all" in values:
                        total = float(sum(row["unique"] or 0 for row in own))
                        values["all"] |= {f"{non}purchase %": 100.0, f"{non}purchase count{PUBLISHED}": total}

    def withhold(self, results: Results) -> Results:
        """Return results as they may be printed: without numbers that give a small count away, or hidden rates."""
        from diptych.commerce.purchase_intent.shown import Discretion

        description, discretion = description_of(results.evidence()), Discretion.current()
        if description is None:
            return results
        of, small = description.rows, discretion.model_copy(update={"hide_rates": False})
        every = self.counted(of)
        # Of lengths themselves nothing is hidden: their mean between quantiles needs them all.
        masked = self.counted(lambda name: of(name) if name == _LENGTHS else small.rows(name, of(name)))

        def is_shown(row: str, column: str, value: float) -> bool:
            if column.endswith(_COUNTS) and discretion.small(int(value)):
                return False
            if discretion.hide_rates and (column.startswith("rate") or column.endswith((LOW, HIGH))):
                return False
            return column in masked.get(row, {}) or column not in every.get(row, {})

        def shown(one: Measurement, row: str) -> Measurement:
            kept = {column: value for column, value in one.values.items() if is_shown(row, column, value)}
            return replace(one, values=kept)

        entries = (
            replace(entry, measurements=tuple(shown(one, entry.row) for one in entry.measurements))
            for entry in results.entries
        )
        return replace(results, entries=tuple(entries))


def _names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what templates may name of a statistic's row."""
    buys = bool(row.get("purchase", row.get("purchaser")))
    day, hour = row.get("week_day"), row.get("hour")
    return {
        **row,
        "non": "" if buys else "non-",
        "kind": "purchase" if buys else "other",
        "any": "any" if row.get("device") == "all" else row.get("device"),
        "count": _DEVICES.get(row.get("devices", "")),
        "time": f"{hour} h" if day is None else _DAYS[day],
    }


def middle(counts: Mapping[int, int], low: float = 0.5, high: float = 0.9) -> float:
    """Return the mean of lengths between two quantiles, on which sessions count with what lies inside."""
    n, total, seen = sum(counts.values()), 0.0, 0
    for length, sessions in sorted(counts.items()):
        inside = min(seen + sessions, high * n) - max(seen, low * n)
        total += length * max(0.0, inside)
        seen += sessions
    return total / ((high - low) * n)


# What is predicted ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicted(Measuring):
    """A model with a feature set in a setting: F1 in per cent at each step, and what else is known of it."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate a model for all of its rows; nothing where a setting has too few sessions of either kind."""
        row: LogRow = subject.run
        model, _, setting = row.name.rsplit("-", 2)
        evaluation = row.workshop.once(model, lambda: row.workshop.evaluation(model))
        values = row.workshop.once(f"rows of {model}", lambda: predictions(evaluation, model))
        return _measured(row, evaluation, values.get(row.name), (setting,))


@dataclass(frozen=True)
class Importance(Measuring):
    """What each feature is worth to the random forest, per setting; and what static ones are, step by step."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one feature, or all static ones; nothing where no model had it."""
        row: LogRow = subject.run
        evaluation = row.workshop.once(FOREST, lambda: row.workshop.evaluation(FOREST))
        values = importances(evaluation.importance).get(row.name)
        return _measured(row, evaluation, values, SETTINGS, "importance by impurity of a random forest")


@dataclass(frozen=True)
class Declared(Measuring):
    """Whether a feature may change during a session, is in the baseline, and is of the visitor's history."""

    @property
    def about(self) -> dict[str, Any]:
        """With what is declared."""
        return {**super().about, "declared": _declared()}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Return one feature as it is declared."""
        protocol = "what may change during a session, and what the baseline has"
        on = Measured("features", "declared", protocol=protocol)
        values = _declared().get(subject.run.name)
        return (Measurement(values, on, "diptych.commerce.purchase_intent.features"),) if values else ()


def _declared() -> Values:
    from diptych.commerce.purchase_intent.features import FEATURES

    marks = {one.name: (one.dynamic, one.baseline, one.group == "history") for one in FEATURES if one.default}
    columns = ("dynamic", "baseline", "history")
    return {name: dict(zip(columns, map(float, own), strict=True)) for name, own in marks.items()}


def _measured(
    row: LogRow,
    evaluation: Evaluation,
    values: Mapping[str, float] | None,
    settings: Sequence[str],
    protocol: str = "",
) -> tuple[Measurement, ...]:
    """Return what an evaluation gives for a row: nothing where there are no values."""
    if not values:
        return ()
    cells, how = [cell for cell in evaluation.cells if cell["setting"] in settings], evaluation.protocol
    first = min(cell["step"] for cell in cells)
    sessions = {cell["setting"]: int(cell["sessions"]) for cell in cells if cell["step"] == first}
    folds = f"{how.folds}-fold cross-validation" if how.folds > 1 else "one split"
    way = "" if how.split == "random" else f" by {how.split}"
    of = f"{settings[0]} sessions" if len(settings) == 1 else "sessions"
    on = Measured(
        row.workshop.log.name,
        f"{of} of 12 pages and more",
        sessions=sum(sessions.values()),
        protocol=protocol or f"{folds}{way}, {'balanced' if how.balanced else 'unbalanced'} classes",
    )
    by = row.workshop.evaluated_by(how.models[0])
    return (Measurement(values, on, evaluation.line(), by, kept=row.beside(evaluation.folder)),)
