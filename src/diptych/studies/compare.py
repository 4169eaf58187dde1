"""Published and measured side by side: what a verdict prints and a report draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diptych.studies.claims import Claim, Judgement, judge, missing
from diptych.studies.evidence import Evidence, Figure, printed_evidence
from diptych.studies.label import changed_training, given_start, label_of
from diptych.studies.published import Cell, EvaluatedOn, PublishedRow
from diptych.studies.results import Results
from diptych.studies.study import PUBLISHED, Row, Study
from diptych.studies.verdict import Measured, Verdict, cell_verdict, same_evaluation

__all__ = ["Block", "ComparedCell", "ComparedRow", "Comparison", "compare", "judged_in_the_paper"]


@dataclass(frozen=True)
class ComparedCell:
    """One column of one row.

    Attributes:
        column: its name.
        published: what is printed; None where nothing is.
        measured: the number to hold against it.
        right: the number counted rightly, where the paper counts otherwise.
        verdict: on ``measured``.
    """

    column: str
    published: Cell | None
    measured: Figure | None
    right: Figure | None
    verdict: Verdict


@dataclass(frozen=True)
class ComparedRow:
    """One row.

    Attributes:
        row: of the study.
        printed: of the paper, when it has it.
        cells: in the study's order of columns.
        seeds: that were run.
        why: why there is nothing, when there is nothing.
        protocol, commands: of the first seed's measurement.
        cpu_seconds: of all seeds together.
        epochs: trained, and the best, of the first seed.
    """

    row: Row
    printed: PublishedRow | None
    cells: tuple[ComparedCell, ...]
    seeds: tuple[int, ...]
    why: str = ""
    protocol: str = ""
    commands: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    epochs: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """The paper's number and the label."""
        return self.row.label if self.printed is None else f"{self.printed.row}  {self.row.label}"


@dataclass(frozen=True)
class Block:
    """The rows on one ground truth.

    Attributes:
        on: what the printed numbers were measured on.
        differences: what keeps ours from being of the same; empty when they are.
        rows: in the table's order.
    """

    on: EvaluatedOn
    differences: tuple[str, ...]
    rows: tuple[ComparedRow, ...]


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
        remarks: what the table does not say of the numbers.
    """

    study: Study
    results: Results
    label: str
    reproduces: bool
    blocks: tuple[Block, ...]
    claims: tuple[tuple[Claim, Judgement, Mapping[str, Judgement]], ...]
    remarks: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """How many cells have each verdict, of those that were measured, are printed and could be checked."""
        found: dict[str, int] = {}
        for block in self.blocks:
            for row in block.rows:
                for cell in row.cells:
                    if cell.verdict not in ("not run", "not printed", "unchecked start"):
                        found[cell.verdict] = found.get(cell.verdict, 0) + 1
        return found


def judged_in_the_paper(study: Study) -> list[tuple[Claim, dict[str, Judgement]]]:
    """Do the paper's own numbers support its text? Per claim and dataset."""
    keys = [on.key for on in study.published[0].evaluated_on if on.positives == "own"]
    evidence = {key: printed_evidence(study.published, key) for key in keys}
    return [
        (claim, {key: _judged(claim, [key], given) for key, given in evidence.items()})
        for claim in study.claims
    ]


def _judged(claim: Claim, keys: list[str], evidence: Evidence) -> Judgement:
    """Judge a claim on what the paper calls ``keys``; one that is about none of them is not run."""
    if claim.on and not set(keys) & set(claim.on):
        return Judgement("not run", (missing(claim.text, ", ".join(claim.on)),))
    return judge(claim, evidence)


def compare(study: Study, results: Results) -> Comparison:
    """Hold results against what is printed, and claims against both."""
    first = next((entry for entry in results.entries), None)
    own = first.measurements[0].on if first is not None else None
    keys = study.printed_keys(own.dataset) if own is not None else []
    is_the_papers = bool(keys)
    if not keys:
        keys = study.printed_keys()[:1]
    changed = changed_training(results)
    on = {one.key: one for one in study.published[0].evaluated_on}
    # Where nothing is printed, ours stand alone.
    held_on = [on[key] for key in keys] or [_as_printed(own)]
    blocks = tuple(_block(study, results, one, changed) for one in held_on)
    as_published = is_the_papers and not blocks[0].differences and not changed and results.setting == "paper"
    reproduces = as_published and not all(given_start(entry) for entry in results.entries)
    printed = judged_in_the_paper(study)
    evidence = results.evidence()
    if is_the_papers and not blocks[0].differences:
        evidence = _with_quoted(evidence, study, keys[0])
    # On other data than the paper's a claim is judged whatever it is about.
    claims = tuple(
        (claim, _judged(claim, keys, evidence) if is_the_papers else judge(claim, evidence), in_paper)
        for claim, in_paper in printed
    )
    label = label_of(study, results, blocks[0], changed, as_published)
    remarks = () if study.remarks is None else tuple(study.remarks(evidence))
    return Comparison(study, results, label, reproduces, blocks, claims, remarks)


def _as_printed(own: Measured | None) -> EvaluatedOn:
    """What ours were measured on, in the words of printed numbers."""
    if own is None:
        return EvaluatedOn("own", "nothing", "none", 0, (0,))
    return EvaluatedOn("own", own.dataset, own.split, own.images, (own.captions,), own.protocol)


def _with_quoted(evidence: Evidence, study: Study, key: str) -> Evidence:
    """Ours beside the rows that the paper itself quotes from elsewhere, measured on the same thing."""
    quoted = {row.row for table in study.published for row in table.rows if row.config is None}
    printed = printed_evidence(study.published, key).figures
    beside = {name: printed[name] for name in printed if name in quoted}
    return Evidence({**beside, **evidence.figures}, evidence.trajectories, evidence.kept)


def _block(study: Study, results: Results, on: EvaluatedOn, changed: list[str]) -> Block:
    differences: list[str] = []
    for entry in results.entries:
        measured = entry.measured(on.positives)
        if measured is not None:
            differences = same_evaluation(measured.on, on)
            break
    rows = tuple(
        _row(study, results, row, on, bool(differences), bool(changed))
        for row in study.rows
        if study.printed(row.name, on.key) is not None or (on.positives == "own" and results.of(row.name))
    )
    return Block(on, tuple(differences), rows)


def _row(
    study: Study, results: Results, row: Row, on: EvaluatedOn, other_data: bool, changed: bool
) -> ComparedRow:
    entries = results.of(row.name)
    measured = [one for entry in entries if (one := entry.measured(on.positives)) is not None]
    printed = study.printed(row.name, on.key)
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
        elif other_data:
            verdict = "other data"
        elif changed or results.setting != "paper":
            verdict = "other training"
        elif any(given_start(entry) for entry in entries):
            verdict = "unchecked start"
        else:
            verdict = cell_verdict(held, cell)
        cells.append(
            ComparedCell(
                column.name,
                cell,
                Figure.of(held) if held else None,
                Figure.of(plain) if as_published and plain else None,
                verdict,
            )
        )
    why = ""
    if not measured:
        why = results.left_out.get(
            row.name, "" if on.positives == "own" else f"needs --positives {on.positives}:PATH"
        )
        why = why or "not run"
    return ComparedRow(
        row=row,
        printed=printed,
        cells=tuple(cells),
        seeds=tuple(entry.seed for entry in entries) if measured else (),
        why=why,
        protocol=measured[0].protocol if measured else "",
        commands=tuple(text.format(run=entries[0].run) for text in measured[0].commands) if measured else (),
        cpu_seconds=sum(entry.cpu_seconds for entry in entries),
        epochs=entries[0].epochs if entries else (0, 0),
    )
