"""Tables and charts of information audits."""

from collections.abc import Mapping, Sequence

from diptych.analysis.information.audit import CONDITIONS, SIDES, Audit, Held, QuestionFigure, gap_of
from diptych.analysis.information.questions import GROUPS, READING, UNSTATED
from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table

SUMS = ("one caption", "task-relevant")  # groups that are sums of others; charts of kinds leave them out
MOST_BARS = 40  # questions that a chart shows; the table has all


def kinds_tables(audits: Mapping[str, Audit]) -> list[Table]:
    """Return per side the kinds of information, with what every audit, condition and probe finds of them."""
    columns = [
        (name, condition, probe)
        for condition in CONDITIONS
        for name, one in audits.items()
        if condition in one.conditions
        for probe in one.protocol.probes
    ]
    conditions = [condition for _, condition, _ in columns]
    groups = [(CONDITIONS[one], conditions.count(one)) for one in dict.fromkeys(conditions)]
    heads = [f"{name} {probe}" if len(audits) > 1 else f"{probe} probe" for name, _, probe in columns]
    tables = []
    for side, words in SIDES.items():
        rows = []
        meanings = {
            kind: text for one in audits.values() for kind, text in GROUPS[one.protocol.content][side].items()
        }
        for kind, meaning in meanings.items():
            held = [audits[name].held(condition, side, kind, probe) for name, condition, probe in columns]
            there = next((one.there for one in held if one is not None), None)
            if there is not None:
                cells = (Cell.number(*(one.percent, 1, *one.ends) if one else (None,)) for one in held)
                rows.append([Cell(kind), *cells, Cell.number(there, 2), Cell(meaning, words=True)])
        tables.append(
            Table(
                f"{words.capitalize()}: % held of each kind of information",
                ("information", *heads, "bits there", "what it is"),
                rows,
                groups=[("", 1), *groups, ("", 2)] if len(groups) > 1 else (),
            )
        )
    return tables


def audit_lines(audits: Mapping[str, Audit]) -> list[str]:
    """Return how the tables are read, and per audit its protocol and notes."""
    lines = [READING["held"]]
    for name, one in audits.items():
        head = f"{name}: " if len(audits) > 1 else ""
        lines += [f"{head}{one.protocol.line()}", *one.notes()]
    return lines + [READING[one] for one in dict.fromkeys(one.protocol.content for one in audits.values())]


def gap_tables(audit: Audit) -> list[Table]:
    """Return the bits that one caption and all captions state, and those held of them; nothing without facts."""
    rows = []
    for condition, sides in audit.conditions.items():
        for probe in audit.protocol.probes:
            gap = gap_of(sides["image"], probe)
            if gap is not None:
                head = Cell(f"{probe} probe", audit.of(condition).removeprefix(", "))
                bits = [Cell.number(one) for one in (gap.shared, gap.minimal, gap.optimal)]
                rows.append([head, *bits, *(Cell.number(one[0], 1, *one[1:]) for one in (gap.held, gap.gap))])
    columns = ("bits per image", "shared by all captions", "stated by one caption", "stated by any caption",
               "held of these", "gap")  # fmt: skip
    return [Table("Between one caption and all of them", columns, rows)] if rows else []


def question_tables(audit: Audit) -> list[Table]:
    columns = ("question", "probe", "held, %", "classes", "rows, train", "rows, test", "bits", "most frequent",
               "accuracy", "control", "selectivity", "by heart")  # fmt: skip
    tables = []
    for condition, sides in audit.conditions.items():
        for side, words in SIDES.items():
            rows = []
            for one in sides[side].questions:
                for probe, found in one.probes.items():
                    raw = f"; raw {100 * found.held.raw:.1f}" if found.held.raw < 0 else ""
                    note, percent = "{:.1f}–{:.1f}".format(*found.held.ends) + raw, found.held.percent
                    shares = (one.majority, found.accuracy, found.control_accuracy, found.selectivity)
                    rows.append(
                        [
                            Cell(one.key),
                            Cell(probe, words=True),
                            Cell(f"{percent:.1f}", note, value=percent),
                            *(Cell.number(count, 0) for count in (one.classes, *one.rows)),
                            Cell.number(one.entropy, 2),
                            *(Cell.number(100 * share, 0) for share in (*shares, found.by_heart)),
                        ]
                    )
            title = f"All numbers of {words}{audit.of(condition)}"
            tables.append(Table(title, columns, rows, after=READING["questions"], folded=True))
    return tables


def kinds_charts(audit: Audit) -> list[Chart]:
    charts = []
    for side, words in SIDES.items():
        kinds = [kind for kind in GROUPS[audit.protocol.content][side] if kind not in SUMS]
        held = {
            (condition, probe): {kind: sides[side].held(kind, probe) for kind in kinds}
            for condition, sides in audit.conditions.items()
            for probe in audit.protocol.probes
        }
        there = [kind for kind in kinds if any(found[kind] for found in held.values())]
        charts.append(_held_chart(audit, f"Kinds of information, {words}", there, held))
    return charts


def question_charts(audit: Audit) -> list[Chart]:
    """Return per side what is held of every question, the best held first; of many those with the most bits."""
    charts = []
    for side, words in SIDES.items():
        first: dict[str, QuestionFigure] = {}
        held: dict[tuple[str, str], dict[str, Held | None]] = {}
        for condition, sides in audit.conditions.items():
            for one in sides[side].questions:
                if not one.key.startswith(UNSTATED):
                    first.setdefault(one.key, one)
                for probe, found in one.probes.items():
                    held.setdefault((condition, probe), {})[one.key] = found.held
        most = sorted(first.values(), key=lambda one: -one.entropy * one.rows[1])[:MOST_BARS]
        most.sort(key=lambda one: (-next(iter(one.probes.values())).held.percent, one.key))
        after = f"The {MOST_BARS} of {len(first)} with the most bits." if len(first) > MOST_BARS else ""
        charts.append(_held_chart(audit, f"Questions, {words}", [one.key for one in most], held, after))
    return charts


def _held_chart(
    audit: Audit,
    title: str,
    keys: Sequence[str],
    held: Mapping[tuple[str, str], Mapping[str, Held | None]],
    after: str = "",
) -> Chart:
    drawn = []
    for (condition, probe), found in held.items():
        each = [found.get(key) for key in keys]
        name = f"{probe}{audit.of(condition)}" if len(audit.conditions) > 1 else f"{probe} probe"
        values = [None if one is None else one.percent for one in each]
        if probe != next(iter(audit.protocol.probes)):
            drawn.append(Series(name, values, mark="point"))
            continue
        low, high = ([None if one is None else one.ends[end] for one in each] for end in (0, 1))
        drawn.append(Series(name, values, low=low, high=high, mark="bar"))
    return Chart(title, drawn, "held, % of the bits there", "", keys, across=True, after=after)


def gap_charts(audit: Audit) -> list[Chart]:
    probe, charts = next(iter(audit.protocol.probes)), []
    for condition, sides in audit.conditions.items():
        if gap_of(sides["image"], probe) is None:
            continue
        kinds = ("shared", "partial", "specific", *SUMS)
        found = {kind: one for kind in kinds if (one := sides["image"].held(kind, probe)) is not None}
        there = Series("there", [one.there for one in found.values()], mark="bar", colour="muted", pale=True)
        low, high = ([one.there * one.ends[place] / 100 for one in found.values()] for place in (0, 1))
        bits = [one.bits for one in found.values()]
        held = Series("held", bits, low=low, high=high, mark="bar", texts=[f"{one:.1f}" for one in bits])
        title = f"Bits per image{audit.of(condition)}"
        charts.append(Chart(title, [there, held], "bits", "", list(found), across=True))
    return charts
