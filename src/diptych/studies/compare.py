"""Published and measured side by side: what a verdict prints and a report draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from diptych.core.chart import Chart
from diptych.core.table import Table
from diptych.studies.claims import Claim, Judgement, judge
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.formulas import Finding
from diptych.studies.published import Cell, EvaluatedOn, PublishedRow
from diptych.studies.results import Entry, Results, measure_of
from diptych.studies.study import AS_PAPER, PUBLISHED, Row, Study, named_function
from diptych.studies.verdict import (
    Measured,
    Verdict,
    cell_verdict,
    printed_by,
    printed_evidence,
    same_evaluation,
)

if TYPE_CHECKING:
    from diptych.report.document import Gallery

OWN = "own"
"""The key of what ours were measured on, where nothing is printed of it."""

JUDGED: tuple[Verdict, ...] = ("reproduced", "close", "not reproduced")


@dataclass(frozen=True)
class ComparedCell:
    """One column of one row."""

    column: str
    published: Cell | None
    measured: Figure | None
    right: Figure | None
    verdict: Verdict


@dataclass(frozen=True)
class ComparedRow:
    """One row: its cells, and what they depend on; ``why`` there are none."""

    row: Row
    printed: PublishedRow | None
    cells: tuple[ComparedCell, ...]
    entries: tuple[Entry, ...] = ()
    why: str = ""
    protocol: str = ""
    commands: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    stands_for: str = ""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that were measured."""
        return tuple(entry.seed for entry in self.entries)

    @property
    def epochs(self) -> tuple[int, int]:
        """How many were trained, and the best; 0 where nothing was."""
        return self.entries[0].epochs if self.entries else (0, 0)

    @property
    def cpu_seconds(self) -> float:
        """The processor time of all seeds."""
        return sum(entry.cpu_seconds for entry in self.entries)

    @property
    def name(self) -> str:
        """The paper's number and the label, once where they are the same; of a stand-in, what it is."""
        label = self.stands_for or self.row.label
        return f"{self.number}  {label}" if self.number and not self.stands_for else label

    @property
    def number(self) -> str:
        """The paper's number or words; empty where it prints no number, or where the label says the same."""
        printed = "" if self.printed is None or not self.printed.cells else self.printed.row
        return "" if printed.lower() == self.row.label.lower() else printed


@dataclass(frozen=True)
class Block:
    """The rows on one ground truth."""

    on: EvaluatedOn
    differences: tuple[str, ...]
    rows: tuple[ComparedRow, ...]

    @property
    def is_printed(self) -> bool:
        """Whether anything is printed of it; else ours stand alone."""
        return self.on.key != OWN

    def describe(self) -> str:
        """Return what the printed numbers were measured on, and by whom: in one line, with rows that differ by name."""
        each: dict[str, list[str]] = {}
        for row in self.rows:
            if row.printed is not None:
                each.setdefault(row.printed.on.describe(), []).append(row.row.label)
        by = f"by {self.on.by}: " if self.on.by else ""
        if len(each) < 2:
            return by + self.on.describe()
        return by + "; ".join(f"{', '.join(rows)}: {on}" for on, rows in each.items())


@dataclass(frozen=True)
class Further:
    """What a study makes of its numbers besides: tables, charts of its page, and remarks."""

    tables: Sequence[Table] = ()
    charts: Sequence[Chart | Gallery | Table] = ()
    remarks: Sequence[str] = ()
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """A study's verdict.

    Attributes:
        study: which.
        results: what was measured.
        label: in one sentence, what these numbers are and are not.
        reproduces: whether cells get verdicts.
        blocks: tables; the first is on the collection's own pairs.
        claims: each with what our numbers say and, by dataset, what the paper's own do.
        further: what the study makes of the numbers besides.
        evidence: what claims were judged on.
    """

    study: Study
    results: Results
    label: str
    reproduces: bool
    blocks: tuple[Block, ...]
    claims: tuple[tuple[Claim, Judgement, Mapping[str, Judgement]], ...]
    further: Further = field(default_factory=Further)
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def is_generated(self) -> bool:
        """Whether the data was generated: effects were planted, and no claim about the world is tested."""
        return self.results.setting == "quick"

    def counts(self) -> dict[Verdict, int]:
        """Return how many cells have each verdict, of those that were measured and are printed."""
        cells = [cell for block in self.blocks for row in block.rows for cell in row.cells]
        found = {one: sum(cell.verdict == one for cell in cells) for one in JUDGED}
        return {one: count for one, count in found.items() if count}


def further_of(study: Study, evidence: Evidence) -> Further:
    """Return what a study makes of its numbers besides."""
    if not study.further:
        return Further()
    found: Further = named_function(study.further)(study, evidence)
    return found


def printed_sources(study: Study) -> dict[str, Evidence]:
    """Return what the paper prints: per dataset, or of a study of several collections per who measured."""
    on = [one for table in study.published for one in table.evaluated_on]
    if study.several:
        found = {by: printed_by(study.published, by) for by in dict.fromkeys(one.by for one in on)}
        return {by: replace(one, beside=found) for by, one in found.items()}
    found = {}
    for one in on:  # with what is printed of the dataset's other splits
        others = [two.key for two in on if two.dataset == one.dataset and two.split != one.split]
        found[one.key] = printed_evidence(study.published, one.key, *others)
    own = [one.key for one in study.published[0].evaluated_on if one.positives == "own"]
    return {key: replace(found[key], beside=found) for key in own}


def judged_in_the_paper(study: Study) -> list[tuple[Claim, dict[str, Judgement]]]:
    """Do the paper's own numbers support its text? Per claim and dataset, or per claim and who measured."""
    evidence = printed_sources(study)
    return [
        (claim, {key: _judged(claim, [key], given) for key, given in evidence.items()})
        for claim in study.claims
    ]


def _judged(
    claim: Claim, keys: Sequence[str], evidence: Evidence, stand_ins: Sequence[str] = ()
) -> Judgement:
    """Judge a claim on what the paper calls ``keys``; one that is about others is not tested."""
    if claim.on and keys and not set(keys) & set(claim.on):
        return Judgement("not tested", (Finding.missing(claim.text, ", ".join(claim.on)),))
    return judge(claim, evidence, stand_ins)


def compare(study: Study, results: Results) -> Comparison:
    """Hold results against what is printed, and claims against both."""
    results = measure_of(study).withhold(results)
    keys, blocks = _several_blocks(study, results) if study.several else _blocks(study, results)
    evidence = results.evidence()
    in_paper = judged_in_the_paper(study)
    if study.several:
        evidence = replace(evidence, beside=printed_sources(study))
    elif keys:
        ours = evidence
        if not blocks[0].differences:
            evidence = _with_quoted(evidence, study, keys[0])
        other = {key: results.evidence(one.positives) for key, one in _evaluations(study, keys).items()}
        evidence = replace(evidence, beside={**other, keys[0]: ours})
    # On other data than the paper's a claim is judged whatever it is about.
    asked = () if study.several else keys
    stand_ins = list(results.stand_ins)
    claims = tuple(
        (claim, _judged(claim, asked, evidence, stand_ins), printed) for claim, printed in in_paper
    )
    cells = [cell for block in blocks for row in block.rows for cell in row.cells]
    reproduces = any(cell.verdict in JUDGED for cell in cells)
    return Comparison(
        study,
        results,
        label_of(study, results, blocks, reproduces),
        reproduces,
        tuple(blocks),
        claims,
        further_of(study, evidence),
        evidence,
    )


def label_of(study: Study, results: Results, blocks: Sequence[Block], reproduces: bool) -> str:
    """Return in one sentence what the numbers are and are not."""
    if not results.entries:
        return "Nothing has been run."
    entries, name = results.entries, results.entries[0].setting
    setting = study.settings[name]
    data = "; ".join(dict.fromkeys(entry.data for entry in entries))
    parts = [f"on {data}", f"as the setting {name!r} says ({setting.description})"]
    if changed := sorted({key for entry in entries for key in entry.changed}):
        parts.append(f"with changes of {', '.join(changed)}")
    if given := dict.fromkeys(entry.given for entry in entries if entry.given):
        parts.append(f"with what was given: {', '.join(given)}")
    if stand_ins := results.stand_ins:
        each = (f"{what} for {study.row(row).label}" for row, what in stand_ins.items())
        parts.append(f"with stand-ins: {', '.join(each)}")
    how = ", ".join(parts)
    if study.of == "nothing":
        return f"Held against the paper: {setting.description}."
    if reproduces:
        ending = "" if not given else " Weights and vectors are taken for what they were given as."
        return f"A reproduction: {how}.{ending}"
    if study.ours or not study.printed_keys():
        return f"Not in the paper: {how}."
    of = f" The paper's numbers are of {blocks[0].describe()}." if blocks and blocks[0].is_printed else ""
    return (
        f"Not a reproduction: {how}.{of} They stand beside ours for orientation, and only claims are judged."
    )


def _blocks(study: Study, results: Results) -> tuple[list[str], list[Block]]:
    """Return the paper's keys for what was measured here, and a block for each; without any, ours stand alone."""
    own = results.entries[0].measurements[0].on if results.entries else None
    keys = study.printed_keys(own.dataset) if own is not None else []
    on = {one.key: one for one in study.published[0].evaluated_on}
    held_on = [on[key] for key in keys or study.printed_keys()[:1]] or [_as_printed(own)]
    return keys, [_block(study, results, [one]) for one in held_on]


def _several_blocks(study: Study, results: Results) -> tuple[list[str], list[Block]]:
    """Return a block per collection and who measured it: what was measured here first, then the rest of the table."""
    printed: dict[tuple[str, str], list[EvaluatedOn]] = {}
    for table in study.published:
        for on in table.evaluated_on:
            printed.setdefault((on.dataset, on.by), []).append(on)
    blocks = []
    for name in results.datasets:
        ours = results.on(name)
        held_on = [on for (of, _), on in printed.items() if of == name.lower()]
        alone = [[_as_printed(ours.entries[0].measurements[0].on)]]
        blocks += [_block(study, ours, on) for on in held_on or alone]
    nothing, here = Results(study.name, (), results.left_out), {name.lower() for name in results.datasets}
    own = {on.dataset for on in study.published[0].evaluated_on}
    return [], blocks + [_block(study, nothing, on) for (of, _), on in printed.items() if of in own - here]


def _evaluations(study: Study, keys: Sequence[str]) -> dict[str, EvaluatedOn]:
    """Return what keys of printed numbers mean."""
    known = {one.key: one for table in study.published for one in table.evaluated_on}
    return {key: known[key] for key in keys}


def _as_printed(own: Measured | None) -> EvaluatedOn:
    """Return what ours were measured on, in the words of printed numbers."""
    if own is None:
        return EvaluatedOn(OWN, "nothing", "none", 0, (0,))
    return EvaluatedOn(
        OWN,
        own.dataset,
        own.split,
        own.images,
        (own.captions,),
        own.protocol,
        chosen=own.chosen,
        sessions=(own.sessions,) if own.sessions else (),
        products=own.products,
        categories=(own.categories,) if own.categories else (),
    )


def _with_quoted(evidence: Evidence, study: Study, key: str) -> Evidence:
    """Return ours beside the rows that the paper itself quotes from elsewhere, measured on the same thing."""
    quoted = {row.row for table in study.published for row in table.rows if row.config is None}
    printed = printed_evidence(study.published, key).figures
    beside = {name: printed[name] for name in printed if name in quoted}
    return replace(evidence, figures={**beside, **evidence.figures}, fixed=evidence.fixed | frozenset(beside))


def _block(study: Study, results: Results, on: Sequence[EvaluatedOn]) -> Block:
    """Return rows beside what is printed of them on one of ``on``, which differ where rows have other tasks."""
    rows = []
    for row in study.rows:
        own = next((one for one in on if study.printed(row.name, one.key) is not None), None)
        known = results.of(row.name) or row.name in results.left_out
        if own is not None or (on[0].positives == "own" and known):
            rows.append(_row(study, results, row, own or on[0]))
    found = [row for row in rows if row.seeds]
    if len(on) == 1:
        differences = found[0].differences if found else ()
    else:
        of_rows = ((row.row.label, row.differences) for row in found if row.printed is not None)
        differences = tuple(f"{label}: {', '.join(own)}" for label, own in of_rows if own)
    return Block(on[0], differences, tuple(rows))


def _row(study: Study, results: Results, row: Row, on: EvaluatedOn) -> ComparedRow:
    entries = results.of(row.name)
    measured = [one for entry in entries if (one := entry.measured(on.positives)) is not None]
    printed = study.printed(row.name, on.key)
    differences = same_evaluation(measured[0].on, on) if measured and on.key != OWN else []
    another = any(entry.changed or entry.stands_for for entry in entries) or results.setting not in AS_PAPER
    cells = []
    for column in study.columns:
        plain = results.values(row.name, column.name, on.positives)
        as_published = results.values(row.name, column.name + PUBLISHED, on.positives)
        held = as_published or plain
        cell = None if printed is None else printed.cells.get(column.name)
        verdict: Verdict
        if not held:
            verdict = "not run"
        elif cell is None:
            verdict = "not printed"
        elif differences:
            verdict = "other data"
        else:
            verdict = "other training" if another else cell_verdict(held, cell)
        figure = Figure.of(held) if held else None
        right = Figure.of(plain) if as_published and plain else None
        cells.append(ComparedCell(column.name, cell, figure, right, verdict))
    needs = "" if on.positives == "own" else f"needs --positives {on.positives}:PATH"
    return ComparedRow(
        row,
        printed,
        tuple(cells),
        tuple(entries) if measured else (),
        "" if measured else results.left_out.get(row.name, needs) or "not run",
        measured[0].protocol if measured else "",
        tuple(text.format(run=entries[0].run) for text in measured[0].commands) if measured else (),
        tuple(differences),
        results.stand_ins.get(row.name, ""),
    )
