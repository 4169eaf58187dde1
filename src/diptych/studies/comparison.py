"""What a comparison of measured and printed numbers says: cells, rows, blocks, claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diptych.studies.claims import Claim, Judgement
from diptych.studies.evidence import Figure
from diptych.studies.further import FurtherTable
from diptych.studies.published import Cell, EvaluatedOn, PublishedRow
from diptych.studies.results import Results
from diptych.studies.study import Row, Study
from diptych.studies.verdict import Verdict

OWN = "own"
"""The key of what ours were measured on, where nothing is printed of it."""


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
        differences: what keeps its numbers from being of the same thing; empty when they are.
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
    differences: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The paper's number and the label, once where they are the same."""
        return f"{self.number}  {self.row.label}" if self.number else self.row.label

    @property
    def number(self) -> str:
        """The paper's number or words; empty where it prints no number, or where the label says the same."""
        printed = "" if self.printed is None or not self.printed.cells else self.printed.row
        return "" if printed.lower() == self.row.label.lower() else printed


@dataclass(frozen=True)
class Block:
    """The rows on one ground truth.

    Attributes:
        on: what the printed numbers were measured on; the first of them, where rows differ.
        differences: what keeps ours from being of the same; empty when they are.
        rows: in the table's order.
    """

    on: EvaluatedOn
    differences: tuple[str, ...]
    rows: tuple[ComparedRow, ...]

    @property
    def is_printed(self) -> bool:
        """Whether anything is printed of it; else ours stand alone."""
        return self.on.key != OWN

    def describe(self) -> str:
        """What the printed numbers were measured on, and by whom: in one line, with rows that differ by name."""
        each: dict[str, list[str]] = {}
        for row in self.rows:
            if row.printed is not None:
                each.setdefault(row.printed.on.describe(), []).append(row.row.label)
        by = f"by {self.on.by}: " if self.on.by else ""
        if len(each) < 2:
            return by + self.on.describe()
        return by + "; ".join(f"{', '.join(rows)}: {on}" for on, rows in each.items())


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
        tables: what the study makes of the numbers besides.
    """

    study: Study
    results: Results
    label: str
    reproduces: bool
    blocks: tuple[Block, ...]
    claims: tuple[tuple[Claim, Judgement, Mapping[str, Judgement]], ...]
    remarks: tuple[str, ...] = ()
    tables: tuple[FurtherTable, ...] = ()

    def counts(self) -> dict[str, int]:
        """How many cells have each verdict, of those that were measured, are printed and could be checked."""
        found: dict[str, int] = {}
        for block in self.blocks:
            for row in block.rows:
                for cell in row.cells:
                    if cell.verdict not in ("not run", "not printed", "unchecked start"):
                        found[cell.verdict] = found.get(cell.verdict, 0) + 1
        return found
