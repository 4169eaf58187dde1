"""Tables of a study: what its paper prints, what was measured beside it, claims and how they were judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from diptych.core.table import Cell, Table
from diptych.studies.claims import Claim, Judgement
from diptych.studies.compare import OWN, Block, ComparedCell, ComparedRow, Comparison
from diptych.studies.evidence import Figure
from diptych.studies.plan import needs_of
from diptych.studies.published import EvaluatedOn
from diptych.studies.study import Column, Study

MARKS = {
    "reproduced": "✓",
    "close": "≈",
    "not reproduced": "✗",
    "other data": "",
    "other training": "",
    "not run": "·",
    "not printed": "",
    "holds": "✓",
    "fails": "✗",
    "undecided": "?",
    "not tested": "·",
}
"""One sign per verdict and status."""

_COLOURS = {
    "reproduced": "right",
    "holds": "right",
    "close": "orange",
    "not reproduced": "wrong",
    "fails": "wrong",
    "undecided": "orange",
}
_SHARES = {"log": "Shares are in per cent", "catalogue": "Measures and shares are in per cent"}
PLANTED = (
    "On generated data claims say nothing about the world: what holds here was planted by the generator, and what is "
    "counted is whether the code finds it."
)
"""Stands where claims were judged on generated data."""

_MILLION = 1_000_000  # from here on digits are grouped: a log has that many
_SEVERAL = 2  # evaluations of the paper beyond which claims have one column for all


def papers_tables(studies: Iterable[Study]) -> list[Table]:
    """Return the studies of each paper: what each asks in a few words, and how long it takes."""
    papers: dict[str, list[Study]] = {}
    for one in studies:
        first, *others = one.paper.authors.split(", ")
        papers.setdefault(f"{first.split()[-1]}{' et al.' * bool(others)}, {one.paper.venue}", []).append(one)
    columns = ("study", "what it asks", "--quick", "in full")
    return [
        Table.of(
            paper,
            "",
            columns,
            [(one.name, one.topic, *_durations(one)) for one in found],
        )
        for paper, found in papers.items()
    ]


def _durations(study: Study) -> tuple[str, str]:
    """How long a study takes on generated data, and in full."""
    full = study.settings.get("paper") or study.settings["data"]
    return study.settings["quick"].duration, full.duration


def rows_table(study: Study) -> Table:
    """Return the rows of a study: what sets each apart, and what a user has to give for it."""
    rows = []
    for row in (*study.bases, *study.rows):
        apart = (
            f"{key}: {', '.join(f'{inner} {text}' for inner, text in value.items())}"
            if isinstance(value, Mapping)
            else f"{key} = {value}"
            for key, value in {**row.options, **dict.fromkeys(row.without, "none")}.items()
        )
        home = "" if row.home == study.name else row.home
        told = (row.label, "; ".join(apart), row.base or home, needs_of(study, row))
        rows.append([Cell(row.name), *(Cell(text, words=True) for text in told)])
    columns = ("name", "label", "what sets it apart", "starts from, or runs in", "needs, besides data")
    return Table("Rows (--rows)", columns, rows)


def settings_table(study: Study) -> Table:
    """Return how a study can be run: how long all rows and seeds take, and on what."""
    rows = []
    for name, setting in study.settings.items():
        total, _, on = setting.time.partition("; ")
        texts = (setting.description, total, on, setting.memory or "–")
        rows.append([Cell(name), *(Cell(text, words=True) for text in texts)])
    return Table("Settings", ("--setting", "what it is", "time", "of what", "GPU memory"), rows)


def published_tables(study: Study) -> list[Table]:
    """Return the table as it is printed."""
    table = study.published[0]
    printed = [row for row in table.rows if row.cells]
    ons = {one.key: one for one in table.evaluated_on}
    several = len(ons) > 1
    after = "; ".join(f"{f'{_place(one)}: ' if several else ''}{one.describe()}" for one in ons.values())
    caption = f"{table.paper.key} {table.name}: {table.title}"
    if not printed:
        return [Table(caption, ("row",), [], after=f"no number is printed ({after})")]
    rows = []
    for row in printed:
        cells = [row.cells.get(column.name) for column in study.columns]
        places = [Cell(_place(row.on), words=True)] if several else []
        numbers = (
            Cell("–")
            if cell is None
            else Cell(cell.bound + number(Figure(cell.value, cell.printed_spread), column), value=cell.value)
            for cell, column in zip(cells, study.columns, strict=True)
        )
        rows.append([Cell(row.row, row.label if row.label != row.row else ""), *places, *numbers])
    return [Table(caption, ("row", *(["on"] if several else []), *_heads(study)), rows, after=after)]


def compared_tables(comparison: Comparison, measured_alone: bool = False) -> list[Table]:
    """Return measured numbers, each with the printed one, and what both are of.

    Args:
        measured_alone: leave out collections of which nothing was measured.
    """
    study = comparison.study
    blocks = [
        block
        for block in comparison.blocks
        if not (measured_alone and study.several) or any(row.seeds for row in block.rows)
    ]
    several = len(blocks) > 1
    rows: list[list[Cell]] = []
    notes: set[str] = set()  # that stand already
    for block in blocks:
        for row in block.rows:
            rows += _lines(comparison, block, row, several, notes)
    columns = ("row", *(["on"] if several else []), *_heads(study))
    numbers = Table("Measured, and as printed", columns, rows, after=_after(comparison, blocks))
    if not several:
        return [numbers]
    of = [
        [Cell(_place(block.on)), *(Cell(text, words=True) for text in _evaluation(block))] for block in blocks
    ]
    return [numbers, Table("What the numbers are of", ("on", "printed", "here"), of)]


def _place(on: EvaluatedOn) -> str:
    """A name for what numbers are of."""
    return f"{on.dataset}, by {on.by}" if on.by else on.dataset if on.key == OWN else on.key


def _heads(study: Study) -> list[str]:
    return [column.short or column.name for column in study.columns]


def _evaluation(block: Block) -> tuple[str, str]:
    """What the printed numbers of a block are of, and how ours differ."""
    if not block.is_printed:
        return "–", block.describe()
    if any(row.seeds for row in block.rows):
        return block.describe(), "; ".join(block.differences) or "the same"
    return block.describe(), "not measured"


def _after(comparison: Comparison, blocks: Sequence[Block]) -> str:
    """How the numbers are to be read."""
    study, cells = comparison.study, [cell for block in blocks for row in block.rows for cell in row.cells]
    prints, parts = any(cell.published for cell in cells), []
    if study.of in _SHARES:
        parts.append(_SHARES[study.of])
    elif any("R@" in cell.column for cell in cells):
        parts.append("Recalls are in per cent")
    if any(cell.measured and cell.measured.sd is not None for cell in cells):
        parts.append("±: standard deviation over seeds")
    if study.published[0].spread == "variance":
        parts.append("Printed ±: variance over runs")
    if any(cell.right for cell in cells):
        parts.append("Some columns are counted as the paper counts; rightly counted: by their definition")
    if prints:
        parts.append("In brackets or below: as printed")
    if comparison.reproduces:
        near = "" if study.of == "log" else " or two standard deviations over seeds"
        parts.append(f"✓ within 5 % of it{near}, ≈ within 10 %, ✗ not reproduced")
    elif prints:
        other = (
            "log, or measured otherwise than" if study.of == "log" else "data, or of another training than"
        )
        parts.append(f"Cells have no verdict: these numbers are of other {other} the paper's")
    else:
        parts.append("The paper prints nothing of it")
    if len(blocks) == 1:
        printed, ours = _evaluation(blocks[0])
        parts += [f"Printed: {printed}"] if prints else []
        parts += [f"Here: {ours}" if blocks[0].is_printed else f"Measured on {ours}"]
    return ". ".join(parts) + "."


def _lines(
    comparison: Comparison, block: Block, row: ComparedRow, several: bool, notes: set[str]
) -> list[list[Cell]]:
    """A row of numbers, and where the paper counts otherwise a row of the right ones."""
    first = [Cell(_place(block.on), words=True)] if several else []
    pairs = list(zip(row.cells, comparison.study.columns, strict=True))
    note = row.why or ("" if block.is_printed and row.printed else row.row.extra)
    head = Cell(row.name, "" if note in notes else note, words=bool(row.number))
    lines = [[head, *first, *(_compared(cell, one, comparison.reproduces) for cell, one in pairs)]]
    notes.add(note)
    if any(cell.right for cell in row.cells):
        right = (Cell(number(cell.right, column)) if cell.right else Cell("") for cell, column in pairs)
        lines.append([Cell(f"{row.name}, rightly counted", words=bool(row.number)), *first, *right])
    return lines


def _compared(cell: ComparedCell, column: Column, reproduces: bool) -> Cell:
    """The measured number, with the printed one and the verdict as a note."""
    printed, mark = "", MARKS[cell.verdict] if reproduces and cell.measured else ""
    if cell.published is not None:
        own = Figure(cell.published.value, cell.published.printed_spread)
        printed = cell.published.bound + number(own, column)
    if cell.measured is None:
        return Cell("–", printed)
    colour = _COLOURS.get(cell.verdict, "") if reproduces else ""
    shade = 0.35 if colour else 0.0
    return Cell(
        number(cell.measured, column), f"{printed} {mark}".strip(), shade, colour, value=cell.measured.mean
    )


def number(figure: Figure, column: Column) -> str:
    """Return a figure with its spread, in a column's decimals."""
    grouped = "," if abs(figure.mean) >= _MILLION else ""
    spread = "" if figure.sd is None else f"±{figure.sd:.{max(column.decimals, 1)}f}"
    return f"{figure.mean:{grouped}.{column.decimals}f}{spread}"


Claims = Sequence[tuple[Claim, Judgement | None, Mapping[str, Judgement]]]


def claims_tables(claims: Claims) -> list[Table]:
    """Return each claim with what our numbers say, where there are any, and what the paper's own do."""
    if not claims:
        return []
    keys, ours = list(claims[0][2]), claims[0][1] is not None
    rows = []
    for claim, here, printed in claims:
        row = [Cell(claim.name), Cell(claim.text, claim.where, words=True)]
        if here is not None:
            row += [_status(here.status, here.label), Cell(here.figure, words=True)]
        row += _in_papers(printed, keys)
        if not ours:
            failed = [f"{key}: {printed[key].figure}" for key in keys if printed[key].status == "fails"]
            row.append(Cell("; ".join(failed), words=True))
        rows.append(row)
    in_paper = ["in the paper"] if len(keys) > _SEVERAL else [f"in the paper, {key}" for key in keys]
    last = [] if ours else ["why it fails"]
    heads = ["claim", "text", *(["here", "the figure that decides"] if ours else []), *in_paper, *last]
    return [Table("Claims", heads, rows)]


def findings_table(comparison: Comparison) -> Table:
    """Return every comparison that claims were judged by."""
    rows = []
    for claim, judgement, _ in comparison.claims:
        for one in judgement.findings:
            rows.append([Cell(claim.name), Cell(str(one), words=True), _status(one.status)])
    return Table("All comparisons", ("claim", "comparison", "here"), rows, folded=True)


def _status(status: str, label: str = "") -> Cell:
    colour = _COLOURS.get(status, "")
    return Cell(f"{MARKS[status]} {label or status}", shade=0.35 if colour else 0.0, colour=colour)


def _in_papers(printed: Mapping[str, Judgement], keys: Sequence[str]) -> list[Cell]:
    """A cell per evaluation, or of many one cell that names those with each outcome."""
    found = {key: printed[key].status for key in keys}
    if len(keys) <= _SEVERAL:
        return [_status(status) for status in found.values()]
    outcomes = list(dict.fromkeys(found.values()))
    if len(outcomes) == 1:
        return [_status(outcomes[0])]
    each = (
        f"{MARKS[one]} {one}: {', '.join(key for key in keys if found[key] == one)}".strip()
        for one in outcomes
    )
    return [Cell("; ".join(each), words=True)]


def measured_rows(comparison: Comparison) -> list[tuple[str, ComparedRow]]:
    """Return names and rows that were measured: once each, of several collections once per collection, of a log or a
    catalogue once per command."""
    study = comparison.study
    alone = study.of != "collections"
    found: dict[object, tuple[str, ComparedRow]] = {}
    for block in comparison.blocks if study.several else comparison.blocks[:1]:
        for row in block.rows:
            if row.seeds:
                key = (row.commands, row.protocol) if alone else (block.on.dataset, row.row.name)
                name = f"{row.name} on {block.on.dataset}" if study.several else row.name
                found.setdefault(key, (name, row))
    return (
        [("all rows", row) for _, row in found.values()]
        if alone and len(found) == 1
        else list(found.values())
    )


def comparison_shown(comparison: Comparison) -> list[Table | str]:
    """Return a comparison as it is printed: its tables, then what the numbers depend on, verdicts and claims."""
    measured, lines = measured_rows(comparison), []
    for name, row in measured:
        facts = [] if comparison.study.of == "log" else [f"seeds {', '.join(map(str, row.seeds))}"]
        facts += [f"{row.cpu_seconds / 60:.1f} CPU minutes"] if row.cpu_seconds else []
        lines.append(f"{name}: {'; '.join([*facts, *row.commands])}")
    lines += dict.fromkeys(f"protocol: {row.protocol}" for _, row in measured)
    lines += comparison.further.remarks
    if comparison.reproduces and (counts := comparison.counts()):
        lines.append("cells: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    lines += [PLANTED] if comparison.is_generated and comparison.claims else []
    further = [table for table in comparison.further.tables if not table.folded]  # a page has them all
    tables = [*compared_tables(comparison, measured_alone=True), *further]
    return [comparison.label, *tables, *lines, *claims_tables(comparison.claims)]


def protocols_table(comparison: Comparison) -> Table:
    """Return what the numbers of each row depend on."""
    rows = []
    for name, row in measured_rows(comparison):
        epochs = f"{row.epochs[0]} (best {row.epochs[1]})" if row.epochs[0] else "–"
        facts = (", ".join(map(str, row.seeds)), epochs, f"{row.cpu_seconds / 60:.1f}")
        rows.append([Cell(name), *map(Cell, facts), Cell(row.protocol, words=True)])
    return Table("Rows", ("row", "seeds", "epochs", "CPU minutes", "protocol"), rows)
