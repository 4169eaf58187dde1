"""What is counted in a shop's log: rows and columns of its statistics, and what may be printed of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diptych.commerce.purchase_intent.options import DescribeOptions, SessionOptions
from diptych.commerce.purchase_intent.shown import Discretion
from diptych.commerce.purchase_intent.statistics import STATISTICS, Description, shown
from diptych.commerce.purchase_intent.statistics.intervals import standardise
from diptych.core.options import command_line
from diptych.core.table import Table
from diptych.data.logs.schema import THESIS_DEVICES
from diptych.studies.compare import Further
from diptych.studies.evidence import HIGH, LOW, Evidence
from diptych.studies.logs import LogRow, kept_in
from diptych.studies.results import Measured, Measurement, Measuring, Results
from diptych.studies.sources import Subject
from diptych.studies.study import PUBLISHED, Study

Values = dict[str, dict[str, float]]  # row → column → number
Statistics = Callable[[str], Sequence[Mapping[str, Any]]]  # a statistic's rows by its name

_DEVICES = {"> 1": "several", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five"}
_LENGTHS = "session-length"
_WITH_ENDS = ("per_session", "rate", "share")  # whose interval a statistic's row has: the first that is there
_COUNTS = ("total", "count", "sessions", "transitions")  # end the names of columns that are counts
_FEWEST = 5  # sessions or transitions of a distribution: fewer say nothing, and may be known people
_NOT_LISTED = ("session-length-quantiles", "hours")  # statistics that are drawn alone


def numbers(column: str, *values: float | None, scale: float = 100.0) -> dict[str, float]:
    """Return a number and the two ends of its interval, as far as they are there."""
    names = (column, column + LOW, column + HIGH)
    return {name: scale * value for name, value in zip(names, values, strict=False) if value is not None}


@dataclass(frozen=True)
class Counted(Measuring):
    """Rows and columns of a log's statistic, by templates."""

    statistic: str
    row: str  # what a row of the study is called
    columns: Mapping[str, str]  # what a column is called → the statistic's column

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Count one row; nothing where the log has nothing of it."""
        row: LogRow = subject.run
        shop, description = row.shop, Description.open(row.shop.description)
        values, about = self.counted(description.rows).get(row.name, {}), description.about
        protocol = shop.options.protocol
        on = Measured(shop.log.name, "all", sessions=about["counts"]["sessions"], protocol=protocol)
        how = SessionOptions(**about["session_options"]), DescribeOptions(**about["options"])
        words = ("diptych", "intent", "describe", shop.log.folder, "--out", "description")
        command = command_line(words, *how)
        return row.measured(values, on, description.line(), shop.description, command)

    def counted(self, of: Statistics) -> Values:
        """Return all numbers: those of the statistic, shares in per cent, and what follows from them."""
        values: Values = {}
        rows = [row for row in of(self.statistic) if row.get("to_device", "tv") in THESIS_DEVICES]
        for row in rows:
            columns = values.setdefault(self._row(row), {})
            with_ends = next((one for one in _WITH_ENDS if one in row), None)
            for column, key in self.columns.items():
                ends = (row.get("low"), row.get("high")) if key == with_ends else ()
                scale = 100.0 if key.endswith(("share", "rate")) else 1.0
                columns |= numbers(column.format(**_names(row)), row[key], *ends, scale=scale)
        self._derive(values, rows, of)
        for columns in values.values():
            if min(columns.get("sessions", _FEWEST), columns.get("transitions", _FEWEST)) < _FEWEST:
                columns.clear()
        return {name: columns for name, columns in values.items() if columns}

    def _row(self, row: Mapping[str, Any]) -> str:
        return self.row.format(**_names(row)).replace(" ", "-")

    def _derive(self, values: Values, rows: Sequence[Mapping[str, Any]], of: Statistics) -> None:
        """Add what follows from several rows."""
        match self.statistic:
            case "session-length-quantiles":
                for name in [name for name, columns in values.items() if "mean" in columns]:
                    lengths = [row for row in of(_LENGTHS) if self._row(row) == name]
                    values[name]["P50 to P90"] = middle({row["length"]: row["sessions"] for row in lengths})
            case "week-days" | "hours":
                sessions = Counter[str]()
                for row in rows:
                    sessions[_names(row)["time"]] += row["sessions"]
                if sessions.total():
                    values["either"] = {time: 100 * n / sessions.total() for time, n in sessions.items()}
                for shares in values.values() if self.statistic == "week-days" else ():
                    days = sorted((shares.get(day, 0.0) for day in shown.WEEK_DAYS), reverse=True)
                    most, least = sum(days[:3]), sum(days[3:])
                    if shares:
                        shares |= {"three most": most, "four least": least, "difference": abs(most - least)}
            case "channels":  # the thesis divides by n − 1
                relative = standardise([row["rate"] for row in rows], ddof=1)
                for row, value in zip(rows, relative, strict=True):
                    values[self._row(row)] |= numbers(f"standardised{PUBLISHED}", value, scale=1.0)
            case "device-transitions":
                for name, columns in values.items():
                    from_it = {row["to_device"]: row["transitions"] for row in rows if self._row(row) == name}
                    columns |= {f"to {device}": 0.0 for device in THESIS_DEVICES if device not in from_it}
                    columns["transitions"] = float(sum(from_it.values()))
            case "unique-queries":  # totals of the thesis are sums, which count some queries twice
                for non in ("", "non-"):
                    each = [row for row in rows if _names(row)["non"] == non and row["device"] != "all"]
                    if each:
                        total = float(sum(row["unique"] or 0 for row in each))
                        values["all"] |= {f"{non}purchase %": 100.0, f"{non}purchase count{PUBLISHED}": total}

    def withhold(self, results: Results) -> Results:
        """Return results as they may be printed: without numbers that give a small count away, or hidden rates."""
        descriptions, discretion = kept_in(results.evidence(), Description.open), Discretion.current()
        if not descriptions:
            return results
        of, small = descriptions[0].rows, discretion.model_copy(update={"hide_rates": False})
        # Of lengths themselves nothing is hidden: their mean between quantiles needs them all.
        masked = self.counted(lambda name: of(name) if name == _LENGTHS else small.rows(name, of(name)))

        def is_shown(row: str, column: str, value: float) -> bool:
            is_count = column.endswith(_COUNTS)
            is_rate = column.startswith("rate") or column.endswith((LOW, HIGH))
            hidden = (is_count and discretion.small(int(value))) or (is_rate and discretion.hide_rates)
            return not hidden and column in masked.get(row, {})

        entries = []
        for entry in results.entries:
            (one,) = entry.measurements
            kept = {name: value for name, value in one.values.items() if is_shown(entry.row, name, value)}
            entries.append(replace(entry, measurements=(replace(one, values=kept),)))
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
        "time": f"{hour} h" if day is None else shown.WEEK_DAYS[day],
    }


def middle(counts: Mapping[int, int], low: float = 0.5, high: float = 0.9) -> float:
    """Return the mean of lengths between two quantiles, on which sessions count with what lies inside."""
    n, total, seen = sum(counts.values()), 0.0, 0
    for length, sessions in sorted(counts.items()):
        inside = min(seen + sessions, high * n) - max(seen, low * n)
        total += length * max(0.0, inside)
        seen += sessions
    return total / ((high - low) * n)


def statistics_further(study: Study, evidence: Evidence) -> Further:
    """Return a statistic as the page of a description shows it: with whatever the log has besides the study's rows."""
    name, descriptions = study.measure["statistic"], kept_in(evidence, Description.open)
    if not descriptions:
        return Further()
    drawn = name.removesuffix("-quantiles")
    charts = shown.charts_of(drawn, descriptions[0].rows(drawn))
    rows = [] if name in _NOT_LISTED else descriptions[0].rows(name)
    tables = shown.tables_of(name, rows, DescribeOptions(**descriptions[0].about["options"]))
    tables = tables or [chart.table() for chart in charts if rows]
    least = Discretion.current().least
    hidden = f"Counts below {least}, and what follows from them, are not shown. " if least > 1 else ""
    after = f"{STATISTICS.get(name).description}. In brackets: 95 % intervals. {hidden}"
    return Further([_plain(table, after) for table in tables], charts, **study.figures)


def _plain(table: Table, note: str) -> Table:
    """Return a table of text, without groups and folds."""
    over = [text for text, span in table.groups for _ in range(span)] or [""] * len(table.columns)
    header = [f"{text}: {name}" if text else name for text, name in zip(over, table.columns, strict=True)]
    rows = [[cell.line for cell in row] for row in table.rows]
    return Table.of(f"{table.caption}: all that the log has", f"{note}{table.after}".strip(), header, rows)
