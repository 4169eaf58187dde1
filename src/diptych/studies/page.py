"""Print and write studies: lines and tables, their page and JSON, and one page over many studies."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from diptych.core.table import Cell, Table
from diptych.report.document import Headline, Page, Section
from diptych.studies.claims import Claim, Judgement
from diptych.studies.compare import JUDGED, Block, ComparedCell, ComparedRow, Comparison
from diptych.studies.evidence import Figure, Status
from diptych.studies.figures import comparison_charts
from diptych.studies.plan import needs_of
from diptych.studies.published import EvaluatedOn, PrintedCell
from diptych.studies.study import Column, Study

# One sign per verdict of a cell and status of a claim.
MARKS: dict[str, str] = {
    "reproduced": "✓",
    "close": "≈",
    "not reproduced": "✗",
    "holds": "✓",
    "fails": "✗",
    "undecided": "?",
    "not tested": "·",
}

_COLOURS = {"✓": "right", "≈": "orange", "✗": "wrong", "?": "orange"}
_SHARES = {"log": "Shares are in per cent", "catalogue": "Measures and shares are in per cent"}
_MILLION = 1_000_000  # from here on digits are grouped: a log has that many
_SEVERAL = 2  # evaluations of the paper beyond which claims have one column for all


def papers_tables(studies: Iterable[Study]) -> list[Table]:
    """Return the studies of each paper: what each asks in a few words, and how long it takes."""
    papers: dict[str, list[tuple[str, ...]]] = {}
    for study in studies:
        first, *others = study.paper.authors.split(", ")
        paper = f"{first.split()[-1]}{' et al.' * bool(others)}, {study.paper.venue}"
        full = study.settings.get("paper") or study.settings["data"]
        times = (study.settings["quick"].duration, full.duration)
        papers.setdefault(paper, []).append((study.name, study.topic, *times))
    columns = ("study", "what it asks", "--quick", "in full")
    return [Table.of(paper, "", columns, rows) for paper, rows in papers.items()]


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
        home = row.base or ("" if row.home == study.name else row.home)
        rows.append(_line(row.name, row.label, "; ".join(apart), home, needs_of(study, row)))
    columns = ("name", "label", "what sets it apart", "starts from, or runs in", "needs, besides data")
    return Table("Rows (--rows)", columns, rows)


def settings_table(study: Study) -> Table:
    rows = []
    for name, setting in study.settings.items():
        time, _, machine = setting.time.partition("; ")
        rows.append(_line(name, setting.description, time, machine, setting.memory or "–"))
    return Table("Settings", ("--setting", "what it is", "time", "of what", "GPU memory"), rows)


def printed_table(study: Study) -> Table:
    table = study.published[0]
    several = len(table.evaluated_on) > 1
    after = "; ".join(f"{_place(on)}: " * several + on.describe() for on in table.evaluated_on)
    caption = f"{table.paper.key} {table.name}: {table.title}"
    rows = []
    for row in table.rows:
        line = [Cell(row.row, row.label if row.label != row.row else "")]
        line += [Cell(_place(row.on), words=True)] if several else []
        cells = ((row.cells.get(column.name), column) for column in study.columns)
        line += [Cell(_printed(cell, column), value=cell.value if cell else None) for cell, column in cells]
        rows += [line] if row.cells else []
    if not rows:
        none = "no number is printed"
        return Table(caption, ("row",), [], after=f"{none} ({after})" if after else none)
    return Table(caption, _columns(study, several), rows, after=after)


def compared_tables(comparison: Comparison, only_measured: bool = False) -> list[Table]:
    """Return measured numbers next to printed ones, and what both are of: all collections, or measured ones."""
    study = comparison.study
    every = not (only_measured and study.several)
    blocks = [block for block in comparison.blocks if every or block.is_measured]
    several = len(blocks) > 1
    rows: list[list[Cell]] = []
    notes: set[str] = set()  # that stand already
    for block, row in [(one, row) for one in blocks for row in one.rows]:
        note = row.why or ("" if block.is_printed and row.printed else row.row.extra)
        is_long = row.name != row.row.label
        place = [Cell(_place(block.on), words=True)] if several else []
        cells = list(zip(row.cells, study.columns, strict=True))
        numbers = [_compared(cell, column, comparison.reproduces) for cell, column in cells]
        rows.append([Cell(row.name, "" if note in notes else note, words=is_long), *place, *numbers])
        notes.add(note)
        if any(cell.right for cell in row.cells):  # where the paper counts otherwise, they stand below
            right = [Cell(_number(cell.right, column) if cell.right else "") for cell, column in cells]
            rows.append([Cell(f"{row.name}, rightly counted", words=is_long), *place, *right])
    after = _reading(comparison, blocks)
    tables = [Table("Measured, and as printed", _columns(study, several), rows, after=after)]
    if several:
        of = [_line(_place(block.on), *_evaluation(block)) for block in blocks]
        tables.append(Table("What the numbers are of", ("on", "printed", "here"), of))
    return tables


def _line(name: str, *texts: str) -> list[Cell]:
    return [Cell(name), *(Cell(text, words=True) for text in texts)]


def _place(on: EvaluatedOn) -> str:
    return f"{on.dataset}, by {on.by}" if on.by else on.key or on.dataset


def _columns(study: Study, several: bool) -> list[str]:
    return ["row", *(["on"] if several else []), *(column.short or column.name for column in study.columns)]


def _evaluation(block: Block) -> tuple[str, str]:
    if not block.is_printed:
        return "–", block.describe()
    here = "; ".join(block.differences) or "the same"
    return block.describe(), here if block.is_measured else "not measured"


def _reading(comparison: Comparison, blocks: Sequence[Block]) -> str:
    study, cells = comparison.study, [cell for block in blocks for row in block.rows for cell in row.cells]
    prints, reproduces = any(cell.published for cell in cells), comparison.reproduces
    recalls = "Recalls are in per cent" if any("R@" in cell.column for cell in cells) else ""
    measured = [cell.measured for cell in cells if cell.measured]
    near, data = " or two standard deviations over seeds", "data, or of another training than"
    if study.of == "log":
        near, data = "", "log, or measured otherwise than"
    right = "Some columns are counted as the paper counts; rightly counted: by their definition"
    sentences = {
        _SHARES.get(study.of, recalls): True,
        "±: standard deviation over seeds": any(one.sd is not None for one in measured),
        "Printed ±: variance over runs": study.published[0].spread == "variance",
        right: any(cell.right for cell in cells),
        "In brackets or below: as printed": prints,
        f"✓ within 5 % of it{near}, ≈ within 10 %, ✗ not reproduced": reproduces,
        f"Cells have no verdict: these numbers are of other {data} the paper's": prints and not reproduces,
        "The paper prints nothing of it": not prints,
    }
    if len(blocks) == 1:
        printed, ours = _evaluation(blocks[0])
        sentences[f"Printed: {printed}"] = prints
        sentences[f"Here: {ours}" if blocks[0].is_printed else f"Measured on {ours}"] = True
    return ". ".join(text for text, is_so in sentences.items() if text and is_so) + "."


def _compared(cell: ComparedCell, column: Column, reproduces: bool) -> Cell:
    printed = _printed(cell.published, column) if cell.published else ""
    if cell.measured is None:
        return Cell("–", printed)
    mark = MARKS.get(cell.verdict, "") if reproduces else ""
    return _marked(_number(cell.measured, column), mark, f"{printed} {mark}".strip(), cell.measured.mean)


def _marked(text: str, mark: str, note: str = "", value: float | None = None) -> Cell:
    colour = _COLOURS.get(mark, "")
    return Cell(text, note, 0.35 if colour else 0.0, colour, value=value)


def _printed(cell: PrintedCell | None, column: Column) -> str:
    return cell.bound + _number(Figure(cell.value, cell.printed_spread), column) if cell else "–"


def _number(figure: Figure, column: Column) -> str:
    grouped = "," if abs(figure.mean) >= _MILLION else ""
    spread = "" if figure.sd is None else f"±{figure.sd:.{max(column.decimals, 1)}f}"
    return f"{figure.mean:{grouped}.{column.decimals}f}{spread}"


def claims_tables(
    claims: Sequence[tuple[Claim, Judgement | None, Mapping[str, Judgement]]], is_generated: bool = False
) -> list[Table]:
    """Return each claim with what our numbers say, where there are any, and what the paper's own do."""
    if not claims:
        return []
    _, ours, in_paper = claims[0]
    together = len(in_paper) > _SEVERAL
    names = ["in the paper"] if together else [f"in the paper, {key}" for key in in_paper]
    rows = []
    for claim, here, printed in claims:
        row = [Cell(claim.name), Cell(claim.text, claim.where, words=True)]
        outcomes = [_outcomes(printed)] if together else [_status(one.status) for one in printed.values()]
        if here:
            row += [_status(here.status, is_generated), Cell(here.figure, words=True), *outcomes]
        else:
            failed = (f"{key}: {one.figure}" for key, one in printed.items() if one.status == "fails")
            row += [*outcomes, Cell("; ".join(failed), words=True)]
        rows.append(row)
    columns = ["here", "the figure that decides", *names] if ours else [*names, "why it fails"]
    return [Table("Claims", ["claim", "text", *columns], rows)]


def _outcomes(printed: Mapping[str, Judgement]) -> Cell:
    keys: dict[str, list[str]] = {}
    for key, judgement in printed.items():
        keys.setdefault(judgement.status, []).append(key)
    if len(keys) == 1:
        return _status(next(iter(keys)))
    return Cell("; ".join(f"{MARKS[one]} {one}: {', '.join(of)}" for one, of in keys.items()), words=True)


def _status(status: str, is_generated: bool = False) -> Cell:
    """Return a status with its sign; of generated data it says nothing of others."""
    kind = {"holds": "planted", "not tested": ""}.get(status, "generated data") if is_generated else ""
    return _marked(f"{MARKS[status]} {status}{f' ({kind})' if kind else ''}", MARKS[status])


def findings_table(comparison: Comparison) -> Table:
    rows = [
        [*_line(claim.name, str(finding)), _status(finding.status)]
        for claim, judgement, _ in comparison.claims
        for finding in judgement.findings
    ]
    return Table("All comparisons", ("claim", "comparison", "here"), rows, folded=True)


def measured_rows(comparison: Comparison) -> list[tuple[str, ComparedRow]]:
    """Return names and rows that were measured: once each, of several collections once per collection, of a log or a
    catalogue once per command."""
    study, blocks = comparison.study, comparison.blocks
    by_protocol = study.of != "collections"
    found: dict[object, tuple[str, ComparedRow]] = {}
    for block in blocks if study.several else blocks[:1]:
        for row in (row for row in block.rows if row.seeds):
            key = (row.commands, row.protocol) if by_protocol else (block.on.dataset, row.row.name)
            name = f"{row.name} on {block.on.dataset}" if study.several else row.name
            found.setdefault(key, (name, row))
    if by_protocol and len(found) == 1:
        return [("all rows", row) for _, row in found.values()]
    return list(found.values())


PLANTED = (
    "On generated data claims say nothing about the world: what holds here was planted by the generator, and what is "
    "counted is whether the code finds it."
)

STATUSES: tuple[Status, ...] = get_args(Status)

# Studies with the addresses of their pages.
Compared = Sequence[tuple[Comparison, Path | None]]


def comparison_shown(comparison: Comparison) -> list[Table | str]:
    """Return a comparison as it is printed: its tables, then what the numbers depend on, verdicts and claims."""
    measured, lines = measured_rows(comparison), []
    for name, row in measured:
        facts = [] if comparison.study.of == "log" else [f"seeds {', '.join(map(str, row.seeds))}"]
        facts += [f"{row.cpu_seconds / 60:.1f} CPU minutes"] if row.cpu_seconds else []
        lines.append(f"{name}: {'; '.join([*facts, *row.commands])}")
    lines += dict.fromkeys(f"protocol: {row.protocol}" for _, row in measured)
    lines += comparison.further.remarks
    if comparison.reproduces:
        counts = (f"{count} {verdict}" for verdict, count in comparison.counts().items())
        lines.append(f"cells: {', '.join(counts)}")
    lines += [PLANTED] if comparison.is_generated and comparison.claims else []
    further = [table for table in comparison.further.tables if not table.folded]  # a page has them all
    tables = [*compared_tables(comparison, only_measured=True), *further]
    claims = claims_tables(comparison.claims, comparison.is_generated)
    return [comparison.label, *tables, *lines, *claims]


def content_of(comparison: Comparison) -> dict[str, Any]:
    return {
        "study": comparison.study.name,
        "label": comparison.label,
        "reproduces": comparison.reproduces,
        "tables": [one.content() for one in comparison.tables()],
        "lines": comparison.lines()[1:],
    }


def study_page(comparison: Comparison, command: str = "") -> Page:
    study, further = comparison.study, comparison.further
    blocks: list[Any] = [*compared_tables(comparison)]
    if study.of == "collections" and not study.several:  # the others have figures of their own
        blocks += comparison_charts(comparison.blocks[0], study.columns)
    on_both = " and on the paper's own" if any(printed for *_, printed in comparison.claims) else ""
    judged = f"What the paper's text says, judged on the numbers measured here{on_both}. "
    claims = claims_tables(comparison.claims, comparison.is_generated)
    measured, rows = measured_rows(comparison), []
    for name, row in measured:
        trained, best = row.entries[0].epochs
        epochs = f"{trained} (best {best})" if trained else "–"
        facts = (", ".join(map(str, row.seeds)), epochs, f"{row.cpu_seconds / 60:.1f}")
        rows.append([Cell(name, words=True), *map(Cell, facts), Cell(row.protocol, words=True)])
    depends = Table("Rows", ("row", "seeds", "epochs", "CPU minutes", "protocol"), rows)
    sections = [
        Section("Published and measured", blocks, comparison.label, further.remarks),
        Section(
            "Claims",
            [*claims, findings_table(comparison)] if claims else [],
            judged + PLANTED * comparison.is_generated,
        ),
        Section("Further tables", further.tables),
        Section(further.title, further.charts, further.note),
        Section("Rows", [depends] if rows else []),
    ]
    page = study.published[0].page
    commands = [command or f"diptych study run {study.name}"]
    commands += [line for _, row in measured for line in row.commands]
    return Page(
        title=study.name,
        summary=study.asks,
        headlines=[
            *_headline("cells reproduced", "reproduced", comparison.counts()),
            *_headline("claims that hold", "holds", {} if comparison.is_generated else comparison.statuses()),
        ],
        sections=[section for section in sections if section.blocks],
        protocol={"paper": f"{study.paper.authors}, {study.paper.title}, {study.paper.venue}"}
        | ({"page": str(page)} if page else {}),
        notes=notes_of(study),
        commands=list(dict.fromkeys(commands)),
    )


def notes_of(study: Study) -> list[str]:
    published = study.settings.get("published")
    deviations = () if published is None else published.deviations
    notes = [*study.notes, *(f"setting published is not what the paper says: {one}" for one in deviations)]
    for table in study.published:
        where = f"{table.paper.key} {table.name}"
        notes += [f"{where}: {note}" for note in table.notes]
        off = "does not add up"
        notes += [f"{where}, row {row}, {column} {off}: {note}" for row, column, note in table.inconsistent]
    return [*notes, *study.paper.notes]


def _headline(label: str, first: str, counts: Mapping[Any, int]) -> list[Headline]:
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if name != first)
    return [Headline(label, f"{counts.get(first, 0)} of {sum(counts.values())}", others)] if counts else []


def matrix_table(compared: Compared, failed: Mapping[str, str]) -> Table:
    columns = ("study", "what it asks", "setting", *JUDGED, *STATUSES, "CPU minutes")
    rows = []
    for comparison, page in compared:
        study, results = comparison.study, comparison.results
        verdicts, statuses = comparison.counts(), comparison.statuses()
        minutes = sum({entry.run: entry.cpu_seconds for entry in results.entries}.values()) / 60
        counts = [str(verdicts.get(one, 0)) if verdicts else "–" for one in JUDGED]
        counts += [str(statuses[one]) for one in STATUSES]
        head = Cell(study.name, link="" if page is None else page.as_posix())
        texts = (results.setting or "–", *counts, f"{minutes:.1f}")
        rows.append([head, Cell(study.topic, words=True), *map(Cell, texts)])
    for name, why in failed.items():
        rows.append([Cell(name), Cell(f"failed: {why}", words=True), *[Cell("–")] * (len(columns) - 2)])
    groups = [("", 3), ("cells", len(JUDGED)), ("claims", len(STATUSES)), ("", 1)]
    marks = ", ".join(f"{mark} {one}" for one, mark in MARKS.items())
    after = "Cells have verdicts where the paper's own evaluation was repeated. In each study's table: "
    return Table("Studies and their verdicts", columns, rows, groups, f"{after}{marks}.")


def matrix_page(compared: Compared, failed: Mapping[str, str], commands: Sequence[str]) -> Page:
    generated = any(comparison.is_generated for comparison, _ in compared)
    return Page(
        title="All studies",
        summary=f"{len(compared)} studies, their printed cells and their claims.",
        sections=[Section("Verdicts", [matrix_table(compared, failed)], PLANTED if generated else "")],
        commands=commands,
    )
