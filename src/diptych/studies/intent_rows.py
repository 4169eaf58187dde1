"""Rows of the studies of thesis chapter 6: devices, channels, classes of sessions, models, and what they are called."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.table import Table
from diptych.data.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.studies.log_checks import HIGH, LOW
from diptych.studies.study import PUBLISHED, Column, Measurement, Row, Setting, SettingName, Subject
from diptych.studies.verdict import Evidence, Measured

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.studies.logs import LogRow
    from diptych.studies.results import Results


DEVICES = dict(zip(THESIS_DEVICES, ("Smartphone", "PC", "Tablet", "Game console", "TV"), strict=True))
"""Device types of the thesis and what its tables call them."""

CHANNELS = dict(zip(THESIS_CHANNELS, ("Direct", "Paid", "Organic", "Other"), strict=True))
"""Channels of the thesis and what its table calls them."""

CLASSES = {"purchase": "Purchase sessions", "non-purchase": "Non-purchase sessions"}
"""The two kinds of sessions."""

MODELS = {
    "random-forest": "RF",
    "gradient-boosting": "GBDT",
    "neural-network": "NN",
    "svm": "SVM",
    "logistic-regression": "LR",
    "k-nearest": "KNN",
}
"""Classifiers of the thesis, those that it finds best first."""

SETS = ("baseline", "extended")
SETTINGS = ("anonymous", "identified")

STEPS = tuple(str(step) for step in range(11))
"""Columns of F1: pages that are open."""


def row_name(name: str) -> str:
    """A device or channel as a row is called: it is part of a folder's name."""
    return name.replace(" ", "-")


def log_row(name: str, label: str, extra: str = "") -> Row:
    """A row of a study of a log."""
    return Row(name, label, extra=extra, log_alone=True)


def device_rows() -> tuple[Row, ...]:
    """A row per device type."""
    return _rows(DEVICES.items())


def channel_rows() -> tuple[Row, ...]:
    """A row per channel."""
    return _rows(CHANNELS.items())


def class_rows() -> tuple[Row, ...]:
    """A row per kind of session, and one of both together."""
    return (*_rows(CLASSES.items()), log_row("either", "all sessions", "of both kinds together"))


def prediction_row(model: str, feature_set: str, setting: str) -> str:
    """The name of what a model does with a feature set in a setting."""
    return f"{model}-{feature_set}-{setting}"


def prediction_rows() -> tuple[Row, ...]:
    """A row per model, feature set and setting."""
    return tuple(
        log_row(prediction_row(model, feature_set, setting), f"{label}, {feature_set}, {setting}")
        for setting in SETTINGS
        for feature_set in SETS
        for model, label in MODELS.items()
    )


def _rows(named: Iterable[tuple[str, str]]) -> tuple[Row, ...]:
    return tuple(log_row(row_name(name), label) for name, label in named)


COUNTED_BY = ("gap", "by", "ddof", "journey")
PREDICTED_BY = ("gap", "by", "compat", "split", "folds", "steps", "sessions", "seed", "jobs")

SHARES = (
    Column("purchase", decimals=2),
    Column("non-purchase", decimals=2),
    Column("standardised", decimals=2),
)
"""Columns of tables of channels and devices."""

BESIDES = "What a log has besides stands in the table below, and is part of its standardised rates."

_OWN = "the shop's own log, which was not published: for whoever has it, under the name thesis-shop"
_SCENES = {"visitors": 30_000}
_EVENTS = "seconds; a few per million events on a processor, once they are imported"
_FITS = "1–2 h; on a processor, for all six models, the SVM most of it"
_SAMPLED = 29_301
"""As many sessions as the thesis has in both settings together."""

COUNTING: dict[SettingName, Setting] = {
    "paper": Setting(description=_OWN, recipes={}, time=_EVENTS),
    "data": Setting(description="any log", recipes={}, time=_EVENTS),
    "quick": Setting(
        description="a generated shop log with planted effects",
        recipes={},
        log=_SCENES,
        time="30 s; on a processor, for all of them together",
    ),
}
"""Of statistics."""

PREDICTING: dict[SettingName, Setting] = {
    "paper": Setting(
        description=f"{_OWN}; populations and random folds as in the thesis",
        recipes={},
        measure={"compat": "published", "split": "random", "folds": 10, "sessions": _SAMPLED},
        time=_FITS,
    ),
    "data": Setting(
        description="any log, at most as many sessions as in the thesis, folds by visitor, no purchase near the step",
        recipes={},
        measure={"split": "grouped", "folds": 10, "sessions": _SAMPLED},
        time=_FITS,
    ),
    "quick": Setting(
        description="a generated shop log with planted effects, four steps and three folds by visitor",
        recipes={},
        measure={"split": "grouped", "folds": 3, "steps": [0, 1, 5, 10], "sessions": 2000},
        log=_SCENES,
        time="1 min; on a processor, for both",
    ),
}
"""Of predictions."""

_DECLARATIONS = Setting(description="features as this package declares them", recipes={}, time="at once")

DECLARED: dict[SettingName, Setting] = {"paper": _DECLARATIONS, "quick": _DECLARATIONS}
"""Of what needs no log."""

_VERSION = 1


@dataclass(frozen=True)
class Counted:
    """Rows and columns that are counted in a log."""

    name: str
    counting: Counting
    statistics: tuple[str, ...]

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the log and what a person chooses."""
        return {"kind": "statistics", "counting": self.name, "of": list(self.statistics), "version": _VERSION}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One row; nothing where the log has nothing of it."""
        row: LogRow = subject.run
        workshop = row.workshop
        description = workshop.description
        of = description.rows
        values = workshop.once(f"counting of {self.name}", lambda: self.counting(of)).get(row.row.name)
        if not values:
            return ()
        counts = {one["what"]: one["total"] for one in of("overview")}
        on = Measured(
            workshop.log.name,
            "all",
            sessions=int(counts["sessions"]),
            protocol=workshop.options.sessions_are(),
        )
        return (
            Measurement(
                values,
                on,
                description.line(),
                commands=(workshop.command("describe", workshop.log.folder),),
                kept=beside(workshop.described_in, row.folder),
            ),
        )

    def withhold(self, results: Results) -> Results:
        """Return results as they may be printed: without numbers that give a small count away, or hidden rates."""
        from diptych.commerce.purchase_intent.shown import Discretion

        of, discretion = statistics_of(results.evidence()), Discretion.current()
        if of is None:
            return results
        small = discretion.model_copy(update={"hide_rates": False})
        every, masked = (
            self.counting(of),
            self.counting(lambda name: small.rows(name, of(name)) if name != "session-length" else of(name)),
        )

        def shown(row: str, column: str, value: float) -> bool:
            if column.endswith(_COUNTED) and discretion.small(int(value)):
                return False
            if discretion.hide_rates and (column.startswith("rate") or column.endswith((LOW, HIGH))):
                return False
            return column in masked.get(row, {}) or column not in every.get(row, {})

        entries = []
        for entry in results.entries:
            kept = [
                replace(
                    one,
                    values={
                        name: value for name, value in one.values.items() if shown(entry.row, name, value)
                    },
                )
                for one in entry.measurements
            ]
            entries.append(replace(entry, measurements=tuple(kept)))
        return replace(results, entries=tuple(entries))


def beside(folder: Path, row: Path) -> str:
    """Where a folder is, seen from a row's: both can be moved together."""
    return os.path.relpath(folder.resolve(), row.resolve())


def statistics_of(evidence: Evidence) -> Statistics | None:
    """The statistics that rows were measured from; None of printed numbers, and where they are gone."""
    description = _description_of(evidence)
    return None if description is None else description.rows


def _description_of(evidence: Evidence) -> Description | None:
    from diptych.commerce.purchase_intent.statistics import Description

    folders = dict.fromkeys(folder for folders in evidence.kept.values() for folder in folders)
    return next((Description.open(folder) for folder in folders if folder.is_dir()), None)


def tables_of(name: str) -> Callable[[Evidence], list[Table]]:
    """Return a statistic as the page of a description shows it: whatever the log has besides the thesis's rows."""

    def tables(evidence: Evidence) -> list[Table]:
        from diptych.commerce.purchase_intent.shown import Discretion
        from diptych.commerce.purchase_intent.statistics import STATISTICS, DescribeOptions, shown

        description = _description_of(evidence)
        if description is None or not description.rows(name):
            return []
        rows = description.rows(name)
        found = shown.tables_of(name, rows, DescribeOptions(**description.about["options"]))
        found = found or [chart.table() for chart in shown.charts_of(name, rows)]
        least = Discretion.current().least
        hidden = f"Counts below {least}, and what follows from them, are not shown. " if least > 1 else ""
        note = f"{STATISTICS.get(name).description}. In brackets: 95 % intervals. {hidden}"
        return [_plain(table, note) for table in found]

    return tables


def _plain(table: Table, note: str) -> Table:
    """Return a table of text, without groups and folds."""
    over = [text for text, span in table.groups for _ in range(span)] or [""] * len(table.columns)
    header = [f"{text}: {name}" if text else name for text, name in zip(over, table.columns, strict=True)]
    rows = [[cell.line for cell in row] for row in table.rows]
    return Table.of(f"{table.caption}: all that the log has", f"{note}{table.after}".strip(), header, rows)


Statistics = Callable[[str], Sequence[Mapping[str, Any]]]
"""A statistic's rows by its name."""

Values = dict[str, dict[str, float]]
"""Row → column → number."""

Counting = Callable[[Statistics], Values]

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS = tuple(f"{hour} h" for hour in range(24))

MIDDLE = "P50 to P90"
"""The mean length of sessions between the two percentiles, where the thesis compares them."""

ANY = "any"
"""Rows of all devices together."""

_ALL = "all"
_FEWEST = (
    5  # sessions or transitions that a distribution is made of: fewer say nothing, and may be known people
)
_MOST = 3
_COUNTED = ("total", "count", "sessions", "transitions")  # end the names of columns that are counts
_VISITORS = {"> 1": "several", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five"}


def totals(of: Statistics) -> Values:
    """Table 6.1: counts of the whole log."""
    return {row_name(row["what"]): {"total": float(row["total"])} for row in of("overview")}


def lengths(of: Statistics) -> Values:
    """Figure 6.2: how long sessions are, per device and kind of session."""
    counts: dict[str, Counter[int]] = {}
    for row in of("session-length"):
        counts.setdefault(_length_row(row), Counter())[int(row["length"])] += int(row["sessions"])
    values = {}
    for row in of("session-length-quantiles"):
        if (row["sessions"] or 0) < _FEWEST:
            continue
        name = _length_row(row)
        columns = {"mean": "mean", "p50": "P50", "p90": "P90", "p99": "P99", "max": "longest"}
        values[name] = _numbers({column: row[key] for key, column in columns.items()})
        values[name] |= {"sessions": float(row["sessions"]), MIDDLE: middle(counts[name])}
    return values


def middle(counts: Mapping[int, int], low: float = 0.5, high: float = 0.9) -> float:
    """The mean length of those sessions that are longer than a share ``low`` of all and shorter than the longest
    1 − ``high``; sessions on an end count with the part of them that lies inside."""
    n = sum(counts.values())
    total, seen = 0.0, 0
    for length, sessions in sorted(counts.items()):
        inside = min(seen + sessions, high * n) - max(seen, low * n)
        total += length * max(0.0, inside)
        seen += sessions
    return total / ((high - low) * n)


def week_days(of: Statistics) -> Values:
    """Figure 6.3: sessions per day, and the three busiest days against the other four."""
    values = _over_time(of("week-days"), "week_day", DAYS)
    for shares in values.values():
        days = sorted((shares.get(day, 0.0) for day in DAYS), reverse=True)
        most, least = sum(days[:_MOST]), sum(days[_MOST:])
        shares |= {"three most": most, "four least": least, "difference": abs(most - least)}
    return values


def hours(of: Statistics) -> Values:
    """Figure 6.4: sessions per hour of the day."""
    return _over_time(of("hours"), "hour", HOURS)


def channel_shares(of: Statistics) -> Values:
    """Table 6.2: with n − 1 under the deviation of standardised rates as it is printed there."""
    values = _shares(of("channels"), "channel", CHANNELS)
    groups = sum(row["standardised"] is not None for row in of("channels"))
    for columns in values.values():
        if "standardised" in columns and groups > 1:
            columns[f"standardised{PUBLISHED}"] = columns["standardised"] * math.sqrt((groups - 1) / groups)
    return values


def device_shares(of: Statistics) -> Values:
    """Table 6.4."""
    return _shares(of("devices"), "device", DEVICES)


def device_counts(of: Statistics) -> Values:
    """Table 6.3: of purchasers and of other known visitors, how many have so many types of devices."""
    values: Values = {}
    for row in of("devices-per-visitor"):
        name = _VISITORS.get(row["devices"])
        if name is not None:
            column = "purchasers" if row["purchaser"] else "non-purchasers"
            values.setdefault(name, {}).update(_share(column, row))
    return values


def transitions(of: Statistics) -> Values:
    """Figure 6.5: from the device of the session before a purchase session to that of the purchase session; where
    nobody was seen to go from a device that somebody left or kept, 0."""
    values: Values = {}
    for row in of("device-transitions"):
        if row["from_device"] in DEVICES and row["to_device"] in DEVICES:
            nowhere = {f"to {device}": 0.0 for device in DEVICES}
            columns = values.setdefault(row_name(row["from_device"]), nowhere)
            columns.pop(f"to {row['to_device']}")  # it may be unknown
            columns |= _share(f"to {row['to_device']}", row)
            columns["transitions"] = columns.get("transitions", 0.0) + row["transitions"]
    return {name: columns for name, columns in values.items() if columns["transitions"] >= _FEWEST}


def queries(of: Statistics) -> Values:
    """Table 6.5: queries per session, and which devices they come from."""
    values: Values = {}
    for name, kind, row in _by_class(of("queries")):
        columns = values.setdefault(name, {})
        column = f"{kind} per session"
        columns |= _numbers(
            {column: row["per_session"], column + LOW: row["low"], column + HIGH: row["high"]}
        )
        columns |= _numbers({f"{kind} %": row["share"]}, 100.0)
    return values


def unique_queries(of: Statistics) -> Values:
    """Table 6.6: different queries; the thesis's totals are the sums of its devices, which count some twice."""
    values: Values = {}
    rows = of("unique-queries")
    for name, kind, row in _by_class(rows):
        columns = values.setdefault(name, {})
        columns |= _numbers({f"{kind} count": row["unique"]})
        columns |= _numbers({f"{kind} %": row["share"], f"{kind} unique %": row["unique_share"]}, 100.0)
    for kind, purchase in zip(CLASSES, (True, False), strict=True):
        parts = [row["unique"] or 0 for row in rows if row["purchase"] is purchase and row["device"] != _ALL]
        if parts and _ALL in values:
            values[_ALL] |= {f"{kind} %": 100.0, f"{kind} count{PUBLISHED}": float(sum(parts))}
    return values


def _over_time(rows: Sequence[Mapping[str, Any]], key: str, columns: Sequence[str]) -> Values:
    """Shares of a class's sessions per day or hour, and those of both classes together."""
    values: Values = {}
    sessions: Counter[str] = Counter()
    for row in rows:
        kind = "purchase" if row["purchase"] else "non-purchase"
        values.setdefault(kind, {}).update(_share(columns[row[key]], row))
        sessions[columns[row[key]]] += row["sessions"]
    if sessions.total():
        values["either"] = {column: 100 * sessions[column] / sessions.total() for column in columns}
    # A class without a session has no shares.
    return {name: found for name, found in values.items() if found}


def _shares(rows: Sequence[Mapping[str, Any]], key: str, names: Mapping[str, str]) -> Values:
    return {
        row_name(row[key]): {
            **_numbers({"purchase": row["purchase_share"], "non-purchase": row["other_share"]}, 100.0),
            **_numbers({"rate": row["rate"], f"rate{LOW}": row["low"], f"rate{HIGH}": row["high"]}, 100.0),
            **_numbers({"standardised": row["standardised"]}),
        }
        for row in rows
        if row[key] in names
    }


def _share(column: str, row: Mapping[str, Any]) -> dict[str, float]:
    """A share with its interval, in per cent."""
    return _numbers({column: row["share"], column + LOW: row["low"], column + HIGH: row["high"]}, 100.0)


def _by_class(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Row of the study, kind of session, row of the statistic; of the thesis's devices and all together."""
    for row in rows:
        if row["device"] == _ALL or row["device"] in DEVICES:
            yield row_name(row["device"]), "purchase" if row["purchase"] else "non-purchase", row


def _length_row(row: Mapping[str, Any]) -> str:
    device = ANY if row["device"] == _ALL else row_name(row["device"])
    return f"{device}-{'purchase' if row['purchase'] else 'other'}"


def _numbers(given: Mapping[str, float | None], scale: float = 1.0) -> dict[str, float]:
    """Those that there are."""
    return {name: scale * value for name, value in given.items() if value is not None}
