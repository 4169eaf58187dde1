"""Published and measured side by side: what a verdict prints and a report draws."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from diptych.core.chart import Chart
from diptych.core.table import Table, Tabular
from diptych.studies.claims import Claim, Judgement, judge
from diptych.studies.evidence import Figure, Status
from diptych.studies.published import (
    EvaluatedOn,
    PrintedCell,
    PublishedRow,
    Verdict,
    cell_verdict,
    same_evaluation,
)
from diptych.studies.results import Entry, Measurement, Results, measure_of
from diptych.studies.study import AS_PAPER, PUBLISHED, Row, Study

if TYPE_CHECKING:
    from diptych.report.document import Gallery

JUDGED: tuple[Verdict, ...] = ("reproduced", "close", "not reproduced")


@dataclass(frozen=True)
class ComparedCell:
    """One column of one row."""

    column: str
    published: PrintedCell | None
    measured: Figure | None  # counted as the published one is
    right: Figure | None  # by its definition, where the paper counts otherwise
    verdict: Verdict


@dataclass(frozen=True)
class ComparedRow:
    """One row: its cells, and what they depend on."""

    row: Row
    printed: PublishedRow | None
    cells: tuple[ComparedCell, ...]
    entries: tuple[Entry, ...] = ()  # one per seed
    why: str = ""  # there are none
    protocol: str = ""
    commands: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    stands_for: str = ""

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(entry.seed for entry in self.entries)

    @property
    def cpu_seconds(self) -> float:
        return sum(entry.cpu_seconds for entry in self.entries)

    @property
    def name(self) -> str:
        """The paper's number and the label, once where they are the same; of a stand-in, what it is."""
        label, printed = self.row.label, self.printed
        if self.stands_for or printed is None or not printed.cells or printed.row.lower() == label.lower():
            return self.stands_for or label
        return f"{printed.row}  {label}"


@dataclass(frozen=True)
class Block:
    """The rows on one ground truth."""

    on: EvaluatedOn
    differences: tuple[str, ...]
    rows: tuple[ComparedRow, ...]

    @property
    def is_printed(self) -> bool:
        return bool(self.on.key)

    @property
    def is_measured(self) -> bool:
        return any(row.seeds for row in self.rows)

    def describe(self) -> str:
        """Return what the printed numbers were measured on and who measured it: in one line, differing rows by name."""
        labels: dict[str, list[str]] = {}
        for row in self.rows:
            if row.printed is not None:
                labels.setdefault(row.printed.on.describe(), []).append(row.row.label)
        each = [f"{', '.join(of)}: {on}" for on, of in labels.items()]
        by = f"by {self.on.by}: " if self.on.by else ""
        return by + ("; ".join(each) if len(each) > 1 else self.on.describe())


@dataclass(frozen=True)
class Further:
    """Further output of a study: tables, charts of its page, and remarks."""

    tables: Sequence[Table] = ()
    charts: Sequence[Chart | Gallery | Table] = ()
    remarks: Sequence[str] = ()
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Comparison(Tabular):
    """A study's verdict."""

    study: Study
    results: Results
    blocks: tuple[Block, ...]  # the first is on the collection's own pairs
    # each with what our numbers say and, by dataset or by who measured, what the paper's own do
    claims: tuple[tuple[Claim, Judgement, Mapping[str, Judgement]], ...]
    further: Further = field(default_factory=Further)

    def tables(self) -> list[Table]:
        """Return the printed and the measured table in one, what else was measured, and the claims."""
        return [one for one in self.shown() if isinstance(one, Table)]

    def lines(self) -> list[str]:
        """Return what the numbers are of, their protocols, verdicts and remarks."""
        return [one for one in self.shown() if isinstance(one, str)]

    def shown(self) -> list[Table | str]:
        """Return tables and lines in the order in which they are printed."""
        from diptych.studies.page import comparison_shown

        return comparison_shown(self)

    @property
    def is_generated(self) -> bool:
        """Return whether the data are generated: effects were planted, and no claim about the world is tested."""
        return self.results.setting == "quick" and self.study.of != "nothing"

    def counts(self) -> dict[Verdict, int]:
        found = [cell.verdict for block in self.blocks for row in block.rows for cell in row.cells]
        return {verdict: found.count(verdict) for verdict in JUDGED if verdict in found}

    def statuses(self) -> Counter[Status]:
        return Counter(judgement.status for _, judgement, _ in self.claims)

    @property
    def reproduces(self) -> bool:
        return bool(self.counts())

    @property
    def label(self) -> str:
        """Say in one sentence what the numbers are and are not."""
        study, entries = self.study, self.results.entries
        if not entries:
            why = next(iter(self.results.left_out.values()), "")
            return f"Nothing can be measured: {why}." if why else "Nothing has been run."
        setting = study.settings[entries[0].setting]
        if study.of == "nothing":
            return f"Held against the paper: {setting.description}."
        data = "; ".join(dict.fromkeys(entry.data for entry in entries))
        how = f"on {data}, as the setting {entries[0].setting!r} says ({setting.description})"
        given = list(dict.fromkeys(entry.given for entry in entries if entry.given))
        stand_ins = self.results.stand_ins.items()
        also = {
            "changes of": sorted({key for entry in entries for key in entry.changed}),
            "what was given:": given,
            "stand-ins:": [f"{what} for {study.row(row).label}" for row, what in stand_ins],
        }
        how += "".join(f", with {what} {', '.join(each)}" for what, each in also.items() if each)
        if self.reproduces:
            ending = " Weights and vectors are taken for what they were given as." if given else ""
            return f"A reproduction: {how}.{ending}"
        if study.ours or not study.printed_on():
            return f"Not in the paper: {how}."
        first = self.blocks[0]
        of = f" The paper's numbers are of {first.describe()}." if first.is_printed else ""
        return f"Not a reproduction: {how}.{of} They are shown for orientation, and only claims are judged."


def judged_in_the_paper(study: Study) -> list[tuple[Claim, dict[str, Judgement]]]:
    """Do the paper's own numbers support its text? Per claim and dataset, or per claim and who measured."""
    evidence = study.printed_evidence()
    return [
        (claim, {key: judge(claim, given, keys=[key]) for key, given in evidence.items()})
        for claim in study.claims
    ]


def compare(study: Study, results: Results) -> Comparison:
    """Compare results with what is printed, and judge claims on both."""
    results = measure_of(study).withhold(results)
    blocks = tuple(_block(study, of, on) for of, on in _evaluations(study, results))
    evidence = results.evidence()
    # On other data than the paper's a claim is judged whatever it is about.
    keys = [] if study.several else [on.key for name in results.datasets for on in study.printed_on(name)]
    if study.several:
        evidence = replace(evidence, sources=study.printed_evidence())
    elif keys:
        sources = {block.on.key: results.evidence(block.on.positives) for block in blocks}
        figures, fixed = evidence.figures, evidence.fixed
        if not blocks[0].differences:  # with the rows that the paper itself quotes from elsewhere
            printed = study.printed_evidence()[keys[0]].figures
            rows = [row for table in study.published for row in table.rows if row.config is None]
            quoted = {row.name: printed[row.name] for row in rows if row.name in printed}
            figures, fixed = {**quoted, **figures}, fixed | frozenset(quoted)
        evidence = replace(evidence, figures=figures, fixed=fixed, sources=sources)
    claims = tuple(
        (claim, _explained(judge(claim, evidence, list(results.stand_ins), keys), results.left_out), in_paper)
        for claim, in_paper in judged_in_the_paper(study)
    )
    further = resolve_name(study.further)(study, evidence) if study.further else Further()
    return Comparison(study, results, blocks, claims, further)


def _explained(judgement: Judgement, left_out: Mapping[str, str]) -> Judgement:
    """Return a judgement that says why the first row it lacks was left out, where that is known."""
    rows = (re.search(rf" of {re.escape(row)}\b", judgement.figure) and why for row, why in left_out.items())
    only = next(iter(left_out.values()), "") if len({*left_out.values()}) == 1 else ""
    why = only or next(filter(None, rows), "") if judgement.status == "not tested" else ""
    return replace(judgement, why=why)


def _evaluations(study: Study, results: Results) -> Iterator[tuple[Results, list[EvaluatedOn]]]:
    """Yield the results of each block, and what the printed numbers next to them are of, if there are any."""
    printed: dict[tuple[str, str], list[EvaluatedOn]] = {}
    for on in study.printed_on():
        printed.setdefault((on.dataset, on.by if study.several else on.key), []).append(on)
    first = [] if study.several else list(printed.values())[:1]
    for name in results.datasets or ([] if study.several else [""]):
        ours, own = results.on(name), EvaluatedOn("nothing", "none")
        if ours.entries:
            own = replace(own, **vars(ours.entries[0].measurements[0].on) | {"reranked": 0, "unranked": ""})
        found = [on for (dataset, _), on in printed.items() if dataset == name.lower()]
        yield from ((ours, on) for on in found or first or [[own]])
    if study.several:  # then the rest of the table
        rest = {on.dataset for on in study.published[0].evaluated_on} - set(map(str.lower, results.datasets))
        yield from ((results.on(name), on) for (name, _), on in printed.items() if name in rest)


def _block(study: Study, results: Results, on: Sequence[EvaluatedOn]) -> Block:
    """Return rows with what is printed of them on one of ``on``, which differ where rows have other tasks."""
    rows = []
    for row in study.rows:
        printed = next((found for one in on if (found := study.printed(row.name, one.key)) is not None), None)
        is_known = results.of(row.name) or row.name in results.left_out
        if printed is not None or (on[0].positives == "own" and is_known):
            rows.append(_row(study, results, row, printed, on[0] if printed is None else printed.on))
    differences = next((row.differences for row in rows if row.seeds), ())
    if len(on) > 1:
        differing = [row for row in rows if row.printed is not None and row.differences]
        differences = tuple(f"{row.row.label}: {', '.join(row.differences)}" for row in differing)
    return Block(on[0], differences, tuple(rows))


def _row(
    study: Study, results: Results, row: Row, printed: PublishedRow | None, on: EvaluatedOn
) -> ComparedRow:
    measured = results.measured(row.name, on.positives)
    entries, stands_for = tuple(entry for entry, _ in measured), results.stand_ins.get(row.name, "")
    needs = "not run" if on.positives == "own" else f"needs --positives {on.positives}:PATH"
    first = measured[0][1] if measured else Measurement({}, on, "")
    why = "" if measured else results.left_out.get(row.name, needs)
    differences = tuple(same_evaluation(first.on, on)) if measured and on.key else ()
    commands = tuple(text.format(run=entries[0].run) for text in first.commands)
    is_changed = results.setting not in AS_PAPER or any(one.changed or one.stands_for for one in entries)
    another: Verdict | None = "other data" if differences else "other training" if is_changed else None
    cells = []
    for column in study.columns:
        names = (column.name + PUBLISHED, column.name)
        as_published, right = (results.values(row.name, name, on.positives) for name in names)
        values = as_published or right
        cell = None if printed is None else printed.cells.get(column.name)
        verdict: Verdict = "not printed" if values else "not run"
        if values and cell is not None:
            verdict = another or cell_verdict(values, cell)
        figure = Figure.of(values) if values else None
        counted_rightly = Figure.of(right) if as_published and right else None
        cells.append(ComparedCell(column.name, cell, figure, counted_rightly, verdict))
    context = why, first.protocol, commands, differences, stands_for
    return ComparedRow(row, printed, tuple(cells), entries, *context)
